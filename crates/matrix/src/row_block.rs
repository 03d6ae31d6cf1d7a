//! Rows as they travel and lie in files: keys, the lists of a list matrix, values, slots. This is the one encoding of rows: pages
//! of an export and an import, images of the log, blocks of checkpoints, tensors of a model, appends and reads of lists.

mod packed;

use std::ops::Range;

use math::sort::sort_pairs;

use crate::element::{Element, ElementType, OwnedValues, with_values};
use crate::error::Error;
use crate::rule::Slot;
use crate::spec::MatrixSpec;
pub(crate) use packed::{ListBytes, pack_lists};

/// Rows of a matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct RowBlock {
    /// n keys, each once. By row: the keys of rows. By column: `row * columns + column`. Ascending, except in a block of a
    /// snapshot.
    pub keys: Vec<u64>,
    /// The lists of the rows of a list matrix. In a block of a snapshot a list may lack its beginning or its end, which are in
    /// other blocks.
    pub lists: Option<Lists>,
    /// Row-major values: `n x columns` by row, n by column. Of lists: one for each entry, or none if entries have keys alone.
    pub values: OwnedValues,
    /// The slots of the push rule by name, in the rule's order: `n x columns` values each, or n when the rule has one
    /// number for each row (Adam's `steps`). Empty when the slots are not known.
    pub slots: Vec<(String, OwnedValues)>,
}

/// The lists of n rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// The number of entries of each row (n).
    pub lengths: Vec<u64>,
    /// The keys of all entries, row by row.
    pub entries: Vec<u64>,
}

impl RowBlock {
    /// Rows of one length, without slots.
    pub fn of_values(keys: Vec<u64>, values: OwnedValues) -> Self {
        Self { keys, lists: None, values, slots: Vec::new() }
    }

    /// No lists, whose entries have values of this type.
    pub fn no_lists(element: ElementType) -> Self {
        Self { lists: Some(Lists::default()), ..Self::of_values(Vec::new(), OwnedValues::zeros(element, 0)) }
    }

    /// No rows of a matrix with this spec.
    pub fn none(spec: &MatrixSpec) -> Self {
        if spec.storage.has_lists() {
            return Self::no_lists(spec.element);
        }
        let empty = || OwnedValues::zeros(spec.element, 0);
        let slots = spec.rule.slots().iter().map(|slot| (slot.name.to_owned(), empty()));
        Self { slots: slots.collect(), ..Self::of_values(Vec::new(), empty()) }
    }

    /// The first value that is infinite or NaN, with the key of its row and its column, or the key of its entry; with `slots`
    /// also among what the push rule keeps.
    pub fn first_non_finite(&self, slots: bool) -> Option<(u64, u64, f64)> {
        if self.lists.is_some() {
            let (at, value) = self.values.as_values().first_non_finite()?;
            let row = self.rows().find(|(_, range)| range.contains(&at))?.0;
            return Some((row, self.entries()[at], value));
        }
        let slots = self.slots.iter().filter(|_| slots).map(|(_, values)| values);
        std::iter::once(&self.values).chain(slots).find_map(|values| {
            let (at, value) = values.as_values().first_non_finite()?;
            let width = (values.len() / self.keys.len().max(1)).max(1);
            Some((self.keys[at / width], (at % width) as u64, value))
        })
    }

    /// The rows at these positions.
    #[must_use]
    pub fn slice(&self, positions: Range<usize>) -> Self {
        let keys = self.keys[positions.clone()].to_vec();
        if let Some(lists) = &self.lists {
            let count = |lengths: &[u64]| lengths.iter().sum::<u64>() as usize;
            let start = count(&lists.lengths[..positions.start]);
            let lengths = lists.lengths[positions].to_vec();
            let range = start..start + count(&lengths);
            let width = self.values.len() / lists.entries.len().max(1);
            let values = self.values.as_values().slice(range.start * width..range.end * width);
            let lists = Some(Lists { lengths, entries: lists.entries[range].to_vec() });
            return Self { keys, lists, values: values.to_owned_values(), slots: Vec::new() };
        }
        let count = self.keys.len().max(1);
        let part = |values: &OwnedValues| {
            let width = values.len() / count;
            values.as_values().slice(positions.start * width..positions.end * width).to_owned_values()
        };
        let slots = self.slots.iter().map(|(name, values)| (name.clone(), part(values))).collect();
        Self { keys, lists: None, values: part(&self.values), slots }
    }

