//! Where histograms are: slots of leaves, rows of slots, columns of features.

use std::ops::Range;

use super::super::split::{BinKind, FeatureBins};

/// Bins of features that travel together, at least, and after which a partition may end.
const GROUP_BINS: u32 = 256;

/// Rows of a slot.
pub(in super::super) const SLOT_ROWS: u32 = 3;

/// The row that describes the features.
pub(in super::super) const FEATURE_ROW: u32 = 0;

/// A leaf that gets a histogram.
pub(in super::super) struct NewHistogram<'a> {
    pub(in super::super) slot: usize,
    /// The slot of the leaf that is split: its histogram becomes that of the other child. `None` for the root.
    pub(in super::super) parent: Option<usize>,
    pub(in super::super) records: &'a [u32],
}

/// The rows of a slot.
pub(in super::super) fn rows_of_slot(slot: usize) -> [u32; SLOT_ROWS as usize] {
    let first = 1 + SLOT_ROWS * slot as u32;
    [first, first + 1, first + 2]
}

/// The bins of features that travel together.
pub(in super::super) fn groups(starts: &[u32]) -> impl Iterator<Item = Range<u32>> {
    let (mut first, last) = (0, starts[starts.len() - 1]);
    starts[1..].iter().filter_map(move |&end| {
        let is_full = end - first >= GROUP_BINS || end == last;
        is_full.then(|| std::mem::replace(&mut first, end)..end)
    })
}

/// The number in the row of features at the first bin of a feature; at its other bins it is 0.
pub(in super::super) fn describe(feature: &FeatureBins) -> i64 {
    let kind = match feature.kind {
        BinKind::Numbers { has_missing } => i64::from(has_missing),
        BinKind::Categories => 2,
    };
    // A feature has at least one bin, so that the number is not 0.
    let number = i64::from(feature.number) << 24 | i64::from(feature.count);
    number << 4 | kind << 2 | i64::from(feature.monotone + 1)
}

/// The feature of such a number; `None` for 0.
pub(in super::super) fn described(code: i64) -> Option<FeatureBins> {
    if code == 0 {
        return None;
    }
    let kind = match code >> 2 & 3 {
        2 => BinKind::Categories,
        kind => BinKind::Numbers { has_missing: kind == 1 },
    };
    let count = (code >> 4 & ((1 << 24) - 1)) as u32;
    Some(FeatureBins { number: (code >> 28) as u32, count, kind, monotone: (code & 3) as i8 - 1 })
}
