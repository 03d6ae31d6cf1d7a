//! What the blocks of a file contain. The states come first, so that a task finds its own without reading the rows.

use std::fmt;
use std::io::{Read, Write};

use matrix::{ElementType, MatrixSpec, OwnedValues, RowBlock};

use crate::block::{BlockReader, BlockWriter};
use crate::error::Error;

const DRIVER: u32 = 1;
const TASK: u32 = 2;
const ROWS: u32 = 3;

/// Rows of which moment a block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsOf {
    /// Those of the checkpoint.
    Now,
    /// The copy of the best epoch so far, which early stopping keeps.
    Best,
}

/// What a task keeps besides the matrices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedTask {
    pub algorithm: String,
    pub task: u32,
    pub task_count: u32,
    /// The epoch that comes next or continues.
    pub epoch: u64,
    pub clock: u64,
    pub bytes: Vec<u8>,
}

/// The content of a block.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// What the driver of the training keeps.
    Driver(Vec<u8>),
    Task(SavedTask),
    Rows {
        /// The position of the matrix in the manifest.
        matrix: u32,
        of: RowsOf,
        rows: RowBlock,
    },
}

/// Writes the contents of a file.
#[derive(Debug)]
pub struct PartWriter<W>(BlockWriter<W>);

impl<W: Write> PartWriter<W> {
    /// # Errors
    /// Those of `out`, as of all functions here.
    pub fn new(out: W) -> std::io::Result<Self> {
        BlockWriter::new(out).map(Self)
    }

    pub fn write_driver(&mut self, state: &[u8]) -> std::io::Result<()> {
        self.0.write(DRIVER, &[state])
    }

    pub fn write_task(&mut self, task: &SavedTask) -> std::io::Result<()> {
        let mut bytes = Vec::with_capacity(task.bytes.len() + task.algorithm.len() + 32);
        bytes.extend(task.task.to_le_bytes());
        bytes.extend(task.task_count.to_le_bytes());
        bytes.extend(task.epoch.to_le_bytes());
        bytes.extend(task.clock.to_le_bytes());
        bytes.extend((task.algorithm.len() as u32).to_le_bytes());
        bytes.extend(task.algorithm.as_bytes());
        bytes.extend(&task.bytes);
        self.0.write(TASK, &[&bytes])
    }

    /// Rows of a matrix. Each key is in one block of a matrix and moment; the blocks are in no order.
    pub fn write_rows(&mut self, matrix: u32, of: RowsOf, rows: &RowBlock) -> std::io::Result<()> {
        let mut start = Vec::with_capacity(16);
        start.extend(matrix.to_le_bytes());
        start.extend(u32::from(of == RowsOf::Best).to_le_bytes());
        start.extend((rows.keys.len() as u64).to_le_bytes());
        let slots = rows.slots.iter().map(|(_, slot)| slot.as_values().bytes());
        let parts: Vec<&[u8]> = std::iter::once(&start[..]).chain(rows.parts()).chain(slots).collect();
        self.0.write(ROWS, &parts)
    }

    /// Writes the end; returns `out` and the number of bytes of the file.
    pub fn finish(self) -> std::io::Result<(W, u64)> {
        self.0.finish()
    }
}

#[cfg(not(target_endian = "little"))]
compile_error!("numbers are written as they are in memory, and the format is little-endian");

const OTHER_CONTENT: &str = "a block does not have the content of its kind";

/// What [`PartReader::check`] has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedBlock {
    pub row_count: u64,
    /// Whether it has the state of a task.
    pub is_task: bool,
}

/// Reads the contents of a file.
pub struct PartReader<R> {
    blocks: BlockReader<R>,
    specs: Vec<MatrixSpec>,
    /// The bytes of the last block: the next one needs no new memory.
    bytes: Vec<u8>,
}

impl<R> fmt::Debug for PartReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartReader").field("specs", &self.specs.len()).finish_non_exhaustive()
    }
}

impl<R: Read> PartReader<R> {
    /// Reads a file of a checkpoint whose matrices are `specs`.
    ///
    /// # Errors
    /// [`Error::Damaged`] and [`Error::NewerFormat`].
    pub fn new(input: R, specs: &[MatrixSpec], location: &str, path: &str) -> Result<Self, Error> {
        let blocks = BlockReader::new(input, location, path)?;
        Ok(Self { blocks, specs: specs.to_vec(), bytes: Vec::new() })
    }

