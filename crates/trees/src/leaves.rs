//! The values of the leaves of a grown tree. They come from the gradients of the records and not from their integers: sums
//! in fixed point, which any division of the records over tasks gives.

use data::Batch;
use math::reduction::FixedPoint;

use super::grow::GrownLeaf;
use super::objective::percentiles;
use super::split::SplitRule;
use algo::error::Error;
use algo::exchange::Exchange;

/// The Newton step of each leaf. `most` is the largest gradient and
/// the largest hessian of all tasks, `record_count` the number of records of the tree.
pub(super) fn newton_steps(
    leaves: &[GrownLeaf<'_>],
    (gradients, hessians): (&[f64], &[f64]),
    most: [f64; 2],
    record_count: u64,
    rule: &SplitRule,
    exchange: &mut Exchange<'_>,
) -> Result<Vec<f64>, Error> {
    let [of_gradients, of_hessians] = most.map(|most| FixedPoint::for_sums(most, record_count));
    let mut sums: Vec<i64> = Vec::with_capacity(2 * leaves.len());
    for leaf in leaves {
        let (mut gradient, mut hessian) = (0, 0);
        for &r in leaf.records {
            gradient += of_gradients.steps(gradients[r as usize]);
            hessian += of_hessians.steps(hessians[r as usize]);
        }
        sums.extend([gradient, hessian]);
    }
    exchange.sum(&mut sums)?;
    let value = |[gradient, hessian]: &[i64; 2]| {
        rule.leaf_value(of_gradients.value(*gradient), of_hessians.value(*hessian))
    };
    Ok(sums.as_chunks::<2>().0.iter().map(value).collect())
}

/// The percentile `alpha` of what the scores of the records of each leaf lack. All records count, also those that are not in
/// the sample of the iteration: a sample by gradients would move percentiles.
pub(super) fn residuals(
    leaves: &[GrownLeaf<'_>],
    alpha: f64,
    (columns, scores): (&Batch, &[f64]),
    exchange: &mut Exchange<'_>,
) -> Result<Vec<f64>, Error> {
    let lists = leaves.iter().map(|leaf| {
        let records = leaf.records.iter().map(|r| *r as usize);
        records.map(|r| (columns.labels[r] - scores[r], f64::from(columns.weight(r))))
    });
    percentiles(lists, alpha, exchange)
}
