//! Rows as they travel and lie in files: keys, the lists of a list matrix, values.

use std::ops::Range;

use crate::element::{Element, ElementType, OwnedValues, with_values};
use crate::error::Error;
use crate::function::{FunctionFault, FunctionValue};

/// Rows of a matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct RowBlock {
    /// n keys of rows.
    pub keys: Vec<u64>,
    /// The lists of the rows of a list matrix.
    pub lists: Option<Lists>,
    /// Of a list matrix: one value for each entry, or none if its entries have keys alone. Of other matrices: the sections of
    /// its rows, one behind the other: n x columns values, then each slot of the push rule.
    pub values: OwnedValues,
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
    /// No lists, whose entries have values of this type.
    pub fn no_lists(element: ElementType) -> Self {
        Self { keys: Vec::new(), lists: Some(Lists::default()), values: OwnedValues::zeros(element, 0) }
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

    /// The bytes of all parts in their order, as they are in memory: keys; for lists their lengths and the keys of the
    /// entries; values.
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

/// Takes numbers from the front of bytes.
fn take_u64s(bytes: &mut &[u8], count: u64) -> Option<Vec<u64>> {
    let len = usize::try_from(count).ok()?.checked_mul(size_of::<u64>())?;
    let (own, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    let mut numbers = vec![0; count as usize];
    bytemuck::cast_slice_mut(&mut numbers).copy_from_slice(own);
    Some(numbers)
}

fn take_values(bytes: &mut &[u8], element: ElementType, count: u64) -> Option<OwnedValues> {
    let count = usize::try_from(count).ok()?;
    let (own, rest) = bytes.split_at_checked(count.checked_mul(element.size())?)?;
    *bytes = rest;
    let mut values = OwnedValues::zeros(element, count);
    values.bytes_mut().copy_from_slice(own);
    Some(values)
}

/// Number of rows, whether they are lists, number of entries, number of values, type of the values (u64 each); then the parts.
impl FunctionValue for RowBlock {
    fn pack(&self, out: &mut Vec<u8>) {
        let counts = [
            self.keys.len() as u64,
            u64::from(self.lists.is_some()),
            self.entries().len() as u64,
            self.values.len() as u64,
            self.values.element_type() as u64,
        ];
        out.reserve(size_of_val(&counts) + self.parts().iter().map(|part| part.len()).sum::<usize>());
        for count in counts {
            count.pack(out);
        }
        for part in self.parts() {
            out.extend_from_slice(part);
        }
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        let mut counts = [0; 5];
        for count in &mut counts {
            *count = u64::unpack(bytes)?;
        }
        let [rows, has_lists, entries, values, element] = counts;
        let element = ElementType::ALL.get(usize::try_from(element).unwrap_or(usize::MAX)).copied();
        let block = element.filter(|_| has_lists <= 1).and_then(|element| {
            let keys = take_u64s(bytes, rows)?;
            let lists = match has_lists {
                0 => None,
                _ => Some(Lists { lengths: take_u64s(bytes, rows)?, entries: take_u64s(bytes, entries)? }),
            };
            Some(Self { keys, lists, values: take_values(bytes, element, values)? })
        });
        let fault =
            || FunctionFault::argument("rows", "other bytes", "those of the rows that their counts say");
        block.ok_or_else(fault)
    }

    fn is_finite(&self) -> bool {
        self.values.as_values().first_non_finite().is_none()
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
        let fixed = RowBlock { keys: vec![3], lists: None, values: OwnedValues::I32(vec![1, 2]) };
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
