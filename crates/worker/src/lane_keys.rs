//! Splits key runs into lane keys: the keys that go to one lane in one frame. Partitions of one lane share a frame. A
//! new frame begins where keys or values would take more than [`LANE_KEYS_BYTES`] bytes.

use std::sync::Arc;

use matrix::{Element, KeyRuns, Keys, MatrixSpec, OwnedValues, RoutedKeys, Values, ValuesMut, with_values};
use rpc::Message;
use rpc::message::{KeyList, PartitionRun};

use crate::cached_key_lists::{CachedKeyLists, SHORTEST_LIST};

/// Most bytes of keys, and of values, in one frame, unless a single row has more. A lane works on one frame while the
/// next is on its way, and the cost of a frame stays small against its bytes.
const LANE_KEYS_BYTES: usize = 1 << 20;

/// Some keys of one partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartitionSlice {
    pub(crate) partition: u32,
    /// Index of the first key among the keys of the partition.
    pub(crate) start: usize,
    pub(crate) count: usize,
}

/// The keys that go to one lane in one frame.
#[derive(Clone, Debug)]
pub(crate) struct LaneKeys {
    pub(crate) lane: u16,
    pub(crate) slices: Vec<PartitionSlice>,
    pub(crate) key_count: usize,
}

/// Splits key runs into lane keys. They are ordered as the first frames of all lanes, then the second frames, so that
/// all lanes begin at once. `parts` is the partitions of each lane, ascending.
pub(crate) fn split_by_lane(key_runs: &KeyRuns, spec: &MatrixSpec, parts: &[Vec<u32>]) -> Vec<LaneKeys> {
    let limit = (LANE_KEYS_BYTES / (spec.columns_of_table() * spec.element.size()).max(8)).max(1);
    let mut all_lane_keys = Vec::new();
    for (lane, partitions) in (0u16..).zip(parts) {
        let mut lane_keys = LaneKeys { lane, slices: Vec::new(), key_count: 0 };
        for &partition in partitions {
            let (mut start, end) = (0, key_runs.run(partition).keys.len());
            while start < end {
                let count = (end - start).min(limit - lane_keys.key_count);
                lane_keys.slices.push(PartitionSlice { partition, start, count });
                lane_keys.key_count += count;
                start += count;
                if lane_keys.key_count == limit {
                    let empty = LaneKeys { lane, slices: Vec::new(), key_count: 0 };
                    all_lane_keys.push(std::mem::replace(&mut lane_keys, empty));
                }
            }
        }
        if lane_keys.key_count > 0 {
            all_lane_keys.push(lane_keys);
        }
    }
    interleave_lanes(&mut all_lane_keys, parts.len());
    all_lane_keys
}

/// Orders lane keys by their index in their lane.
fn interleave_lanes(all_lane_keys: &mut Vec<LaneKeys>, lane_count: usize) {
    let mut turns = vec![0u32; lane_count];
    let mut ordered: Vec<(u32, LaneKeys)> = all_lane_keys
        .drain(..)
        .map(|lane_keys| {
            let turn = &mut turns[usize::from(lane_keys.lane)];
            *turn += 1;
            (*turn, lane_keys)
        })
        .collect();
    ordered.sort_by_key(|(turn, lane_keys)| (*turn, lane_keys.lane));
    all_lane_keys.extend(ordered.into_iter().map(|(_, lane_keys)| lane_keys));
}

/// The runs of lane keys, and the digest of the keys if it may stand for them.
pub(crate) struct DigestedRuns {
    pub(crate) runs: Vec<PartitionRun>,
    pub(crate) digest: Option<u128>,
}

impl LaneKeys {
    /// The number of keys of each partition.
    pub(crate) fn runs(&self) -> Vec<PartitionRun> {
        let run =
            |slice: &PartitionSlice| PartitionRun { partition: slice.partition, count: slice.count as u32 };
        self.slices.iter().map(run).collect()
    }

