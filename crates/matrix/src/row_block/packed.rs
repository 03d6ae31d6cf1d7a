//! A [`RowBlock`] in bytes: counts, then its parts.

use super::{Lists, RowBlock};
use crate::element::{Element, ElementType, OwnedValues};
use crate::function::{FunctionFault, FunctionValue};

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

/// The numbers before the parts of a packed [`RowBlock`], u64 each, in this order.
struct Counts {
    rows: u64,
    has_lists: bool,
    entries: u64,
    values: u64,
    element: ElementType,
}

impl Counts {
    /// Appends them, and makes place for parts of so many bytes.
    fn pack(&self, parts: usize, out: &mut Vec<u8>) {
        let counts = [self.rows, u64::from(self.has_lists), self.entries, self.values, self.element as u64];
        out.reserve(size_of_val(&counts) + parts);
        for count in counts {
            count.pack(out);
        }
    }

    /// Takes them from the front of bytes; none if a number has no meaning.
    fn take(bytes: &mut &[u8]) -> Result<Option<Self>, FunctionFault> {
        let mut counts = [0; 5];
        for count in &mut counts {
            *count = u64::unpack(bytes)?;
        }
        let [rows, has_lists, entries, values, element] = counts;
        let element = usize::try_from(element).ok().and_then(|at| ElementType::ALL.get(at));
        let counts = element.filter(|_| has_lists <= 1);
        Ok(counts.map(|element| Self { rows, has_lists: has_lists == 1, entries, values, element: *element }))
    }
}

/// The counts, then the parts.
impl FunctionValue for RowBlock {
    fn pack(&self, out: &mut Vec<u8>) {
        let counts = Counts {
            rows: self.keys.len() as u64,
            has_lists: self.lists.is_some(),
            entries: self.entries().len() as u64,
            values: self.values.len() as u64,
            element: self.values.element_type(),
        };
        counts.pack(self.parts().iter().map(|part| part.len()).sum(), out);
        for part in self.parts() {
            out.extend_from_slice(part);
        }
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        let block = Counts::take(bytes)?.and_then(|counts| {
            let keys = take_u64s(bytes, counts.rows)?;
            let lists = if counts.has_lists {
                let lengths = take_u64s(bytes, counts.rows)?;
                Some(Lists { lengths, entries: take_u64s(bytes, counts.entries)? })
            } else {
                None
            };
            let values = take_values(bytes, counts.element, counts.values)?;
            Some(Self { lists, ..Self::of_values(keys, values) })
        });
        let fault =
            || FunctionFault::argument("rows", "other bytes", "those of the rows that their counts say");
        block.ok_or_else(fault)
    }

    fn is_finite(&self) -> bool {
        self.values.as_values().first_non_finite().is_none()
    }
}

/// Packs rows with their entries and values as a [`RowBlock`] of them is packed, without making one.
pub(crate) fn pack_lists<E: Element>(rows: &[(u64, &[u64], &[E])], out: &mut Vec<u8>) {
    let entries: usize = rows.iter().map(|row| row.1.len()).sum();
    let values: usize = rows.iter().map(|row| row.2.len()).sum();
    let counts = Counts {
        rows: rows.len() as u64,
        has_lists: true,
        entries: entries as u64,
        values: values as u64,
        element: E::TYPE,
    };
    counts.pack((2 * rows.len() + entries) * size_of::<u64>() + values * size_of::<E>(), out);
    for (key, ..) in rows {
        key.pack(out);
    }
    for (_, entries, _) in rows {
        (entries.len() as u64).pack(out);
    }
    for (_, entries, _) in rows {
        out.extend_from_slice(bytemuck::cast_slice(entries));
    }
    for (.., values) in rows {
        out.extend_from_slice(bytemuck::cast_slice(values));
    }
}

/// Lists in the bytes of a packed [`RowBlock`].
pub(crate) struct ListBytes<'a> {
    pub(crate) keys: Vec<u64>,
    pub(crate) lengths: Vec<u64>,
    /// The keys of the entries, and their values, which need not be aligned.
    pub(crate) entries: &'a [u8],
    pub(crate) values: &'a [u8],
}

impl<'a> ListBytes<'a> {
    /// Takes a block of lists from the front of `bytes`. An entry has a value of so many bytes.
    pub(crate) fn take(bytes: &mut &'a [u8], value_bytes: usize) -> Result<Self, FunctionFault> {
        let counts = Counts::take(bytes)?.filter(|counts| counts.has_lists);
        let mut take_bytes = |count: u64, width: usize| {
            let (own, rest) = bytes.split_at_checked(usize::try_from(count).ok()?.checked_mul(width)?)?;
            *bytes = rest;
            Some(own)
        };
        let lists = counts.and_then(|counts| {
            let keys = take_u64s(&mut take_bytes(counts.rows, size_of::<u64>())?, counts.rows)?;
            let lengths = take_u64s(&mut take_bytes(counts.rows, size_of::<u64>())?, counts.rows)?;
            let total = lengths.iter().try_fold(0u64, |sum, length| sum.checked_add(*length));
            let total = total.filter(|total| *total == counts.entries)?;
            let entries = take_bytes(total, size_of::<u64>())?;
            let values = take_bytes(counts.values, counts.element.size())?;
            let fits = values.len() == entries.len() / size_of::<u64>() * value_bytes;
            fits.then_some(Self { keys, lengths, entries, values })
        });
        let fault =
            || FunctionFault::argument("lists", "other bytes", "those of the lists that their counts say");
        lists.ok_or_else(fault)
    }
}
