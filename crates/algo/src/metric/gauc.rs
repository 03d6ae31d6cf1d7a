//! GAUC: the mean of the AUC within each group, weighted by the weight of the groups, over the groups that have both
//! classes (Zhu et al., "Optimized cost per click in Taobao display advertising", KDD 2017, section 4.1).

use math::sort::ordered_bits;

use super::auc::{AUC_RECORD_LIMIT, area};

/// Records with their groups.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct GaucAccumulator {
    records: Vec<Record>,
    overflow: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Record {
    group: u64,
    bits: u32,
    weight: f32,
    positive: bool,
}

impl GaucAccumulator {
    pub fn add(&mut self, group: u64, score: f64, positive: bool, weight: f32) {
        if self.records.len() >= AUC_RECORD_LIMIT {
            self.overflow = true;
            self.records = Vec::new();
        }
        if !self.overflow {
            self.records.push(Record { group, bits: ordered_bits(score as f32 + 0.0), weight, positive });
        }
    }

    /// Adds the records of another task.
    pub fn merge(&mut self, other: &Self) {
        self.records.extend_from_slice(&other.records);
        if self.overflow || other.overflow || self.records.len() > AUC_RECORD_LIMIT {
            *self = Self { overflow: true, records: Vec::new() };
        }
    }

    /// The mean of the groups' AUC, weighted by the weight of their records; `None` if no group has both classes.
    pub fn value(&self) -> Option<f64> {
        let mut records = self.records.clone();
        records.sort_by_key(|record| (record.group, record.bits));
        let (mut sum, mut weight_sum) = (0.0, 0.0);
        for group in records.chunk_by(|a, b| a.group == b.group) {
            let side = |positive: bool| -> Vec<(u32, f32)> {
                let mine = group.iter().filter(|record| record.positive == positive);
                mine.map(|record| (record.bits, record.weight)).collect()
            };
            if let Some(auc) = area(side(true), side(false)) {
                let weight: f64 = group.iter().map(|record| f64::from(record.weight)).sum();
                sum += weight * auc;
                weight_sum += weight;
            }
        }
        (weight_sum > 0.0).then(|| sum / weight_sum)
    }

    /// A message for the user if the limit was exceeded.
    pub fn notice(&self) -> Option<String> {
        self.overflow
            .then(|| format!("GAUC not computed: more than auc_record_limit = {AUC_RECORD_LIMIT} records"))
    }
}
