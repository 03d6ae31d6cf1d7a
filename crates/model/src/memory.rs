//! A model in memory: trained in this process and not saved, or read from its directory.

use data::KeyNames;
use matrix::{RowBlock, RowCounts};

use super::manifest::{Manifest, MatrixEntry};
use super::matrix_plan::is_zero;

/// Rows among which the first that is not zero is searched, of a matrix without keys.
pub(crate) const SEARCHED_ROWS: u64 = 64;
/// Rows of a block of [`RowsInMemory`].
const BLOCK_ROWS: usize = 1 << 16;

/// The matrices of a model where they are: in this process or on servers. They are read block by block, so that the
/// writer never holds a whole matrix.
pub trait MatrixSource<E> {
    /// Counts the rows of a matrix.
    fn count_rows(&mut self, matrix: usize) -> Result<RowCounts, E>;

    /// The rows of a matrix from a key on: the smallest keys, as many as suit the source. No rows: there are none from
    /// this key on. Matrices are read one after the other, and each from its smallest key to its largest.
    fn rows_from(&mut self, matrix: usize, key: u64) -> Result<RowBlock, E>;
}

/// Matrices in memory as a source.
#[derive(Debug)]
pub struct RowsInMemory<'a>(pub &'a [RowBlock]);

impl<E> MatrixSource<E> for RowsInMemory<'_> {
    fn count_rows(&mut self, matrix: usize) -> Result<RowCounts, E> {
        let rows = &self.0[matrix];
        let (count, entries) = (rows.keys.len(), rows.entries().len() as u64);
        if rows.lists.is_some() {
            return Ok(RowCounts { rows: count as u64, nonzero_rows: count as u64, entries });
        }
        let columns = rows.values.len() / count.max(1);
        let nonzero = (0..count).filter(|row| !is_zero(&rows.values, *row, columns)).count();
        Ok(RowCounts { rows: count as u64, nonzero_rows: nonzero as u64, entries })
    }

    fn rows_from(&mut self, matrix: usize, key: u64) -> Result<RowBlock, E> {
        let rows = &self.0[matrix];
        let start = rows.keys.partition_point(|other| *other < key);
        Ok(rows.slice(start..rows.keys.len().min(start + BLOCK_ROWS)))
    }
}

/// A model in memory.
#[derive(Debug)]
pub struct Model {
    /// Of a model that was not read from files, it lists none.
    pub manifest: Manifest,
    /// The matrices, in the order of the manifest; with slots if they were requested and saved.
    pub matrices: Vec<RowBlock>,
    /// Names of keys.
    pub dictionary: KeyNames,
}

impl Model {
    /// The bytes of all rows.
    pub fn size_bytes(&self) -> u64 {
        let bytes = |rows: &RowBlock| {
            let slots = rows.slots.iter().map(|(_, values)| values);
            let values = std::iter::once(&rows.values).chain(slots);
            let values: usize = values.map(|values| values.as_values().bytes().len()).sum();
            values + size_of_val(&*rows.keys) + size_of_val(rows.entries())
        };
        self.matrices.iter().map(|rows| bytes(rows) as u64).sum()
    }

    /// As [`ModelReader::key_range`].
    pub(crate) fn key_range(&self, matrix: usize) -> Option<(u64, u64)> {
        let (rows, entry) = (&self.matrices[matrix], &self.manifest.matrices[matrix]);
        let keys = &rows.keys;
        if rows.lists.is_some() {
            return keys.first().copied().zip(keys.last().copied());
        }
        let MatrixEntry { columns, keys: stored_keys, .. } = entry;
        let is_zero = |row: &usize| is_zero(&rows.values, *row, *columns as usize);
        if stored_keys.is_none() {
            let first = (0..keys.len().min(SEARCHED_ROWS as usize)).find(|row| !is_zero(row)).unwrap_or(0);
            return keys.get(first).copied().zip(keys.last().copied());
        }
        let mut nonzero = (0..keys.len()).filter(|row| !is_zero(row)).map(|row| keys[row]);
        let first = nonzero.next()?;
        Some((first, nonzero.next_back().unwrap_or(first)))
    }
}
