//! What snapshots need of an array that changes after they began: its pages as they were.
//!
//! Beginning a snapshot copies nothing. The first change of a page after that copies the page, so a push pays for the
//! pages that it changes and not for the table. Whoever reads a snapshot takes the copied pages, and the others from
//! the array itself. An array that is replaced by a larger one goes to the snapshots as it is.
//!
//! The same look at what changes tells which items (buckets or rows) have changed between two snapshots, for checkpoints
//! that have only those.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Target size of a page. A smaller one has fewer bytes copied by a push of scattered keys, and takes longer for a push
/// of all.
const PAGE_BYTES: usize = 512;

/// Copied pages are in blocks of this size, so that neither copying nor freeing one is a call of the allocator.
const SLAB_BYTES: usize = 64 << 10;

/// The slot of a page that has not changed.
const NOT_COPIED: u32 = u32::MAX;

/// A snapshot of a partition, as its tables know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotId(pub(crate) u64);

/// Which rows of a snapshot are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowsOfSnapshot {
    All,
    /// Those of the items that may have changed since the snapshot before that recorded changes: all if that is not known.
    Changed,
}

/// Shift from the index of an item of so many bytes to its page.
pub(crate) const fn page_shift(item_bytes: usize) -> u32 {
    if item_bytes < PAGE_BYTES { (PAGE_BYTES / item_bytes).ilog2() } else { 0 }
}

/// The pages of an array as they were when each snapshot began, where they have changed since.
#[derive(Debug)]
pub(crate) struct BeforeImages<T> {
    snapshots: Vec<PagesOfSnapshot<T>>,
    /// What has changed since the last snapshot that recorded changes.
    changes: Option<ChangedItems>,
}

/// Whether each item has changed: a bit for each. An item that did not exist has.
#[derive(Debug)]
struct ChangedItems {
    bits: Vec<u64>,
    len: usize,
}

impl ChangedItems {
    fn none_of(len: usize) -> Self {
        Self { bits: vec![0; len.div_ceil(u64::BITS as usize)], len }
    }

    #[inline]
    fn word_and_bit(item: usize) -> (usize, u64) {
        (item / u64::BITS as usize, 1 << (item % u64::BITS as usize))
    }

    fn has(&self, item: usize) -> bool {
        let (word, bit) = Self::word_and_bit(item);
        item >= self.len || self.bits[word] & bit != 0
    }

    #[inline]
    fn add(&mut self, item: usize) {
        if item < self.len {
            let (word, bit) = Self::word_and_bit(item);
            self.bits[word] |= bit;
        }
    }
}

impl<T> Default for BeforeImages<T> {
    fn default() -> Self {
        Self { snapshots: Vec::new(), changes: None }
    }
}

/// What one snapshot needs of an array.
#[derive(Debug)]
pub(crate) struct PagesOfSnapshot<T> {
    id: SnapshotId,
    row_count: u32,
    item_count: usize,
    /// What had changed when the snapshot began; `None` if that is not known.
    changed: Option<ChangedItems>,
    /// The array that was replaced by a larger one: nothing changes any more.
    array: Option<Arc<Vec<T>>>,
    copies: PageCopies<T>,
}

/// How an array is divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrayShape {
    /// Number of items whose changes are recorded one by one.
    pub(crate) item_count: usize,
    pub(crate) page_count: usize,
    /// Number of elements of the array in a page; the last one may have fewer.
    pub(crate) page_len: usize,
}

impl ArrayShape {
    /// That of an array which only grows, so that none of its pages is copied.
    pub(crate) const GROWING: Self = Self { item_count: 0, page_count: 0, page_len: 1 };
}

/// Copies of pages.
#[derive(Debug)]
struct PageCopies<T> {
    /// By page: the number of its copy.
    slots: Vec<u32>,
    page_len: usize,
    /// Number of copies in a slab.
    slab_len: usize,
    slabs: Vec<Vec<T>>,
    count: u32,
}

impl<T: Copy> PageCopies<T> {
    fn none_of(shape: ArrayShape) -> Self {
        let slab_len = (SLAB_BYTES / (shape.page_len * size_of::<T>())).max(1);
        let slots = vec![NOT_COPIED; shape.page_count];
        Self { slots, page_len: shape.page_len, slab_len, slabs: Vec::new(), count: 0 }
    }

    #[inline]
    fn add(&mut self, page: usize, content: &[T]) {
        let Some(slot @ &mut NOT_COPIED) = self.slots.get_mut(page) else { return };
        *slot = self.count;
        if (self.count as usize).is_multiple_of(self.slab_len) {
            self.slabs.push(Vec::with_capacity(self.slab_len * self.page_len));
        }
        self.count += 1;
        if let (Some(slab), Some(first)) = (self.slabs.last_mut(), content.first()) {
            slab.extend_from_slice(content);
            // The last page of the array may be shorter.
            slab.extend(std::iter::repeat_n(*first, self.page_len - content.len()));
        }
    }
}

