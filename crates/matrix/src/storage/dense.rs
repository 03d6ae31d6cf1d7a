//! Rows of a contiguous range of keys: the position is a subtraction.

use crate::element::Element;
use crate::rule::Step;
use crate::storage::Store;
use crate::storage::rows::Rows;

/// All rows of a range, from the start.
#[derive(Debug)]
pub(crate) struct DenseRows<E> {
    /// The key of position 0.
    start: u64,
    rows: Rows<E>,
}

impl<E: Element> DenseRows<E> {
    /// `len` rows of zeros, the first of `start`.
    pub(crate) fn new(start: u64, len: u32, width: usize) -> Self {
        Self { start, rows: Rows::contiguous(width, len) }
    }

    /// The key of position 0.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Copies the first `columns` elements of the rows of `keys`, which are ascending, to `out`, if the keys lie together;
    /// false when they do not.
    pub(crate) fn pull_together(&self, keys: &[u64], columns: usize, out: &mut [E]) -> bool {
        let Some(rows) = self.together(keys) else { return false };
        if self.rows.width() == columns {
            out.copy_from_slice(rows);
        } else {
            let rows = rows.chunks_exact(self.rows.width());
            for (row, out) in rows.zip(out.chunks_exact_mut(columns)) {
                out.copy_from_slice(&row[..columns]);
            }
        }
        true
    }

    /// The same, behind what `out` has.
    pub(crate) fn append_together(&self, keys: &[u64], columns: usize, out: &mut Vec<E>) -> bool {
        let Some(rows) = self.together(keys) else { return false };
        if self.rows.width() == columns {
            out.extend_from_slice(rows);
        } else {
            rows.chunks_exact(self.rows.width()).for_each(|row| out.extend_from_slice(&row[..columns]));
        }
        true
    }

    /// The rows of ascending keys without gaps.
    fn together(&self, keys: &[u64]) -> Option<&[E]> {
        Some(self.rows.span(self.first_together(keys)?, keys.len()))
    }

    /// Makes `step` on the rows of `keys`, which are ascending, if the keys lie together; false when they do not.
    pub(crate) fn push_together<S: Step<E>>(
        &mut self,
        keys: &[u64],
        columns: usize,
        values: &[E],
        step: &S,
    ) -> bool {
        let Some(position) = self.first_together(keys) else { return false };
        let width = self.rows.width();
        let rows = self.rows.span_mut(position, keys.len());
        if width == columns {
            // Rules without slots work on each element by itself: all rows are one long one.
            step.step(rows, values);
        } else {
            for (row, change) in rows.chunks_exact_mut(width).zip(values.chunks_exact(columns)) {
                step.step(row, change);
            }
        }
        true
    }

    /// The key of the first row and all rows, if they are one element each.
    pub(crate) fn line(&self) -> Option<(u64, &[E])> {
        (self.rows.width() == 1).then(|| (self.start, self.rows.span(0, self.rows.len() as usize)))
    }

    /// As [`Self::line`].
    pub(crate) fn line_mut(&mut self) -> Option<&mut [E]> {
        let len = self.rows.len() as usize;
        (self.rows.width() == 1).then(|| self.rows.span_mut(0, len))
    }

    /// The position of the first of ascending keys without gaps.
    fn first_together(&self, keys: &[u64]) -> Option<u32> {
        let (first, last) = (*keys.first()?, *keys.last()?);
        (last - first + 1 == keys.len() as u64).then_some((first - self.start) as u32)
    }
}

impl<E: Element> Store<E> for DenseRows<E> {
    fn len(&self) -> u32 {
        self.rows.len()
    }

    fn bytes(&self) -> u64 {
        self.rows.bytes()
    }

    fn each_key(&self, mut visit: impl FnMut(u64, u32)) {
        (0..self.rows.len()).for_each(|position| visit(self.start + u64::from(position), position));
    }

    #[inline]
    fn hash(&self, _key: u64) -> u64 {
        0
    }

    #[inline]
    fn prefetch_key(&self, _hash: u64) {}

    #[inline]
    fn find(&self, _hash: u64, key: u64) -> u32 {
        // The partitioner gives a partition only keys of its range, which is at most DENSE_ROW_LIMIT long.
        (key - self.start) as u32
    }

    #[inline]
    fn find_near(&self, hash: u64, key: u64) -> u32 {
        self.find(hash, key)
    }

    #[inline]
    fn add(&mut self, hash: u64, key: u64) -> u32 {
        self.find(hash, key)
    }

    #[inline]
    fn row(&self, position: u32) -> &[E] {
        self.rows.row(position)
    }

    #[inline]
    fn row_mut(&mut self, position: u32) -> &mut [E] {
        self.rows.row_mut(position)
    }

    #[inline]
    fn prefetch_row(&self, position: u32) {
        self.rows.prefetch(position);
    }
}
