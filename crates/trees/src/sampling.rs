//! Which records an iteration learns from, and which features a leaf may be split by: samples of each tree and of each
//! level, and the groups of features that may meet. Draws are by the numbers of records, trees, levels and features, so that
//! they are the same for any number of tasks.

use data::Batch;
use math::random::{NamedDraws, Purpose};

use super::objective::{Slopes, percentiles};
use algo::error::Error;
use algo::exchange::Exchange;

/// The records of an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RecordSample {
    All,
    /// This share of them.
    Share(f64),
    /// The share `top` with the largest gradients, and a share of all that is drawn from the others, which counts for all of
    /// these (gradient-based one-side sampling: Ke et al., "LightGBM", NIPS 2017).
    LargeGradients {
        top: f64,
        other: f64,
    },
}

impl RecordSample {
    /// Sets whether each record is drawn (empty: all are), and the gradients of those that are not to 0. `draws` comes with
    /// the number of records of the tasks before this one.
    pub(super) fn draw(
        self,
        (draws, records_before): (NamedDraws, u64),
        columns: &Batch,
        slopes: &mut Slopes,
        is_drawn: &mut Vec<bool>,
        exchange: &mut Exchange<'_>,
    ) -> Result<(), Error> {
        is_drawn.clear();
        let count = columns.labels.len();
        let draw = |r: usize| draws.of(records_before + r as u64).uniform();
        match self {
            Self::All => return Ok(()),
            Self::Share(share) => is_drawn.extend((0..count).map(|r| draw(r) < share)),
            Self::LargeGradients { top, other } => {
                let sizes: Vec<f64> = (0..count).map(|r| slopes.size(r, count)).collect();
                // Each record counts once, whatever its weight; those of weight 0 are not there.
                let present = |r: usize| f64::from(u8::from(columns.weight(r) > 0.0));
                let all = sizes.iter().enumerate().map(|(r, size)| (*size, present(r)));
                let bound = percentiles(std::iter::once(all), 1.0 - top, exchange)?[0];
                let factor = (1.0 - top) / other;
                for (r, &size) in sizes.iter().enumerate() {
                    let is_large = size >= bound;
                    is_drawn.push(is_large || draw(r) * factor < 1.0);
                    if !is_large {
                        slopes.scale(r, count, factor);
                    }
                }
            }
        }
        for (r, _) in is_drawn.iter().enumerate().filter(|(_, is_drawn)| !**is_drawn) {
            slopes.scale(r, count, 0.0);
        }
        Ok(())
    }
}

/// The features of a tree.
#[derive(Clone, Debug)]
pub(super) struct FeatureSample<'a> {
    pub(super) seed: u64,
    pub(super) tree: u64,
    pub(super) feature_count: usize,
    /// Shares of the features that a tree, and of these that the leaves of one level, may be split by.
    pub(super) tree_share: f64,
    pub(super) level_share: f64,
    /// Features may only meet in a branch if they are in a group together; empty: all may.
    pub(super) interactions: &'a [Vec<u32>],
}

impl FeatureSample<'_> {
    /// A bit for each feature that a leaf at this depth may be split by, under splits by the features `used`; empty: all.
    pub(super) fn allowed(&self, depth: usize, used: &[u32]) -> Vec<u8> {
        if self.tree_share >= 1.0 && self.level_share >= 1.0 && self.interactions.is_empty() {
            return Vec::new();
        }
        let mut features: Vec<u32> = (0..self.feature_count as u32).collect();
        self.draw(&mut features, self.tree_share, 0);
        self.draw(&mut features, self.level_share, 1 + depth as u64);
        if !self.interactions.is_empty() {
            let groups =
                self.interactions.iter().filter(|group| used.iter().all(|feature| group.contains(feature)));
            let may_meet: Vec<u32> = groups.flatten().copied().collect();
            features.retain(|feature| may_meet.contains(feature));
        }
        let mut bits = vec![0; self.feature_count.div_ceil(8)];
        for feature in features {
            bits[feature as usize / 8] |= 1 << (feature % 8);
        }
        bits
    }

    /// Keeps a share of the features, at least one.
    fn draw(&self, features: &mut Vec<u32>, share: f64, level: u64) {
        if share >= 1.0 {
            return;
        }
        let wanted = ((features.len() as f64 * share).round() as usize).clamp(1, features.len());
        let draws = NamedDraws::new(self.seed, Purpose::Sample, 2 * self.tree + 1);
        let name = |feature: u32| level << 32 | u64::from(feature);
        features.sort_by_key(|&feature| (draws.of(name(feature)).next_u64(), feature));
        features.truncate(wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(bits: &[u8]) -> Vec<u32> {
        (0..8 * bits.len() as u32).filter(|f| bits[*f as usize / 8] >> (f % 8) & 1 == 1).collect()
    }

    #[test]
    fn levels_draw_from_the_features_of_their_tree() {
        let sample = FeatureSample {
            seed: 1,
            tree: 3,
            feature_count: 20,
            tree_share: 0.5,
            level_share: 0.4,
            interactions: &[],
        };
        let tree = numbers(&FeatureSample { level_share: 1.0, ..sample.clone() }.allowed(0, &[]));
        assert_eq!(tree.len(), 10);
        let levels: Vec<Vec<u32>> = (0..6).map(|depth| numbers(&sample.allowed(depth, &[]))).collect();
        assert!(levels.iter().all(|level| level.len() == 4 && level.iter().all(|f| tree.contains(f))));
        assert!(levels.iter().any(|level| *level != levels[0]));
        let all = FeatureSample { tree_share: 1.0, level_share: 1.0, ..sample };
        assert!(all.allowed(2, &[]).is_empty());
    }

    #[test]
    fn features_meet_only_within_a_group() {
        let groups = [vec![0, 1], vec![1, 2, 3]];
        let sample = FeatureSample {
            seed: 1,
            tree: 0,
            feature_count: 5,
            tree_share: 1.0,
            level_share: 1.0,
            interactions: &groups,
        };
        assert_eq!(numbers(&sample.allowed(0, &[])), [0, 1, 2, 3]);
        assert_eq!(numbers(&sample.allowed(1, &[0])), [0, 1]);
        assert_eq!(numbers(&sample.allowed(1, &[1])), [0, 1, 2, 3]);
        assert_eq!(numbers(&sample.allowed(2, &[1, 3])), [1, 2, 3]);
    }
}