impl<T> PageCopies<T> {
    #[inline]
    fn get(&self, page: usize) -> Option<&[T]> {
        let slot = *self.slots.get(page)? as usize;
        let slab = self.slabs.get(slot / self.slab_len)?;
        let start = slot % self.slab_len * self.page_len;
        slab.get(start..start + self.page_len)
    }

    fn bytes(&self) -> u64 {
        self.slabs.iter().map(|slab| (slab.capacity() * size_of::<T>()) as u64).sum()
    }
}

impl<T: Copy> BeforeImages<T> {
    /// Whether changes need no care: there is no snapshot, and they are not recorded.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.snapshots.is_empty() && self.changes.is_none()
    }

    pub(crate) fn has_snapshots(&self) -> bool {
        !self.snapshots.is_empty()
    }

    /// Begins a snapshot of an array with so many rows. One that records changes ends the record of the one
    /// before, and begins another.
    pub(crate) fn begin(&mut self, id: SnapshotId, row_count: u32, shape: ArrayShape, records_changes: bool) {
        let item_count = shape.item_count;
        let changed =
            if records_changes { self.changes.replace(ChangedItems::none_of(item_count)) } else { None };
        let copies = PageCopies::none_of(shape);
        self.snapshots.push(PagesOfSnapshot { id, row_count, item_count, changed, array: None, copies });
    }

    /// Frees what a snapshot has.
    pub(crate) fn end(&mut self, id: SnapshotId) {
        self.snapshots.retain(|snapshot| snapshot.id != id);
    }

    pub(crate) fn of(&self, id: SnapshotId) -> Option<&PagesOfSnapshot<T>> {
        self.snapshots.iter().find(|snapshot| snapshot.id == id)
    }

    /// Records that an item is about to change.
    #[inline]
    pub(crate) fn record_change(&mut self, item: usize) {
        if let Some(changes) = &mut self.changes {
            changes.add(item);
        }
    }

    /// Keeps the content of a page, which is about to change, for the snapshots that do not have it yet.
    #[inline]
    pub(crate) fn preserve(&mut self, page: usize, content: &[T]) {
        for snapshot in self.snapshots.iter_mut().filter(|snapshot| snapshot.array.is_none()) {
            snapshot.copies.add(page, content);
        }
    }

    /// Keeps an array that is replaced. All items of the new one have changed.
    pub(crate) fn keep_array(&mut self, array: Vec<T>) {
        if let Some(changes) = &mut self.changes {
            *changes = ChangedItems::none_of(0);
        }
        if self.snapshots.is_empty() {
            return;
        }
        let array = Arc::new(array);
        for snapshot in &mut self.snapshots {
            snapshot.array.get_or_insert_with(|| Arc::clone(&array));
        }
    }
}

impl<T> PagesOfSnapshot<T> {
    /// Number of rows when the snapshot began.
    pub(crate) fn row_count(&self) -> u32 {
        self.row_count
    }

    /// The array to read from where no page is kept.
    pub(crate) fn array<'a>(&'a self, current: &'a [T]) -> &'a [T] {
        self.array.as_ref().map_or(current, |array| array)
    }

    /// The page as it was, if it has changed since.
    #[inline]
    pub(crate) fn page(&self, page: usize) -> Option<&[T]> {
        self.copies.get(page)
    }

    /// Whether an item belongs to these rows.
    #[inline]
    pub(crate) fn has(&self, rows: RowsOfSnapshot, item: usize) -> bool {
        match (rows, &self.changed) {
            (RowsOfSnapshot::All, _) | (_, None) => true,
            (RowsOfSnapshot::Changed, Some(changed)) => changed.has(item),
        }
    }

    /// At most so many rows may have changed, where an item has so many.
    pub(crate) fn changed_row_count(&self, rows_per_item: usize) -> u64 {
        let all = u64::from(self.row_count);
        let Some(changed) = &self.changed else { return all };
        let recorded: usize = changed.bits.iter().map(|word| word.count_ones() as usize).sum();
        let new = self.item_count.saturating_sub(changed.len);
        all.min(((recorded + new) * rows_per_item) as u64)
    }