    /// The keys of each slice.
    fn slice_keys<'a>(&'a self, key_runs: &'a KeyRuns) -> impl Iterator<Item = RoutedKeys<'a>> {
        self.slices.iter().map(|slice| {
            let range = slice.start..slice.start + slice.count;
            key_runs.run(slice.partition).slice(range)
        })
    }

    /// Encodes the keys in the fewest bytes: as a range, as the digest of a list that was sent over this connection
    /// (with the message that listed it), or as a list.
    pub(crate) fn encode_keys(
        &self,
        key_runs: &KeyRuns,
        known: &mut CachedKeyLists,
    ) -> (DigestedRuns, KeyList, Option<Arc<Message>>) {
        let runs = self.runs();
        if let Some((start, end)) = self.range(key_runs) {
            return (DigestedRuns { runs, digest: None }, KeyList::Range { start, end }, None);
        }
        // Ranges with a gap are rare: partitions of other lanes lie between. Their digest would cost a list.
        if self.key_count < SHORTEST_LIST || key_runs.is_range() {
            return (DigestedRuns { runs, digest: None }, KeyList::Listed(self.all_keys(key_runs)), None);
        }
        let lists = self.slice_keys(key_runs).map(|run| match run.keys {
            Keys::Sorted(keys) => keys,
            Keys::Range(..) => unreachable!("these keys are listed"),
        });
        let digest = KeyList::digest_of_slices(&runs, lists);
        let named = DigestedRuns { runs, digest: Some(digest) };
        match known.find(digest) {
            Some(source) => (named, KeyList::Cached { digest, count: self.key_count as u32 }, Some(source)),
            None => (named, KeyList::Listed(self.all_keys(key_runs)), None),
        }
    }

    pub(crate) fn all_keys(&self, key_runs: &KeyRuns) -> Vec<u64> {
        let mut list = Vec::with_capacity(self.key_count);
        for run in self.slice_keys(key_runs) {
            match run.keys {
                Keys::Sorted(keys) => list.extend_from_slice(keys),
                Keys::Range(start, end) => list.extend(start..end),
            }
        }
        list
    }

    /// The keys as `start..end` if they have no gaps.
    fn range(&self, key_runs: &KeyRuns) -> Option<(u64, u64)> {
        let mut range: Option<(u64, u64)> = None;
        for run in self.slice_keys(key_runs) {
            let (first, end) = match run.keys {
                Keys::Range(start, end) => (start, end),
                Keys::Sorted(keys) => (*keys.first()?, keys.last()? + 1),
            };
            let (start, middle) = range.unwrap_or((first, first));
            if first != middle || end - first != run.keys.len() as u64 {
                return None;
            }
            range = Some((start, end));
        }
        range
    }

    /// Copies the values of these keys from the order of the caller.
    pub(crate) fn gather(&self, key_runs: &KeyRuns, columns: usize, values: Values<'_>) -> OwnedValues {
        with_values!(values, values => {
            let mut out = Vec::with_capacity(self.key_count * columns);
            self.slice_keys(key_runs).for_each(|run| run.order.gather(columns, values, &mut out));
            Element::owned(out)
        })
    }

    /// Copies the values of these keys to the order of the caller. Returns false when they have another type or number.
    pub(crate) fn scatter(
        &self,
        key_runs: &KeyRuns,
        columns: usize,
        values: &OwnedValues,
        out: &mut ValuesMut<'_>,
    ) -> bool {
        let len = out.len();
        with_values!(values.as_values(), values => self.scatter_slice(key_runs, columns, values, out.slice_mut(0..len)))
    }

    fn scatter_slice<E: Element>(
        &self,
        key_runs: &KeyRuns,
        columns: usize,
        mut values: &[E],
        out: ValuesMut<'_>,
    ) -> bool {
        let Some(out) = E::slice_mut(out).filter(|_| values.len() == self.key_count * columns) else {
            return false;
        };
        for run in self.slice_keys(key_runs) {
            let (own, rest) = values.split_at(run.keys.len() * columns);
            values = rest;
            run.order.scatter(columns, own, out);
        }
        true
    }
}
