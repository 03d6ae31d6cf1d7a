//! What snapshots need of an array that changes after they began: its pages as they were.
//!
//! Beginning a snapshot copies nothing. The first change of a page after that copies the page, so a push pays for the
//! pages that it changes and not for the table. Whoever reads a snapshot takes the copied pages, and the others from
//! the array itself. An array that is replaced by a larger one goes to the snapshots as it is.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Target size of a page. A smaller one has fewer bytes copied by a push of scattered keys, and more allocations by a
/// push of all.
const PAGE_BYTES: usize = 2 << 10;

/// A snapshot of a partition, as its tables know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotId(pub(crate) u64);

/// Shift from the index of an item of so many bytes to its page.
pub(crate) const fn page_shift(item_bytes: usize) -> u32 {
    if item_bytes < PAGE_BYTES { (PAGE_BYTES / item_bytes).ilog2() } else { 0 }
}

/// The pages of an array as they were when each snapshot began, where they have changed since.
#[derive(Debug)]
pub(crate) struct BeforeImages<T> {
    snapshots: Vec<PagesOfSnapshot<T>>,
}

impl<T> Default for BeforeImages<T> {
    fn default() -> Self {
        Self { snapshots: Vec::new() }
    }
}

/// What one snapshot needs of an array.
#[derive(Debug)]
pub(crate) struct PagesOfSnapshot<T> {
    id: SnapshotId,
    row_count: u32,
    /// The array that was replaced by a larger one: nothing changes any more.
    array: Option<Arc<Vec<T>>>,
    pages: Vec<Option<Arc<[T]>>>,
}

impl<T: Copy> BeforeImages<T> {
    /// Whether there is no snapshot, so that changes need no care.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.snapshots.is_empty()
    }

    /// Begins a snapshot of an array of so many rows and pages.
    pub(crate) fn begin(&mut self, id: SnapshotId, row_count: u32, page_count: usize) {
        let pages = vec![None; page_count];
        self.snapshots.push(PagesOfSnapshot { id, row_count, array: None, pages });
    }

    /// Frees what a snapshot has.
    pub(crate) fn end(&mut self, id: SnapshotId) {
        self.snapshots.retain(|snapshot| snapshot.id != id);
    }

    pub(crate) fn of(&self, id: SnapshotId) -> Option<&PagesOfSnapshot<T>> {
        self.snapshots.iter().find(|snapshot| snapshot.id == id)
    }

    /// Keeps the content of a page, which is about to change, for the snapshots that do not have it yet.
    #[inline]
    pub(crate) fn preserve(&mut self, page: usize, content: &[T]) {
        let mut copy = None;
        for snapshot in &mut self.snapshots {
            if let (Some(kept @ None), None) = (snapshot.pages.get_mut(page), &snapshot.array) {
                *kept = Some(Arc::clone(copy.get_or_insert_with(|| Arc::from(content))));
            }
        }
    }

    /// Keeps an array that is replaced.
    pub(crate) fn keep_array(&mut self, array: Vec<T>) {
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
        self.pages.get(page)?.as_deref()
    }

    /// Size of what is kept in bytes. What is in `seen` by its address does not count, and is added to it.
    pub(crate) fn unseen_bytes(&self, seen: &mut BTreeSet<usize>) -> u64 {
        let array = self.array.iter().map(|array| array.as_slice());
        let kept = array.chain(self.pages.iter().flatten().map(|page| &**page));
        let unseen = kept.filter(|items| seen.insert(items.as_ptr().addr()));
        unseen.map(|items| size_of_val(items) as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_kept_once_for_all_snapshots_that_began_before_it_changed() {
        let mut images = BeforeImages::<u64>::default();
        let [first, second, third] = [1, 2, 3].map(SnapshotId);
        images.begin(first, 4, 2);
        images.preserve(0, &[1, 2]);
        images.begin(second, 4, 2);
        images.preserve(0, &[3, 4]);
        images.preserve(1, &[5, 6]);
        images.preserve(9, &[7]);
        images.begin(third, 4, 2);
        let page = |id, page| images.of(id).unwrap().page(page).map(<[u64]>::to_vec);
        assert_eq!((page(first, 0), page(first, 1)), (Some(vec![1, 2]), Some(vec![5, 6])));
        assert_eq!((page(second, 0), page(second, 1)), (Some(vec![3, 4]), Some(vec![5, 6])));
        assert_eq!((page(third, 0), page(third, 9)), (None, None));
        let mut seen = BTreeSet::new();
        let bytes = [first, second, third].map(|id| images.of(id).unwrap().unseen_bytes(&mut seen));
        assert_eq!(bytes, [32, 16, 0], "the page that two share counts once");
    }

    #[test]
    fn a_replaced_array_is_that_of_the_snapshots_that_have_none_and_changes_no_more() {
        let mut images = BeforeImages::<u64>::default();
        let [first, second] = [1, 2].map(SnapshotId);
        images.begin(first, 2, 1);
        images.keep_array(vec![1, 2]);
        images.begin(second, 2, 1);
        images.keep_array(vec![3, 4]);
        images.preserve(0, &[9, 9]);
        let array = |id| images.of(id).unwrap().array(&[0]).to_vec();
        assert_eq!((array(first), array(second)), (vec![1, 2], vec![3, 4]));
        assert!(images.of(first).unwrap().page(0).is_none());
        images.end(first);
        assert!(images.of(first).is_none() && !images.is_empty());
        images.end(second);
        assert!(images.is_empty());
    }

    #[test]
    fn pages_have_about_one_size() {
        assert_eq!([1, 4, 64, 100, 2047, 2048, 1 << 20].map(page_shift), [11, 9, 5, 4, 0, 0, 0]);
    }
}