    /// The rows at these positions, in this order.
    #[must_use]
    pub fn pick(&self, positions: &[usize]) -> Self {
        let keys = positions.iter().map(|at| self.keys[*at]).collect();
        if self.lists.is_some() {
            let ranges: Vec<Range<usize>> = self.rows().map(|(_, range)| range).collect();
            let width = self.values.len() / self.entries().len().max(1);
            let mut picked = Self { keys, ..Self::no_lists(self.values.element_type()) };
            let lists = picked.lists.get_or_insert_default();
            for at in positions {
                let range = ranges[*at].clone();
                lists.lengths.push(range.len() as u64);
                lists.entries.extend_from_slice(&self.entries()[range.clone()]);
                picked.values.extend(self.values.as_values().slice(range.start * width..range.end * width));
            }
            return picked;
        }
        let count = self.keys.len().max(1);
        let part = |values: &OwnedValues| {
            with_values!(values.as_values(), x => {
                let width = x.len() / count;
                let rows = positions.iter().flat_map(|at| &x[at * width..(at + 1) * width]);
                Element::owned(rows.copied().collect())
            })
        };
        let slots = self.slots.iter().map(|(name, values)| (name.clone(), part(values))).collect();
        Self { keys, lists: None, values: part(&self.values), slots }
    }

    /// Appends rows with the same columns and slots, whose keys are larger. A list that ends this block and begins the other
    /// is one list.
    ///
    /// # Panics
    /// If the elements are of another type.
    pub fn append(&mut self, more: &Self) {
        let mut keys = &more.keys[..];
        if let (Some(lists), Some(others)) = (&mut self.lists, &more.lists) {
            let mut lengths = &others.lengths[..];
            if let (Some(last), Some(length)) = (lists.lengths.last_mut(), lengths.first())
                && self.keys.last() == keys.first()
            {
                *last += length;
                (keys, lengths) = (&keys[1..], &lengths[1..]);
            }
            lists.lengths.extend_from_slice(lengths);
            lists.entries.extend_from_slice(&others.entries);
        }
        self.keys.extend_from_slice(keys);
        self.values.extend(more.values.as_values());
        for ((_, values), (_, more)) in self.slots.iter_mut().zip(&more.slots) {
            values.extend(more.as_values());
        }
    }

    /// The rows of blocks that each ascend, ascending.
    #[must_use]
    pub fn merge(spec: &MatrixSpec, parts: Vec<Self>) -> Self {
        let all = parts.into_iter().reduce(|mut all, part| {
            all.append(&part);
            all
        });
        let all = all.unwrap_or_else(|| Self::none(spec));
        if all.keys.is_sorted() {
            return all;
        }
        let mut order: Vec<(u64, u32)> = all.keys.iter().copied().zip(0..).collect();
        sort_pairs(&mut order, &mut Vec::new());
        let positions: Vec<usize> = order.iter().map(|pair| pair.1 as usize).collect();
        all.pick(&positions)
    }

    /// Keeps the first rows.
    pub fn truncate(&mut self, count: usize) {
        if count < self.keys.len() {
            *self = self.slice(0..count);
        }
    }

    /// About the number of bytes of the row at a position.
    pub fn row_bytes(&self, position: usize) -> usize {
        let element = self.values.element_type().size();
        let count = self.keys.len().max(1);
        if let Some(lists) = &self.lists {
            let width = self.values.len() / lists.entries.len().max(1);
            return size_of::<[u64; 2]>()
                + lists.lengths[position] as usize * (size_of::<u64>() + width * element);
        }
        let slots: usize = self.slots.iter().map(|(_, values)| values.len()).sum();
        size_of::<u64>() + (self.values.len() + slots) / count * element
    }

