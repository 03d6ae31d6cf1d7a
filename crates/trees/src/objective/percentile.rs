//! Percentiles of numbers that are divided over tasks, the same for any division: the bits of the numbers are found from the
//! highest to the lowest, eight at a time, by sums of weights in fixed point.

use math::reduction::FixedPoint;

use algo::error::Error;
use algo::exchange::Exchange;

/// Bits that a round finds.
const DIGIT_BITS: u32 = 8;
/// Values of these bits.
const DIGITS: usize = 1 << DIGIT_BITS;

/// Numbers as ordered keys, with the steps of their weights.
type Keys = Vec<(u64, i64)>;

/// The percentile `alpha` of the numbers of each list of all tasks. A list has numbers with their weights, which are not
/// negative; all tasks have the same lists. It is the smallest number up to which there is the share `alpha` of the weights;
/// where that share ends at a number, the middle between it and the next. So a number of weight w is w numbers. A list
/// without weight has 0.
pub(in super::super) fn percentiles<N: Iterator<Item = (f64, f64)>>(
    lists: impl Iterator<Item = N> + Clone,
    alpha: f64,
    exchange: &mut Exchange<'_>,
) -> Result<Vec<f64>, Error> {
    let (mut most, mut count) = ([0.0], [0]);
    for (_, weight) in lists.clone().flatten() {
        most[0] = weight.max(most[0]);
        count[0] += 1;
    }
    exchange.max(&mut most)?;
    exchange.sum(&mut count)?;
    let fixed = FixedPoint::for_sums(most[0], count[0] as u64);
    let keys: Vec<Keys> = lists
        .map(|list| list.map(|(number, weight)| (key_of(number), fixed.steps(weight))).collect())
        .collect();
    let mut totals: Vec<i64> = keys.iter().map(|list| list.iter().map(|pair| pair.1).sum()).collect();
    exchange.sum(&mut totals)?;
    let share = |total: &i64| alpha * *total as f64;
    let first: Vec<i64> =
        totals.iter().map(|total| (share(total).ceil() as i64).clamp(1, *total.max(&1))).collect();
    let next: Vec<i64> =
        totals.iter().map(|total| (share(total).floor() as i64 + 1).clamp(1, *total.max(&1))).collect();
    let is_between = first != next;
    let lower = select(keys.clone(), first, exchange)?;
    let upper = if is_between { select(keys, next, exchange)? } else { lower.clone() };
    let middle = |((lower, upper), total): ((u64, u64), &i64)| match total {
        0 => 0.0,
        _ => f64::midpoint(number_of(lower), number_of(upper)),
    };
    Ok(lower.into_iter().zip(upper).zip(&totals).map(middle).collect())
}

/// The smallest key of each list of all tasks up to which the sum of steps is at least that of `ranks`.
fn select(mut lists: Vec<Keys>, mut ranks: Vec<i64>, exchange: &mut Exchange<'_>) -> Result<Vec<u64>, Error> {
    let mut selected = vec![0u64; lists.len()];
    for shift in (0..u64::BITS).step_by(DIGIT_BITS as usize).rev() {
        let digit = |key: u64| (key >> shift) as usize % DIGITS;
        let mut sums = vec![0i64; DIGITS * lists.len()];
        for (list, sums) in lists.iter().zip(sums.chunks_exact_mut(DIGITS)) {
            for (key, steps) in list {
                sums[digit(*key)] += steps;
            }
        }
        exchange.sum(&mut sums)?;
        let parts = lists.iter_mut().zip(sums.chunks_exact(DIGITS)).zip(&mut ranks).zip(&mut selected);
        for (((list, sums), rank), selected) in parts {
            let mut own = 0;
            while *rank > sums[own] && own + 1 < DIGITS {
                *rank -= sums[own];
                own += 1;
            }
            *selected |= (own as u64) << shift;
            list.retain(|(key, _)| digit(*key) == own);
        }
    }
    Ok(selected)
}

/// Keys are ordered as numbers.
fn key_of(number: f64) -> u64 {
    // Adding 0 turns -0 into 0.
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

fn number_of(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key ^ 1 << 63 } else { !key })
}

#[cfg(test)]
mod tests {
    use math::random::{Purpose, stream};

    use super::*;
    use algo::test_harness::one_task_agent;

    /// By sorting, with a copy of a number for each unit of its weight.
    fn by_sorting(list: &[(f64, f64)], alpha: f64) -> f64 {
        let mut all: Vec<f64> =
            list.iter().flat_map(|(number, weight)| std::iter::repeat_n(*number, *weight as usize)).collect();
        all.sort_by(f64::total_cmp);
        let share = alpha * all.len() as f64;
        let (lower, upper) = (share.ceil() as usize, share.floor() as usize + 1);
        if all.is_empty() {
            return 0.0;
        }
        let at = |rank: usize| all[rank.clamp(1, all.len()) - 1];
        f64::midpoint(at(lower), at(upper))
    }

    #[test]
    fn percentiles_are_those_of_sorted_numbers() {
        let mut random = stream(1, Purpose::Test, 0, 0);
        let mut agent = one_task_agent();
        let mut exchange = Exchange::new(&mut agent);
        for round in 0..60 {
            let lists: Vec<Vec<(f64, f64)>> = (0..5)
                .map(|list| {
                    let mut draw = || match round % 3 {
                        0 => (random.normal() * 1e3, random.below(4) as f64),
                        1 => (random.below(7) as f64 - 3.0, 1.0),
                        _ => (random.normal() * 1e-200, 1.0),
                    };
                    (0..list * round).map(|_| draw()).collect()
                })
                .collect();
            for alpha in [0.5, 0.25, 0.9, 0.01, 0.999] {
                let found =
                    percentiles(lists.iter().map(|list| list.iter().copied()), alpha, &mut exchange).unwrap();
                let expected: Vec<f64> = lists.iter().map(|list| by_sorting(list, alpha)).collect();
                assert_eq!(found, expected, "{alpha}");
            }
        }
    }

    #[test]
    fn keys_are_ordered_as_their_numbers() {
        let numbers = [f64::MIN, -2.0, -1e-300, 0.0, 5e-324, 1.0, f64::MAX];
        assert!(numbers.array_windows().all(|[a, b]| key_of(*a) < key_of(*b)));
        assert_eq!(numbers.map(|number| number_of(key_of(number))), numbers);
        assert_eq!(key_of(-0.0), key_of(0.0));
    }
}
