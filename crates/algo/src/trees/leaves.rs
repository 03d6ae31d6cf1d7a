//! The values of the leaves of a grown tree. They come from the gradients of the records and not from their integers: sums
//! in fixed point, which any division of the records over tasks gives.

use math::reduction::FixedPoint;

use super::exchange::Exchange;
use super::grow::GrownLeaf;
use super::split::SplitRule;
use crate::error::Error;

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
