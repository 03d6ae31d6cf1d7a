//! The lists of a chunk of records.

/// Lists of a chunk: those of record `r` are `items[offsets[r]..offsets[r + 1]]`.
pub(super) struct Lists<T> {
    pub(super) offsets: Vec<usize>,
    pub(super) items: Vec<T>,
    /// Records whose list has a null in it, ascending.
    pub(super) null_records: Vec<usize>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self { offsets: Vec::new(), items: Vec::new(), null_records: Vec::new() }
    }
}

impl<T> Lists<T> {
    pub(super) fn clear(&mut self) {
        self.offsets.clear();
        self.items.clear();
        self.null_records.clear();
    }
}
