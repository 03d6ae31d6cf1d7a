//! The keys of a run, and the order of their values.

use std::ops::Range;

use crate::agent::Keys;
use crate::element::Element;

/// Some keys of one partition.
#[derive(Clone, Copy, Debug)]
pub struct RoutedKeys<'a> {
    /// Ascending keys.
    pub keys: Keys<'a>,
    pub order: ValueOrder<'a>,
}

/// Where the values of the keys of a run lie in the list of the caller, counted in rows.
#[derive(Clone, Copy, Debug)]
pub enum ValueOrder<'a> {
    Contiguous {
        first: usize,
        count: usize,
    },
    /// The row of each key.
    Scattered(&'a [u32]),
}

impl RoutedKeys<'_> {
    /// Returns those of the keys that have these indices.
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Self {
        let order = match self.order {
            ValueOrder::Contiguous { first, .. } => {
                ValueOrder::Contiguous { first: first + range.start, count: range.len() }
            }
            ValueOrder::Scattered(rows) => ValueOrder::Scattered(&rows[range.clone()]),
        };
        Self { keys: self.keys.slice(range), order }
    }
}

impl ValueOrder<'_> {
    /// Appends these rows of `values`, in the order of the keys, to `out`.
    pub fn gather<E: Element>(self, columns: usize, values: &[E], out: &mut Vec<E>) {
        match self {
            ValueOrder::Contiguous { first, count } => {
                out.extend_from_slice(&values[first * columns..(first + count) * columns]);
            }
            ValueOrder::Scattered(rows) if columns == 1 => {
                out.extend(rows.iter().map(|row| values[*row as usize]));
            }
            ValueOrder::Scattered(rows) => {
                for row in rows {
                    let start = *row as usize * columns;
                    out.extend_from_slice(&values[start..start + columns]);
                }
            }
        }
    }

    /// Copies `values`, which are in the order of the keys, to these rows of `out`.
    pub fn scatter<E: Element>(self, columns: usize, values: &[E], out: &mut [E]) {
        match self {
            ValueOrder::Contiguous { first, count } => {
                out[first * columns..(first + count) * columns].copy_from_slice(values);
            }
            ValueOrder::Scattered(rows) if columns == 1 => {
                for (row, value) in rows.iter().zip(values) {
                    out[*row as usize] = *value;
                }
            }
            ValueOrder::Scattered(rows) => {
                for (row, values) in rows.iter().zip(values.chunks_exact(columns)) {
                    let start = *row as usize * columns;
                    out[start..start + columns].copy_from_slice(values);
                }
            }
        }
    }
}
