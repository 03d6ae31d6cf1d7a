//! How well ranked items meet those that users have chosen later.

use math::elementary::ln;
use serde::{Deserialize, Serialize};

/// Means over users that have relevant items, of lists of at most n items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankingQuality {
    pub users: u64,
    /// Relevant items in the list / n.
    pub precision: f64,
    /// Relevant items in the list / relevant items.
    pub recall: f64,
    /// Sum of `1 / log2(rank + 1)` over relevant items in the list / the same of a list that begins with relevant items only.
    pub ndcg: f64,
    /// Mean over ranks of relevant items of the precision up to there, divided by `min(n, relevant items)`.
    pub map: f64,
    /// Users with a relevant item in the list / users.
    pub hit_rate: f64,
}

/// The definitions, for people.
pub const DEFINITIONS: &str = "over all items but those that are left out, mean over the users with an item in the test data: precision = \
hits / n, recall = hits / test items, NDCG = sum over hits of 1/log2(rank + 1) / that of the best list, MAP = sum over hits of the \
precision up to there / min(n, test items)";

impl RankingQuality {
    /// Measures lists, best first, with the relevant items of the same users, ascending. Users without relevant items are left
    /// out.
    pub fn of<'a>(lists: impl Iterator<Item = (&'a [u64], &'a [u64])>, n: usize) -> Self {
        let discounts: Vec<f64> =
            (2..n as u64 + 2).map(|rank| std::f64::consts::LN_2 / ln(rank as f64)).collect();
        let mut sums = Self::default();
        for (list, relevant) in lists.filter(|(_, relevant)| !relevant.is_empty()) {
            let (mut hits, mut gain, mut precisions) = (0u64, 0.0, 0.0);
            for (at, item) in list.iter().take(n).enumerate() {
                if relevant.binary_search(item).is_ok() {
                    hits += 1;
                    gain += discounts[at];
                    precisions += hits as f64 / (at + 1) as f64;
                }
            }
            let reachable = n.min(relevant.len());
            let best: f64 = discounts[..reachable].iter().sum();
            sums.users += 1;
            sums.precision += hits as f64 / n as f64;
            sums.recall += hits as f64 / relevant.len() as f64;
            sums.ndcg += gain / best;
            sums.map += precisions / reachable as f64;
            sums.hit_rate += f64::from(u8::from(hits > 0));
        }
        let mean = |sum: f64| if sums.users == 0 { 0.0 } else { sum / sums.users as f64 };
        Self {
            users: sums.users,
            precision: mean(sums.precision),
            recall: mean(sums.recall),
            ndcg: mean(sums.ndcg),
            map: mean(sums.map),
            hit_rate: mean(sums.hit_rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_those_of_their_definitions() {
        let lists: [(&[u64], &[u64]); 3] = [(&[5, 1, 9], &[1, 9, 10, 11]), (&[2, 3, 4], &[8]), (&[1], &[])];
        let found = RankingQuality::of(lists.into_iter(), 3);
        assert_eq!(found.users, 2, "the third has no relevant items");
        // Of the first user: hits at the ranks 2 and 3; log2(3) = 1.58496.
        let gain = 1.0 / 1.584_962_5 + 0.5;
        let best = 1.0 + gain;
        for (name, found, first) in [
            ("precision", found.precision, 2.0 / 3.0),
            ("recall", found.recall, 0.5),
            ("ndcg", found.ndcg, gain / best),
            ("map", found.map, (0.5 + 2.0 / 3.0) / 3.0),
            ("hit rate", found.hit_rate, 1.0),
        ] {
            assert!((found - first / 2.0).abs() < 1e-7, "{name}: {found} {first}");
        }
    }
}
