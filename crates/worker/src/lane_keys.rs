//! Splits a route into lane keys: the keys that go to one lane in one frame. Partitions of one lane share a frame. A
//! new frame begins where keys or values would take more than [`LANE_KEYS_BYTES`] bytes.

use std::sync::Arc;

use matrix::{Element, ElementType, MatrixSpec, OwnedValues, Placement, Values, ValuesMut};
use rpc::Message;
use rpc::message::{KeyList, PartitionRun};

use crate::cached_key_lists::{CachedKeyLists, SHORTEST_LIST};
use crate::route::{PartitionKeys, Route};

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
pub(crate) fn split_by_lane(
    route: &Route,
    spec: &MatrixSpec,
    placement: &Placement,
    parts: &[Vec<u32>],
) -> Vec<LaneKeys> {
    let limit = (LANE_KEYS_BYTES / (spec.columns_of_table() * element_size(spec.element)).max(8)).max(1);
    let mut pieces = Vec::new();
    for (lane, partitions) in (0u16..).zip(parts) {
        let mut piece = LaneKeys { lane, slices: Vec::new(), key_count: 0 };
        for &partition in partitions {
            let (mut start, end) = (0, route.partition_keys(placement, partition).len());
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

pub(crate) fn element_size(element: ElementType) -> usize {
    match element {
        ElementType::F32 => 4,
        ElementType::F64 | ElementType::I64 => 8,
    }
}

/// The runs of lane keys, and the digest of the keys if it may stand for them.
pub(crate) struct DigestedRuns {
    pub(crate) runs: Vec<PartitionRun>,
    pub(crate) digest: Option<u128>,
}

impl LaneKeys {
    /// Encodes the keys in the fewest bytes: as a range, as the digest of a list that was sent over this connection
    /// (with the message that listed it), or as a list.
    pub(crate) fn encode_keys(
        &self,
        route: &Route,
        placement: &Placement,
        known: &mut CachedKeyLists,
    ) -> (DigestedRuns, KeyList, Option<Arc<Message>>) {
        let run =
            |span: &PartitionSlice| PartitionRun { partition: span.partition, count: span.count as u32 };
        let runs: Vec<PartitionRun> = self.slices.iter().map(run).collect();
        if let Some((start, end)) = self.range(route, placement) {
            return (DigestedRuns { runs, digest: None }, KeyList::Range { start, end }, None);
        }
        if self.key_count < SHORTEST_LIST {
            return (DigestedRuns { runs, digest: None }, self.list(route, placement), None);
        }
        let slices = self.slices.iter().map(|span| match route.partition_keys(placement, span.partition) {
            PartitionKeys::Listed { keys, .. } => &keys[span.start..span.start + span.count],
            PartitionKeys::Range { .. } => &[],
        });
        let digest = KeyList::digest_of_slices(&runs, slices);
        let named = DigestedRuns { runs, digest: Some(digest) };
        match known.find(digest) {
            Some(source) => (named, KeyList::Cached { digest, count: self.key_count as u32 }, Some(source)),
            None => (named, self.list(route, placement), None),
        }
    }

    fn list(&self, route: &Route, placement: &Placement) -> KeyList {
        KeyList::Listed(self.all_keys(route, placement))
    }

    pub(crate) fn all_keys(&self, route: &Route, placement: &Placement) -> Vec<u64> {
        let mut list = Vec::with_capacity(self.key_count);
        for span in &self.slices {
            match route.partition_keys(placement, span.partition) {
                PartitionKeys::Listed { keys, .. } => {
                    list.extend_from_slice(&keys[span.start..span.start + span.count]);
                }
                PartitionKeys::Range { start, .. } => {
                    let first = start + span.start as u64;
                    list.extend(first..first + span.count as u64);
                }
            }
        }
        list
    }

    /// The keys as `start..end` if they have no gaps.
    fn range(&self, route: &Route, placement: &Placement) -> Option<(u64, u64)> {
        let mut range: Option<(u64, u64)> = None;
        for span in &self.slices {
            let (first, last) = match route.partition_keys(placement, span.partition) {
                PartitionKeys::Range { start, .. } => {
                    (start + span.start as u64, start + (span.start + span.count) as u64 - 1)
                }
                PartitionKeys::Listed { keys, .. } => (keys[span.start], keys[span.start + span.count - 1]),
            };
            let (start, end) = range.unwrap_or((first, first));
            if first != end || last - first + 1 != span.count as u64 {
                return None;
            }
            range = Some((start, last + 1));
        }
        range
    }

    /// Copies the values of these keys from the order of the caller.
    pub(crate) fn gather(
        &self,
        route: &Route,
        placement: &Placement,
        columns: usize,
        values: Values<'_>,
    ) -> OwnedValues {
        match values {
            Values::F32(values) => self.gather_slice(route, placement, columns, values),
            Values::F64(values) => self.gather_slice(route, placement, columns, values),
            Values::I64(values) => self.gather_slice(route, placement, columns, values),
        }
    }

    fn gather_slice<E: Element>(
        &self,
        route: &Route,
        placement: &Placement,
        columns: usize,
        values: &[E],
    ) -> OwnedValues {
        let mut out = Vec::with_capacity(self.key_count * columns);
        for span in &self.slices {
            match row_order(route, placement, span) {
                RowOrder::Contiguous(place) => {
                    out.extend_from_slice(&values[place * columns..(place + span.count) * columns]);
                }
                RowOrder::Scattered(order) if columns == 1 => {
                    out.extend(order.iter().map(|i| values[*i as usize]));
                }
                RowOrder::Scattered(order) => {
                    for i in order {
                        let start = *i as usize * columns;
                        out.extend_from_slice(&values[start..start + columns]);
                    }
                }
            }
        }
        E::owned(out)
    }

    /// Copies the values of these keys to the order of the caller. Returns false when they have another type or number.
    pub(crate) fn scatter(
        &self,
        route: &Route,
        placement: &Placement,
        columns: usize,
        values: &OwnedValues,
        out: &mut ValuesMut<'_>,
    ) -> bool {
        if values.len() != self.key_count * columns {
            return false;
        }
        match (values, out) {
            (OwnedValues::F32(values), ValuesMut::F32(out)) => {
                self.scatter_slice(route, placement, columns, values, out);
            }
            (OwnedValues::F64(values), ValuesMut::F64(out)) => {
                self.scatter_slice(route, placement, columns, values, out);
            }
            (OwnedValues::I64(values), ValuesMut::I64(out)) => {
                self.scatter_slice(route, placement, columns, values, out);
            }
            _ => return false,
        }
        true
    }

    fn scatter_slice<E: Element>(
        &self,
        route: &Route,
        placement: &Placement,
        columns: usize,
        mut values: &[E],
        out: &mut [E],
    ) {
        for span in &self.slices {
            let (mine, rest) = values.split_at(span.count * columns);
            values = rest;
            match row_order(route, placement, span) {
                RowOrder::Contiguous(place) => {
                    out[place * columns..(place + span.count) * columns].copy_from_slice(mine);
                }
                RowOrder::Scattered(order) if columns == 1 => {
                    for (i, value) in order.iter().zip(mine) {
                        out[*i as usize] = *value;
                    }
                }
                RowOrder::Scattered(order) => {
                    for (i, row) in order.iter().zip(mine.chunks_exact(columns)) {
                        let start = *i as usize * columns;
                        out[start..start + columns].copy_from_slice(row);
                    }
                }
            }
        }
    }
}

/// Where the values of a partition slice lie in the buffer of the caller, in rows.
enum RowOrder<'a> {
    Contiguous(usize),
    Scattered(&'a [u32]),
}

fn row_order<'a>(route: &'a Route, placement: &Placement, span: &PartitionSlice) -> RowOrder<'a> {
    match route.partition_keys(placement, span.partition) {
        PartitionKeys::Range { first_row: place, .. } => RowOrder::Contiguous(place + span.start),
        PartitionKeys::Listed { rows: [], first_row: first, .. } => RowOrder::Contiguous(first + span.start),
        PartitionKeys::Listed { rows: order, .. } => {
            RowOrder::Scattered(&order[span.start..span.start + span.count])
        }
    }
}
