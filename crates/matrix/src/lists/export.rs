//! Export and import of lists, and their blocks in a snapshot.

use crate::element::Element;
use crate::error::Error;
use crate::lists::functions::{check_block, positions};
use crate::lists::store::{ListCursor, ListSelection, SealedLists};
use crate::partitioner::Placement;
use crate::partitions::{LockedPartitions, Partitions};
use crate::row_block::RowBlock;
use crate::rule::RuleElement;
use crate::spec::MatrixSpec;
use crate::storage::Share;

/// The rows of these partitions from a cursor on, ascending, of at most so many entries, and where the rest begins. With
/// `cuts_rows`, the last row may be cut; otherwise rows are whole, and there is at least one.
pub(crate) fn export_lists<E: RuleElement>(
    partitions: &LockedPartitions<'_, E>,
    from: ListCursor,
    entry_limit: usize,
    cuts_rows: bool,
) -> Result<(RowBlock, Option<ListCursor>), Error> {
    let mut places: Vec<(u64, usize, usize)> = Vec::new();
    let lists = partitions.iter().map(|(_, partition)| partition.lists().expect("a list matrix").sealed());
    let lists: Vec<&SealedLists<E>> = lists.collect::<Result<_, _>>()?;
    for (number, own) in lists.iter().enumerate() {
        let mut count = 0;
        own.visit(&ListSelection::Range(from.row, u64::MAX), from.row, |key, i| {
            places.push((key, number, i));
            // One row more than the limit: no partition ends before the block does.
            let is_enough = count > entry_limit;
            count += own.list(i).0.len();
            !is_enough
        });
    }
    places.sort_unstable();
    let mut block = RowBlock::no_lists(E::TYPE);
    let mut room = entry_limit;
    for (key, number, i) in places {
        let (entries, values) = lists[number].list(i);
        let start = if key == from.row { from.skip as usize } else { 0 };
        let is_too_long = entries.len() - start > room;
        if is_too_long && !cuts_rows && !block.keys.is_empty() || room == 0 {
            return Ok((block, Some(ListCursor { row: key, skip: start as u64 })));
        }
        let end = if is_too_long && cuts_rows { start + room } else { entries.len() };
        let own = if values.is_empty() { values } else { &values[start..end] };
        block.push_list(key, &entries[start..end], own);
        room = room.saturating_sub(end - start);
        if end < entries.len() {
            return Ok((block, Some(ListCursor { row: key, skip: end as u64 })));
        }
    }
    Ok((block, None))
}

/// Adds the lists that lie in these partitions; they are sealed when they are next read. With `replaces`, all others are removed.
pub(crate) fn import_lists<E: RuleElement>(
    spec: &MatrixSpec,
    placement: &Placement,
    partitions: &Partitions<E>,
    rows: &RowBlock,
    replaces: bool,
) -> Result<(), Error> {
    check_block(spec, rows).map_err(|fault| Error::function(&spec.name, "import", fault))?;
    for (partition, positions) in positions(placement, rows).iter().enumerate() {
        if let Some(mut partition) = partitions.lock_one(partition)? {
            let lists = partition.lists_mut().expect("a list matrix");
            lists.import(rows, positions, replaces);
        }
    }
    Ok(())
}

impl<E: Element> SealedLists<E> {
    /// The share of all entries, which may begin and end within a row.
    pub(crate) fn block(&self, share: Share) -> RowBlock {
        let cut = |index: u64| {
            (u128::from(self.entry_count()) * u128::from(index) / u128::from(share.count)) as usize
        };
        let (start, end) = (cut(share.index), cut(share.index + 1));
        let mut block = RowBlock::no_lists(E::TYPE);
        let mut i = self.row_of(start);
        let mut at = start;
        while at < end {
            let (key, row_start, row_end) = self.bounds(i);
            let (entries, values) = self.list(i);
            let own = at - row_start..end.min(row_end) - row_start;
            let values = if values.is_empty() { values } else { &values[own.clone()] };
            block.push_list(key, &entries[own.clone()], values);
            at = row_start + own.end;
            i += 1;
        }
        block
    }
}
