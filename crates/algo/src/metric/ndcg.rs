//! NDCG: how near the order of the records of a group is to the best one (Järvelin and Kekäläinen, "Cumulated gain-based
//! evaluation of IR techniques", TOIS 2002), with the gains of Burges et al., "Learning to rank using gradient descent",
//! ICML 2005: `2^grade - 1`, divided by `log2(1 + rank)`. The mean over groups; one without a grade above 0 counts as 1, as
//! in LightGBM. Of equal scores the record that comes first is ranked higher.

use math::elementary::ln;

use super::auc::AUC_RECORD_LIMIT;
use super::loss::LossAccumulator;

/// The largest grade.
pub const LARGEST_GRADE: u32 = 31;
/// Numbers of records that are looked at, with the names of the metrics.
pub const NDCG_CUTS: [(usize, &str); 4] = [(1, "ndcg@1"), (3, "ndcg@3"), (5, "ndcg@5"), (10, "ndcg@10")];

/// The gain of a record with this grade, a whole number up to [`LARGEST_GRADE`].
pub fn gain(grade: f64) -> f64 {
    (1u64 << (grade as u32).min(LARGEST_GRADE)) as f64 - 1.0
}

/// The share of its gain that the record on a rank has, from 0 on.
pub fn discount(rank: usize) -> f64 {
    std::f64::consts::LN_2 / ln(rank as f64 + 2.0)
}

/// The discounted gain of the first `cut` grades.
fn dcg(grades: &[f64], cut: usize) -> f64 {
    grades.iter().take(cut).enumerate().map(|(rank, grade)| gain(*grade) * discount(rank)).sum()
}

/// The largest discounted gain that an order of these grades has.
pub fn largest_dcg(grades: &[f64], cut: usize) -> f64 {
    let mut best = grades.to_vec();
    best.sort_by(|a, b| b.total_cmp(a));
    dcg(&best, cut)
}

/// NDCG of a group whose grades are in the order of their scores.
pub fn ndcg(ranked: &[f64], cut: usize) -> f64 {
    let largest = largest_dcg(ranked, cut);
    if largest > 0.0 { dcg(ranked, cut) / largest } else { 1.0 }
}

/// Records with their groups.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RankingAccumulator {
    /// 1 - NDCG of the groups that were added whole.
    pub loss: LossAccumulator,
    /// Records that the loss looks at.
    cut: usize,
    records: Vec<Record>,
    overflow: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Record {
    group: u64,
    score: f64,
    grade: f32,
}

impl RankingAccumulator {
    /// Its loss is 1 - NDCG of the first `cut` records of a group.
    pub fn new(cut: usize) -> Self {
        Self { loss: LossAccumulator::default(), cut, records: Vec::new(), overflow: false }
    }

    /// Adds a record. A group may be added in parts.
    pub fn add(&mut self, group: u64, score: f64, grade: f64, weight: f64) {
        self.loss.record_count += 1;
        if weight > 0.0 && !self.overflow {
            self.records.push(Record { group, score, grade: grade as f32 });
            self.check_limit();
        }
    }

    /// Adds the records of another task, which follow those of this one.
    pub fn merge(&mut self, other: &Self) {
        self.loss.merge(&other.loss);
        self.records.extend_from_slice(&other.records);
        self.overflow |= other.overflow;
        self.check_limit();
    }

    fn check_limit(&mut self) {
        if self.overflow || self.records.len() > AUC_RECORD_LIMIT {
            (self.overflow, self.records) = (true, Vec::new());
        }
    }

    /// The loss and NDCG at each of [`NDCG_CUTS`], with their names; nothing without groups.
    pub fn values(&self) -> Vec<(&'static str, f64)> {
        if self.records.is_empty() {
            return self.loss.mean().map(|mean| ("loss", mean)).into_iter().collect();
        }
        let mut records = self.records.clone();
        records.sort_by(|a, b| a.group.cmp(&b.group).then(b.score.total_cmp(&a.score)));
        let (mut sums, mut count) = ([0.0; 1 + NDCG_CUTS.len()], 0.0);
        for group in records.chunk_by(|a, b| a.group == b.group) {
            let ranked: Vec<f64> = group.iter().map(|record| f64::from(record.grade)).collect();
            sums[0] += 1.0 - ndcg(&ranked, self.cut);
            for (sum, (cut, _)) in sums[1..].iter_mut().zip(NDCG_CUTS) {
                *sum += ndcg(&ranked, cut);
            }
            count += 1.0;
        }
        let names = std::iter::once("loss").chain(NDCG_CUTS.map(|(_, name)| name));
        names.zip(sums.map(|sum| sum / count)).collect()
    }

    /// A message for the user if the limit was exceeded.
    pub fn notice(&self) -> Option<String> {
        self.overflow
            .then(|| format!("NDCG not computed: more than auc_record_limit = {AUC_RECORD_LIMIT} records"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of sums of at most five terms.
    const ROUNDING: f64 = 1e-14;

    #[test]
    fn ndcg_is_that_of_the_definition() {
        // Grades 0, 3, 2 in the order of scores; the best order is 3, 2, 0.
        let discounts = [1.0, 1.0 / 3f64.log2(), 0.5];
        let expected = (7.0 * discounts[1] + 3.0 * discounts[2]) / (7.0 + 3.0 * discounts[1]);
        assert!((ndcg(&[0.0, 3.0, 2.0], 10) - expected).abs() < ROUNDING);
        assert_eq!(ndcg(&[0.0, 3.0, 2.0], 1), 0.0);
        assert_eq!([ndcg(&[3.0, 2.0, 0.0], 10), ndcg(&[0.0, 0.0], 10), ndcg(&[], 3)], [1.0; 3]);
    }

    #[test]
    fn groups_may_come_in_parts_and_equal_scores_stay_in_order() {
        let records =
            [(7, 0.5, 0.0), (9, 1.0, 2.0), (7, 0.5, 2.0), (9, 3.0, 1.0), (7, -1.0, 1.0), (4, 0.0, 0.0)];
        let of = |records: &[(u64, f64, f64)]| {
            let mut parts = RankingAccumulator::new(30);
            for (group, score, grade) in records {
                parts.add(*group, *score, *grade, 1.0);
            }
            parts
        };
        let all = of(&records);
        let expected = (ndcg(&[0.0, 2.0, 1.0], 3) + ndcg(&[1.0, 2.0], 3) + 1.0) / 3.0;
        let found = all.values();
        assert!((found[2].1 - expected).abs() < ROUNDING && found[2].0 == "ndcg@3");
        for cut in 0..=records.len() {
            let mut parts = of(&records[..cut]);
            parts.merge(&of(&records[cut..]));
            assert_eq!(parts, all);
        }
        let mut weightless = all.clone();
        weightless.add(9, 8.0, 3.0, 0.0);
        assert_eq!(weightless.values(), found);
    }
}