    /// Size of what is kept in bytes. Arrays that are in `seen` by their addresses do not count, and are added to it.
    pub(crate) fn unseen_bytes(&self, seen: &mut BTreeSet<usize>) -> u64 {
        let array = self.array.iter().filter(|array| seen.insert(array.as_ptr().addr()));
        self.copies.bytes() + array.map(|array| size_of_val(array.as_slice()) as u64).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(item_count: usize, page_count: usize) -> ArrayShape {
        ArrayShape { item_count, page_count, page_len: 2 }
    }

    #[test]
    fn a_page_is_kept_for_all_snapshots_that_began_before_it_changed() {
        let mut images = BeforeImages::<u64>::default();
        let [first, second, third] = [1, 2, 3].map(SnapshotId);
        images.begin(first, 4, shape(4, 2), false);
        images.preserve(0, &[1, 2]);
        images.begin(second, 4, shape(4, 2), false);
        images.preserve(0, &[3, 4]);
        images.preserve(1, &[5, 6]);
        images.preserve(9, &[7]);
        images.begin(third, 4, shape(4, 2), false);
        let page = |id, page| images.of(id).unwrap().page(page).map(<[u64]>::to_vec);
        assert_eq!((page(first, 0), page(first, 1)), (Some(vec![1, 2]), Some(vec![5, 6])));
        assert_eq!((page(second, 0), page(second, 1)), (Some(vec![3, 4]), Some(vec![5, 6])));
        assert_eq!((page(third, 0), page(third, 9)), (None, None));
        let mut seen = BTreeSet::new();
        let bytes = [first, second, third].map(|id| images.of(id).unwrap().unseen_bytes(&mut seen));
        assert_eq!(bytes, [SLAB_BYTES as u64, SLAB_BYTES as u64, 0]);
        // Many pages, the last one shorter.
        let all = 3 * SLAB_BYTES / 16;
        images.begin(SnapshotId(4), 9, shape(all, all), false);
        for page in 0..all as u64 {
            images.preserve(page as usize, &[page, page + 1][..if page + 1 == all as u64 { 1 } else { 2 }]);
        }
        let of = images.of(SnapshotId(4)).unwrap();
        assert!((0..all as u64 - 1).all(|page| of.page(page as usize).unwrap() == [page, page + 1]));
        assert_eq!(of.page(all - 1).unwrap()[0], all as u64 - 1);
    }

    #[test]
    fn a_replaced_array_is_that_of_the_snapshots_that_have_none_and_changes_no_more() {
        let mut images = BeforeImages::<u64>::default();
        let [first, second] = [1, 2].map(SnapshotId);
        images.begin(first, 2, shape(2, 1), false);
        images.keep_array(vec![1, 2]);
        images.begin(second, 2, shape(2, 1), false);
        images.keep_array(vec![3, 4]);
        images.preserve(0, &[9, 9]);
        let array = |id| images.of(id).unwrap().array(&[0]).to_vec();
        assert_eq!((array(first), array(second)), (vec![1, 2], vec![3, 4]));
        assert!(images.of(first).unwrap().page(0).is_none());
        images.end(first);
        assert!(images.of(first).is_none() && images.has_snapshots());
        images.end(second);
        assert!(images.is_idle());
    }

    #[test]
    fn a_snapshot_knows_what_has_changed_since_the_one_before_that_recorded_changes() {
        let mut images = BeforeImages::<u64>::default();
        let [first, other, second, third, fourth] = [1, 2, 3, 4, 5].map(SnapshotId);
        images.begin(first, 600, shape(65, 3), true);
        images.record_change(1);
        images.begin(other, 600, shape(65, 3), false);
        images.end(other);
        images.end(first);
        images.record_change(63);
        images.record_change(65);
        assert!(!images.is_idle(), "changes are recorded without a snapshot");
        images.begin(second, 700, shape(67, 4), true);
        let changed = |images: &BeforeImages<u64>, id| {
            let snapshot = images.of(id).unwrap();
            assert!((0..99).all(|item| snapshot.has(RowsOfSnapshot::All, item)));
            let items = (0..67).filter(|item| snapshot.has(RowsOfSnapshot::Changed, *item));
            (items.collect::<Vec<_>>(), snapshot.changed_row_count(10))
        };
        assert_eq!(changed(&images, second), (vec![1, 63, 65, 66], 40), "65 and 66 are new");
        images.begin(third, 700, shape(67, 4), true);
        assert_eq!(changed(&images, third), (vec![], 0));
        images.keep_array(vec![0; 8]);
        images.begin(fourth, 300, shape(67, 4), true);
        assert_eq!(changed(&images, fourth), ((0..67).collect(), 300), "rows have moved");
        let mut images = BeforeImages::<u64>::default();
        images.begin(first, 3, shape(67, 2), true);
        assert_eq!(changed(&images, first), ((0..67).collect(), 3), "nothing is known of what was before");
    }

    #[test]
    fn pages_have_about_one_size() {
        assert_eq!([1, 4, 64, 100, 511, 512, 1 << 20].map(page_shift), [9, 7, 3, 2, 0, 0, 0]);
    }
}