    /// Appends a row with a list: its entries, and their values (as many, or none).
    ///
    /// # Panics
    /// If this is no block of lists, or the values have another type.
    pub fn push_list<E: Element>(&mut self, key: u64, entries: &[u64], values: &[E]) {
        let lists = self.lists.as_mut().expect("a block of lists");
        self.keys.push(key);
        lists.lengths.push(entries.len() as u64);
        lists.entries.extend_from_slice(entries);
        self.values.extend(E::values(values));
    }

    /// The keys of the rows with the positions of their entries.
    pub fn rows(&self) -> impl Iterator<Item = (u64, Range<usize>)> + '_ {
        let lengths = self.lists.iter().flat_map(|lists| &lists.lengths);
        self.keys.iter().copied().zip(lengths.scan(0, |end, length| {
            let start = *end;
            *end += *length as usize;
            Some(start..*end)
        }))
    }

    /// The keys of the entries, row by row; empty if the rows are no lists.
    pub fn entries(&self) -> &[u64] {
        self.lists.as_ref().map_or(&[], |lists| &lists.entries)
    }

    /// Refuses a block that no list matrix with these columns can have: `what` begins the text of the error.
    pub(crate) fn check_lists(&self, columns: usize) -> Result<&Lists, String> {
        let Some(lists) = &self.lists else { return Err("the rows are no lists".to_owned()) };
        if lists.lengths.len() != self.keys.len() {
            return Err(format!("there are {} rows and {} lengths", self.keys.len(), lists.lengths.len()));
        }
        let total = lists.lengths.iter().try_fold(0u64, |sum, length| sum.checked_add(*length));
        if total != Some(lists.entries.len() as u64) {
            return Err(format!("the lengths of the rows do not add up to {} entries", lists.entries.len()));
        }
        if self.values.len() != lists.entries.len() * columns {
            let expected = lists.entries.len() * columns;
            return Err(format!(
                "{} values for {} entries, expected {expected}",
                self.values.len(),
                lists.entries.len()
            ));
        }
        Ok(lists)
    }

    /// Cuts a block of lists into blocks of at most so many entries; a longer list is cut too.
    pub fn split_lists(&self, entry_limit: usize) -> Vec<Self> {
        let width = self.values.len() / self.entries().len().max(1);
        let (mut blocks, mut block) = (Vec::new(), Self::no_lists(self.values.element_type()));
        for (key, mut range) in self.rows() {
            while !range.is_empty() {
                let room = entry_limit.max(1) - block.entries().len();
                let own = range.start..range.end.min(range.start + room);
                range.start = own.end;
                let values = self.values.as_values().slice(own.start * width..own.end * width);
                with_values!(values, values => block.push_list(key, &self.entries()[own], values));
                if block.entries().len() == entry_limit.max(1) {
                    blocks.push(std::mem::replace(&mut block, Self::no_lists(self.values.element_type())));
                }
            }
        }
        blocks.extend((!block.keys.is_empty()).then_some(block));
        blocks
    }

    /// The rows as a frame has them: keys, and the values of all rows with slot after slot behind them. With lists the keys are
    /// the number of rows, their keys, their lengths, and the keys of the entries.
    pub fn into_sections(self) -> (Vec<u64>, OwnedValues) {
        let Self { mut keys, lists, mut values, slots } = self;
        if let Some(Lists { lengths, entries }) = lists {
            let rows = keys;
            keys = Vec::with_capacity(1 + 2 * rows.len() + entries.len());
            keys.push(rows.len() as u64);
            keys.extend(rows.into_iter().chain(lengths).chain(entries));
        }
        for (_, slot) in &slots {
            values.extend(slot.as_values());
        }
        (keys, values)
    }

    /// The rows that [`Self::into_sections`] has given. Without `with_slots`, no slots follow the values.
    ///
    /// # Errors
    /// If the sections do not fit each other and the matrix.
    pub fn from_sections(
        spec: &MatrixSpec,
        keys: Vec<u64>,
        values: OwnedValues,
        with_slots: bool,
    ) -> Result<Self, Error> {
        spec.check_element(values.element_type())?;
        if spec.storage.has_lists() {
            let block = Self::lists_from_section(&keys, values);
            let block = block.ok_or_else(|| list_error(&spec.name, "a section of keys has no lists"))?;
            block.check_lists(spec.columns as usize).map_err(|what| list_error(&spec.name, what))?;
            return Ok(block);
        }
        let columns = spec.columns_of_table();
        let slots = if with_slots { spec.rule.slots() } else { &[] };
        let width = columns + slots.iter().map(|slot| slot.width(columns)).sum::<usize>();
        let (expected, actual) = (keys.len().saturating_mul(width), values.len());
        if expected != actual {
            return Err(Error::ValueCount { matrix: spec.name.clone(), expected, actual });
        }
        let mut end = keys.len() * columns;
        let own =
            if slots.is_empty() { None } else { Some(values.as_values().slice(0..end).to_owned_values()) };
        let slot = |slot: &Slot| {
            let start = end;
            end += keys.len() * slot.width(columns);
            (slot.name.to_owned(), values.as_values().slice(start..end).to_owned_values())
        };
        let slots = slots.iter().map(slot).collect();
        Ok(Self { keys, lists: None, values: own.unwrap_or(values), slots })
    }

    fn lists_from_section(section: &[u64], values: OwnedValues) -> Option<Self> {
        let (count, rest) = section.split_first()?;
        let count = usize::try_from(*count).ok()?;
        let (keys, rest) = rest.split_at_checked(count)?;
        let (lengths, entries) = rest.split_at_checked(count)?;
        let lists = Lists { lengths: lengths.to_vec(), entries: entries.to_vec() };
        Some(Self { lists: Some(lists), ..Self::of_values(keys.to_vec(), values) })
    }

    /// The bytes of all parts but the slots in their order, as they are in memory: keys; for lists their lengths and the keys
    /// of the entries; values.
    pub fn parts(&self) -> [&[u8]; 4] {
        let (lengths, entries): (&[u64], &[u64]) = match &self.lists {
            Some(lists) => (&lists.lengths, &lists.entries),
            None => (&[], &[]),
        };
        [
            bytemuck::cast_slice(&self.keys),
            bytemuck::cast_slice(lengths),
            bytemuck::cast_slice(entries),
            self.values.as_values().bytes(),
        ]
    }
}

