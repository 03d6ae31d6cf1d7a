//! Splits a route into lane keys: the keys that go to one lane in one frame. Partitions of one lane share a frame. A
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

/// Splits a route into lane keys. They are ordered as the first frames of all lanes, then the second frames, so that
/// all lanes begin at once. `parts` is the partitions of each lane, ascending.
pub(crate) fn split_by_lane(route: &KeyRuns, spec: &MatrixSpec, parts: &[Vec<u32>]) -> Vec<LaneKeys> {
    let limit = (LANE_KEYS_BYTES / (spec.columns_of_table() * spec.element.size()).max(8)).max(1);
    let mut pieces = Vec::new();
    for (lane, partitions) in (0u16..).zip(parts) {
        let mut piece = LaneKeys { lane, slices: Vec::new(), key_count: 0 };
        for &partition in partitions {
            let (mut start, end) = (0, route.run(partition).keys.len());
            while start < end {
                let count = (end - start).min(limit - piece.key_count);
                piece.slices.push(PartitionSlice { partition, start, count });
                piece.key_count += count;
                start += count;
                if piece.key_count == limit {
                    let empty = LaneKeys { lane, slices: Vec::new(), key_count: 0 };
                    pieces.push(std::mem::replace(&mut piece, empty));
                }
            }
        }
        if piece.key_count > 0 {
            pieces.push(piece);
        }
    }
    interleave_lanes(&mut pieces, parts.len());
    pieces
}

/// Orders lane keys by their index in their lane.
fn interleave_lanes(pieces: &mut Vec<LaneKeys>, lane_count: usize) {
    let mut turns = vec![0u32; lane_count];
    let mut ordered: Vec<(u32, LaneKeys)> = pieces
        .drain(..)
        .map(|piece| {
            let turn = &mut turns[usize::from(piece.lane)];
            *turn += 1;
            (*turn, piece)
        })
        .collect();
    ordered.sort_by_key(|(turn, piece)| (*turn, piece.lane));
    pieces.extend(ordered.into_iter().map(|(_, piece)| piece));
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
    fn slice_keys<'a>(&'a self, route: &'a KeyRuns) -> impl Iterator<Item = RoutedKeys<'a>> {
        self.slices.iter().map(|slice| {
            let range = slice.start..slice.start + slice.count;
            route.run(slice.partition).slice(range)
        })
    }

    /// Encodes the keys in the fewest bytes: as a range, as the digest of a list that was sent over this connection
    /// (with the message that listed it), or as a list.
    pub(crate) fn encode_keys(
        &self,
        route: &KeyRuns,
        known: &mut CachedKeyLists,
    ) -> (DigestedRuns, KeyList, Option<Arc<Message>>) {
        let runs = self.runs();
        if let Some((start, end)) = self.range(route) {
            return (DigestedRuns { runs, digest: None }, KeyList::Range { start, end }, None);
        }
        // Ranges with a gap are rare: partitions of other lanes lie between. Their digest would cost a list.
        if self.key_count < SHORTEST_LIST || route.is_range() {
            return (DigestedRuns { runs, digest: None }, KeyList::Listed(self.all_keys(route)), None);
        }
        let lists = self.slice_keys(route).map(|run| match run.keys {
            Keys::Sorted(keys) => keys,
            Keys::Range(..) => unreachable!("these keys are listed"),
        });
        let digest = KeyList::digest_of_slices(&runs, lists);
        let named = DigestedRuns { runs, digest: Some(digest) };
        match known.find(digest) {
            Some(source) => (named, KeyList::Cached { digest, count: self.key_count as u32 }, Some(source)),
            None => (named, KeyList::Listed(self.all_keys(route)), None),
        }
    }

    pub(crate) fn all_keys(&self, route: &KeyRuns) -> Vec<u64> {
        let mut list = Vec::with_capacity(self.key_count);
        for run in self.slice_keys(route) {
            match run.keys {
                Keys::Sorted(keys) => list.extend_from_slice(keys),
                Keys::Range(start, end) => list.extend(start..end),
            }
        }
        list
    }

    /// The keys as `start..end` if they have no gaps.
    fn range(&self, route: &KeyRuns) -> Option<(u64, u64)> {
        let mut range: Option<(u64, u64)> = None;
        for run in self.slice_keys(route) {
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
    pub(crate) fn gather(&self, route: &KeyRuns, columns: usize, values: Values<'_>) -> OwnedValues {
        with_values!(values, values => {
            let mut out = Vec::with_capacity(self.key_count * columns);
            self.slice_keys(route).for_each(|run| run.order.gather(columns, values, &mut out));
            Element::owned(out)
        })
    }

    /// Copies the values of these keys to the order of the caller. Returns false when they have another type or number.
    pub(crate) fn scatter(
        &self,
        route: &KeyRuns,
        columns: usize,
        values: &OwnedValues,
        out: &mut ValuesMut<'_>,
    ) -> bool {
        let len = out.len();
        with_values!(values.as_values(), values => self.scatter_slice(route, columns, values, out.slice_mut(0..len)))
    }

    fn scatter_slice<E: Element>(
        &self,
        route: &KeyRuns,
        columns: usize,
        mut values: &[E],
        out: ValuesMut<'_>,
    ) -> bool {
        let Some(out) = E::slice_mut(out).filter(|_| values.len() == self.key_count * columns) else {
            return false;
        };
        for run in self.slice_keys(route) {
            let (own, rest) = values.split_at(run.keys.len() * columns);
            values = rest;
            run.order.scatter(columns, own, out);
        }
        true
    }
}
