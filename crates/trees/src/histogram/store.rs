//! The histograms of the leaves of a growing tree: in the memory of the only task, or at the partitions, which add up
//! what the tasks push and find the splits ([`super::partitions`]).

use super::super::records::Records;
use super::super::split::{FeatureBins, LeafQuery, Scratch, Split, SplitRule, SplitSearch};
use super::layout::NewHistogram;
use super::partitions;
use super::sums::Histogram;
use algo::error::Error;
use algo::exchange::Exchange;

/// Histograms by slots.
#[derive(Debug)]
pub(in super::super) struct Histograms {
    features: Vec<FeatureBins>,
    /// Slots that there are.
    capacity: usize,
    /// Those of the only task; empty if they are at the partitions.
    own: Vec<Histogram>,
    is_shared: bool,
    words: Vec<u64>,
    scratch: Scratch,
}

/// Slots for trees with so many leaves: one for each leaf, and some for leaves that are split in vain.
pub(in super::super) fn slot_count(leaves: usize) -> usize {
    leaves + leaves / 4 + 1
}

impl Histograms {
    /// Histograms of these features for trees with so many leaves; `is_shared`: at the partitions.
    pub(in super::super) fn new(features: Vec<FeatureBins>, leaves: usize, is_shared: bool) -> Self {
        Self {
            features,
            capacity: slot_count(leaves),
            own: Vec::new(),
            is_shared,
            words: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    pub(in super::super) fn features(&self) -> &[FeatureBins] {
        &self.features
    }

    pub(in super::super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether several leaves should be split at a time, because the tasks wait for each other.
    pub(in super::super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Makes histograms of some leaves.
    pub(in super::super) fn fill(
        &mut self,
        records: &Records,
        packed: &[u64],
        leaves: &[NewHistogram<'_>],
        exchange: &mut Exchange<'_>,
    ) -> Result<(), Error> {
        if self.is_shared {
            return partitions::fill(records, packed, leaves, &mut self.words, exchange);
        }
        for leaf in leaves {
            if self.own.len() <= leaf.slot {
                self.own.resize_with(leaf.slot + 1, Histogram::default);
            }
            let mut histogram = std::mem::take(&mut self.own[leaf.slot]);
            records.histogram(leaf.records, packed, &mut self.words, &mut histogram);
            if let Some(parent) = leaf.parent {
                self.own[parent].subtract(&histogram);
            }
            self.own[leaf.slot] = histogram;
        }
        Ok(())
    }

    /// The best splits of leaves whose histograms are in these slots.
    pub(in super::super) fn best_splits(
        &mut self,
        rule: &SplitRule,
        leaves: &[(usize, &LeafQuery)],
        exchange: &mut Exchange<'_>,
    ) -> Result<Vec<Option<Split>>, Error> {
        if leaves.is_empty() {
            return Ok(Vec::new());
        }
        if self.is_shared {
            return partitions::best_splits(rule, leaves, exchange);
        }
        let mut best = Vec::with_capacity(leaves.len());
        for (slot, leaf) in leaves {
            let mut search = SplitSearch::new(rule, leaf, &mut self.scratch);
            let (bins, mut start) = (self.own[*slot].bins(), 0);
            for feature in &self.features {
                let end = start + feature.count as usize;
                search.try_feature(feature, bins.slice(start..end));
                start = end;
            }
            best.push(search.end());
        }
        Ok(best)
    }
}
