//! From the keys of a contiguous range to positions: a subtraction.

use crate::storage::Locate;

/// The index of a dense table.
#[derive(Debug)]
pub(crate) struct DenseIndex {
    /// The key of position 0.
    pub(crate) start: u64,
}

impl Locate for DenseIndex {
    #[inline]
    fn hash(&self, _key: u64) -> u64 {
        0
    }

    #[inline]
    fn prefetch(&self, _hash: u64) {}

    #[inline]
    fn find(&self, _hash: u64, key: u64) -> u32 {
        // The partitioner gives a partition only keys of its range, which is at most DENSE_ROW_LIMIT long.
        (key - self.start) as u32
    }

    #[inline]
    fn find_or_add(&mut self, hash: u64, key: u64, _add: impl FnOnce() -> u32) -> u32 {
        self.find(hash, key)
    }
}