/// The error of a list matrix.
pub(crate) fn list_error(matrix: &str, what: impl Into<String>) -> Error {
    Error::Lists { matrix: matrix.to_owned(), what: what.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::{pack, unpack};

    fn block() -> RowBlock {
        let mut block = RowBlock::no_lists(ElementType::F32);
        block.push_list(7, &[1, 5, 9], &[0.5f32, 1.0, 2.0]);
        block.push_list(8, &[2], &[4.0f32]);
        block.push_list(9, &[3, 4], &[5.0f32, 6.0]);
        block
    }

    #[test]
    fn a_block_comes_back_from_its_bytes_and_no_others() {
        let fixed = RowBlock::of_values(vec![3], OwnedValues::I32(vec![1, 2]));
        for block in [block(), fixed] {
            let bytes = pack(&block);
            assert_eq!(unpack::<RowBlock>(&bytes), Ok(block));
            for len in 0..bytes.len() {
                assert!(unpack::<RowBlock>(&bytes[..len]).is_err(), "{len} bytes");
            }
        }
        let mut lies = pack(&block());
        lies[0..8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(unpack::<RowBlock>(&lies).is_err(), "no memory is taken for rows that are not there");
    }

    #[test]
    fn pieces_have_the_entries_of_the_whole() {
        for limit in 1..8 {
            let pieces = block().split_lists(limit);
            assert!(pieces.iter().all(|piece| (1..=limit).contains(&piece.entries().len())));
            let all = |blocks: &[RowBlock]| -> Vec<(u64, u64)> {
                let rows = blocks.iter().flat_map(|block| {
                    block.rows().flat_map(move |(key, range)| range.map(move |at| (key, block.entries()[at])))
                });
                rows.collect()
            };
            assert_eq!(all(&pieces), all(&[block()]));
            assert!(pieces.iter().all(|piece| piece.check_lists(1).is_ok()));
        }
    }
}
