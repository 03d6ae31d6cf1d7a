//! What the three stores of rows offer, and the shares in which all rows of one are visited.

use super::BLOCK;
use super::rows::ABSENT;

/// One of `count` shares of the keys of a table: every key is in one of them. The hashes of a share lie evenly over all
/// hashes, so that a table into which one share after the other is imported fills evenly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) index: u64,
    pub(crate) count: u64,
}

impl Share {
    pub(crate) const WHOLE: Self = Self { index: 0, count: 1 };
}

/// Rows by key. A row has a position, which leads to it without its key.
pub(crate) trait RowStore<E> {
    /// Whether [`Self::probe_prefetched`] also reads the cache line of the row that it finds.
    const ROWS_ARE_INLINE: bool = false;

    /// Number of rows.
    fn len(&self) -> u32;
    /// All positions are below this bound.
    fn position_bound(&self) -> u32 {
        self.len()
    }
    fn bytes(&self) -> u64;
    /// Visits the keys of a share with the positions of their rows, in the order of the store, on which no result depends.
    fn for_each_key(&self, share: Share, visit: impl FnMut(u64, u32));
    /// Visits the keys of a share with their rows, in the order of the store.
    fn for_each_row<'a>(&'a self, share: Share, mut visit: impl FnMut(u64, &'a [E]))
    where
        E: 'a,
    {
        let mut block = [(0, ABSENT); BLOCK];
        let mut len = 0;
        self.for_each_key(share, |key, position| {
            self.prefetch_row(position);
            block[len] = (key, position);
            len += 1;
            if len == BLOCK {
                len = 0;
                for (key, position) in block {
                    visit(key, self.row(position));
                }
            }
        });
        for (key, position) in &block[..len] {
            visit(*key, self.row(*position));
        }
    }
    fn hash(&self, key: u64) -> u64;
    /// Prefetches the memory that [`Self::find`] reads.
    fn prefetch_key(&self, hash: u64);
    /// Returns the position of the row, or [`ABSENT`].
    fn find(&self, hash: u64, key: u64) -> u32;
    /// Does the same as [`Self::find`], but reads only prefetched memory. Returns [`UNKNOWN`] when that is not enough,
    /// after prefetching the rest.
    fn probe_prefetched(&self, hash: u64, key: u64) -> u32;
    /// Whether `count` rows can be added without moving a row.
    #[inline]
    fn has_room(&self, _count: usize) -> bool {
        true
    }
    /// Makes room for so many rows. Earlier positions become invalid.
    fn grow(&mut self, _count: usize) {}
    /// Makes room for so many rows, where that saves growing later.
    fn reserve(&mut self, count: usize) {
        if !self.has_room(count) {
            self.grow(count);
        }
    }
    /// Adds a row of zeros for a new key and returns its position. The caller has made sure that there is room.
    fn add(&mut self, hash: u64, key: u64) -> u32;
    fn row(&self, position: u32) -> &[E];
    fn row_mut(&mut self, position: u32) -> &mut [E];
    /// Prefetches the first cache line of a row; does nothing for [`ABSENT`].
    fn prefetch_row(&self, position: u32);
}