    /// Checks the next block like [`Self::read`], but does not decode rows; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn check(&mut self) -> Result<Option<CheckedBlock>, Error> {
        let start = self.blocks.offset();
        let Some(kind) = self.blocks.read(&mut self.bytes)? else { return Ok(None) };
        let bytes = &self.bytes;
        let checked = match kind {
            DRIVER => Some(CheckedBlock { row_count: 0, is_task: false }),
            TASK => task(bytes).map(|_| CheckedBlock { row_count: 0, is_task: true }),
            ROWS => RowsBlock::of(&self.specs, bytes)
                .map(|block| CheckedBlock { row_count: block.count as u64, is_task: false }),
            _ => None,
        };
        checked.map(Some).ok_or_else(|| self.blocks.damaged(start, OTHER_CONTENT))
    }

    /// The next content; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn read(&mut self) -> Result<Option<Content>, Error> {
        let start = self.blocks.offset();
        let Some(kind) = self.blocks.read(&mut self.bytes)? else { return Ok(None) };
        let bytes = &self.bytes;
        let content = match kind {
            DRIVER => Some(Content::Driver(bytes.clone())),
            TASK => task(bytes).map(Content::Task),
            ROWS => rows(&self.specs, bytes),
            _ => None,
        };
        content.map(Some).ok_or_else(|| self.blocks.damaged(start, OTHER_CONTENT))
    }
}

/// Takes numbers from the front of bytes; `None` if there are too few.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn keys(&mut self, count: usize) -> Option<Vec<u64>> {
        let bytes = self.take(count.checked_mul(size_of::<u64>())?)?;
        Some(bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
    }

    fn values(&mut self, element: ElementType, count: usize) -> Option<OwnedValues> {
        let bytes = self.take(count.checked_mul(element.size())?)?;
        let mut values = OwnedValues::zeros(element, count);
        values.bytes_mut().copy_from_slice(bytes);
        Some(values)
    }
}

fn task(bytes: &[u8]) -> Option<SavedTask> {
    let mut fields = Fields(bytes);
    let (task, task_count) = (fields.u32()?, fields.u32()?);
    let (epoch, clock) = (fields.u64()?, fields.u64()?);
    let length = fields.u32()? as usize;
    let algorithm = String::from_utf8(fields.take(length)?.to_vec()).ok()?;
    Some(SavedTask { algorithm, task, task_count, epoch, clock, bytes: fields.0.to_vec() })
}

/// A block of rows whose length fits its number of rows.
struct RowsBlock<'a> {
    matrix: u32,
    of: RowsOf,
    spec: &'a MatrixSpec,
    count: usize,
    /// Keys, values and slots.
    fields: Fields<'a>,
}

impl<'a> RowsBlock<'a> {
    fn of(specs: &'a [MatrixSpec], bytes: &'a [u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let matrix = fields.u32()?;
        let of = match fields.u32()? {
            0 => RowsOf::Now,
            1 => RowsOf::Best,
            _ => return None,
        };
        let spec = specs.get(matrix as usize)?;
        let count = usize::try_from(fields.u64()?).ok()?;
        let (width, element) = (spec.rule.row_width(spec.columns_of_table()), spec.element.size());
        let row_bytes = size_of::<u64>() + width * element;
        if !spec.storage.has_lists() {
            let fits = count.checked_mul(row_bytes)? == fields.0.len();
            return fits.then_some(Self { matrix, of, spec, count, fields });
        }
        // The keys and the lengths of the rows; all other bytes are those of the entries.
        let entries = fields.0.len().checked_sub(count.checked_mul(2 * size_of::<u64>())?)?;
        entries.is_multiple_of(row_bytes).then_some(Self { matrix, of, spec, count, fields })
    }
}

fn rows(specs: &[MatrixSpec], bytes: &[u8]) -> Option<Content> {
    let RowsBlock { matrix, of, spec, count, mut fields } = RowsBlock::of(specs, bytes)?;
    let mut keys = fields.keys(count)?;
    let value_count = if spec.storage.has_lists() {
        let lengths = fields.keys(count)?;
        let entry_bytes = size_of::<u64>() + spec.columns as usize * spec.element.size();
        let entries = fields.keys(fields.0.len() / entry_bytes)?;
        let value_count = entries.len() * spec.columns as usize;
        keys = std::iter::once(count as u64).chain(keys).chain(lengths).chain(entries).collect();
        value_count
    } else {
        count.checked_mul(spec.rule.row_width(spec.columns_of_table()))?
    };
    let values = fields.values(spec.element, value_count)?;
    let rows = RowBlock::from_sections(spec, keys, values, true).ok()?;
    fields.0.is_empty().then_some(Content::Rows { matrix, of, rows })
}

#[cfg(test)]
mod tests;
