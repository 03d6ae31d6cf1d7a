//! The pages of one column of one row group, for the Arrow reader of the library.
//!
//! The library trusts the sizes and counts in headers, and reserves memory for them. This module compares each number
//! with the available bytes, or with a limit, before it returns a page; it verifies checksums where there are any.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;

use super::checks::chunk_range;
use super::codec::decompress;
use super::delta::expanded_size;
use super::fault;
use super::page_header::{PageHeader, PageKind};
use crate::byte_source::ByteSource;

/// Bytes per read, unless a page is larger.
const READ_BYTES: usize = 256 << 10;

/// Limit of the bytes of a page header: its statistics hold two values.
const HEADER_LIMIT: usize = 1 << 20;

/// Limit of the bytes of a page; writers end a page at 1 MB, some at 100 MB.
const PAGE_LIMIT: usize = 256 << 20;

/// Limit of the memory, in bytes, that entries of lists and strings with their prefixes take for one batch.
const BATCH_LIMIT: u64 = 256 << 20;

/// Bytes of memory per entry of a list: two levels, a value, and the decoded value.
const ENTRY_BYTES: u64 = 16;

/// Least limit of the bytes of all open pages, over all columns.
const OPEN_LIMIT: u64 = 512 << 20;

/// The limit of a row group is this many times its bytes where that is more than [`OPEN_LIMIT`].
const OPEN_RATIO: u64 = 8;

/// The memory that all columns of a row group use.
pub(super) struct MemoryBudget {
    /// Bytes of open pages, and their limit.
    open: AtomicU64,
    open_limit: u64,
    /// Bytes that the pages of this batch need beyond their own.
    batch: AtomicU64,
}

impl MemoryBudget {
    /// Makes the budget of a row group of `size_bytes` in the file.
    pub(super) fn new(size_bytes: u64) -> Self {
        let open_limit = OPEN_LIMIT.max(size_bytes.saturating_mul(OPEN_RATIO));
        Self { open: AtomicU64::new(0), open_limit, batch: AtomicU64::new(0) }
    }

    /// Begins the next batch and frees the memory of the last one.
    pub(super) fn start_batch(&self) {
        self.batch.store(0, Ordering::Relaxed);
    }

    pub(super) fn open(&self, size: u64) -> Result<()> {
        let open = self.open.fetch_add(size, Ordering::Relaxed) + size;
        if open > self.open_limit {
            let limit = self.open_limit;
            return Err(fault(format!("pages of {open} bytes open at once, which is more than {limit}")));
        }
        Ok(())
    }

    pub(super) fn close(&self, size: u64) {
        self.open.fetch_sub(size, Ordering::Relaxed);
    }

    /// Returns the bytes of all open pages.
    #[cfg(test)]
    pub(super) fn open_bytes(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Reserves memory for a page; the first page of a batch may take the whole limit.
    pub(super) fn reserve(&self, size: u64) -> Result<()> {
        let before = self.batch.fetch_add(size, Ordering::Relaxed);
        if before.saturating_add(size) > BATCH_LIMIT {
            let what = "a record, or a page, whose lists or strings take";
            return Err(fault(format!(
                "{what} {size} bytes after {before}, which is more than {BATCH_LIMIT}"
            )));
        }
        Ok(())
    }
}

/// The properties of a column that the reader needs.
struct ColumnTraits {
    physical: Physical,
    /// Least bytes of a value in plain encoding.
    value_bytes: usize,
    has_repetitions: bool,
    has_definitions: bool,
    codec: Compression,
}

/// The pages of a column chunk, one after another.
pub(super) struct ChunkPages {
    file: ByteSource,
    /// The range of the chunk that is not read yet; `buffered` are bytes that are read but not used yet.
    at: u64,
    end: u64,
    buffered: Bytes,
    /// Reads the rest of the chunk from a store, ahead of its use.
    reader: Option<Box<dyn Read + Send>>,
    /// Values that remain: some writers leave bytes behind the last page.
    values_left: u64,
    next: Option<PageHeader>,
    traits: ColumnTraits,
    budget: Arc<MemoryBudget>,
    /// Bytes of the dictionary and of the page that were returned last.
    dictionary_size: u64,
    page_size: u64,
}

impl ChunkPages {
    /// Opens a column chunk. Its range must have been checked against the size of the file.
    pub(super) fn new(file: ByteSource, column: &ColumnChunkMetaData, budget: Arc<MemoryBudget>) -> Self {
        let descriptor = column.column_descr();
        let value_bytes = match descriptor.physical_type() {
            Physical::BOOLEAN => 1,
            // The length of a string precedes it.
            Physical::INT32 | Physical::FLOAT | Physical::BYTE_ARRAY => 4,
            Physical::INT64 | Physical::DOUBLE => 8,
            Physical::INT96 => 12,
            Physical::FIXED_LEN_BYTE_ARRAY => descriptor.type_length().max(1) as usize,
        };
        let shape = ColumnTraits {
            physical: descriptor.physical_type(),
            value_bytes,
            has_repetitions: descriptor.max_rep_level() > 0,
            has_definitions: descriptor.max_def_level() > 0,
            codec: column.compression(),
        };
        let (at, size) = chunk_range(column).expect("the metadata were checked");
        // If it cannot be opened, neither can the first read, which says why.
        let reader = file.stored_reader(at..at + size).ok().flatten();
        Self {
            file,
            at,
            end: at + size,
            buffered: Bytes::new(),
            reader,
            values_left: column.num_values() as u64,
            next: None,
            traits: shape,
            budget,
            dictionary_size: 0,
            page_size: 0,
        }
    }

    /// Reads until `count` bytes are buffered, or the chunk ends.
    fn fill_buffer(&mut self, count: usize) -> Result<()> {
        let missing = count.saturating_sub(self.buffered.len());
        if missing == 0 || self.at == self.end {
            return Ok(());
        }
        let size = missing.max(READ_BYTES).min(usize::try_from(self.end - self.at).unwrap_or(usize::MAX));
        let mut bytes = vec![0; self.buffered.len() + size];
        let (old, new) = bytes.split_at_mut(self.buffered.len());
        old.copy_from_slice(&self.buffered);
        match &mut self.reader {
            Some(reader) => reader.read_exact(new).map_err(|source| fault(source.to_string()))?,
            None => self.file.read_at(self.at, new).map_err(fault)?,
        }
        self.at += size as u64;
        self.buffered = bytes.into();
        Ok(())
    }

    /// Returns the header of the next page that has values or a dictionary; `None` at the end.
    fn peek(&mut self) -> Result<Option<&PageHeader>> {
        while self.next.is_none() {
            let mut wanted = 1 << 10;
            let header = loop {
                self.fill_buffer(wanted)?;
                if self.buffered.is_empty() || self.values_left == 0 {
                    return Ok(None);
                }
                match PageHeader::parse(&self.buffered)? {
                    Some(header) => break header,
                    None if self.at < self.end && self.buffered.len() < HEADER_LIMIT => {
                        wanted = (self.buffered.len() * 2).min(HEADER_LIMIT);
                    }
                    None => return Err(fault("a page header that does not end")),
                }
            };
            let left = (self.end - self.at) + self.buffered.len() as u64;
            if (header.header_size + header.compressed_size) as u64 > left {
                return Err(fault(format!(
                    "a page of {} bytes, of which {left} are present",
                    header.compressed_size
                )));
            }
            if header.uncompressed_size > PAGE_LIMIT {
                let size = header.uncompressed_size;
                return Err(fault(format!("a page of {size} bytes, which is more than {PAGE_LIMIT}")));
            }
            if header.kind == PageKind::Other {
                self.read_page(&header)?;
            } else {
                self.next = Some(header);
            }
        }
        Ok(self.next.as_ref())
    }

    /// Reads the page after its header, as it is in the file.
    fn read_page(&mut self, header: &PageHeader) -> Result<Bytes> {
        self.fill_buffer(header.header_size + header.compressed_size)?;
        drop(self.buffered.split_to(header.header_size));
        Ok(self.buffered.split_to(header.compressed_size))
    }

    fn page(&mut self, header: &PageHeader) -> Result<Page> {
        let bytes = self.read_page(header)?;
        if header.checksum.is_some_and(|checksum| checksum != crc32fast::hash(&bytes)) {
            return Err(fault("a page whose checksum is not that of its bytes"));
        }
        let size = header.uncompressed_size as u64;
        let open =
            if header.kind == PageKind::Dictionary { &mut self.dictionary_size } else { &mut self.page_size };
        self.budget.close(std::mem::replace(open, size));
        self.budget.open(size)?;
        let buf = self.decompress(header, bytes)?;
        self.check(header, &buf)?;
        let (num_values, encoding) = (header.num_values, header.encoding()?);
        Ok(match header.kind {
            PageKind::Dictionary => Page::DictionaryPage { buf, num_values, encoding, is_sorted: false },
            PageKind::DataV2 => Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls: header.num_nulls,
                num_rows: header.num_rows,
                def_levels_byte_len: header.definition_size,
                rep_levels_byte_len: header.repetition_size,
                is_compressed: false,
                statistics: None,
            },
            PageKind::Data | PageKind::Other => Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding: header.definition_encoding()?,
                rep_level_encoding: header.repetition_encoding()?,
                statistics: None,
            },
        })
    }

    fn decompress(&self, header: &PageHeader, bytes: Bytes) -> Result<Bytes> {
        let (codec, size) = (self.traits.codec, header.uncompressed_size);
        // The levels of a page v2 are not compressed.
        let levels = match header.kind {
            PageKind::DataV2 => header.definition_size as usize + header.repetition_size as usize,
            PageKind::Data | PageKind::Dictionary | PageKind::Other => 0,
        };
        if levels > size.min(bytes.len()) {
            return Err(fault(format!("levels of {levels} bytes in a page of {}", bytes.len())));
        }
        if codec == Compression::UNCOMPRESSED || header.is_uncompressed {
            if bytes.len() != size {
                return Err(fault(format!("a page of {} bytes, but {size} in its header", bytes.len())));
            }
            return Ok(bytes);
        }
        let mut out = bytes[..levels].to_vec();
        decompress(codec, &bytes[levels..], size - levels, &mut out)?;
        Ok(out.into())
    }

    /// Fails when the counts of a page are impossible.
    fn check(&self, header: &PageHeader, bytes: &[u8]) -> Result<()> {
        let count = header.num_values;
        if header.kind == PageKind::Dictionary {
            if count as usize > bytes.len() / self.traits.value_bytes {
                return Err(fault(format!("a dictionary of {count} values in {} bytes", bytes.len())));
            }
            return Ok(());
        }
        if u64::from(count) > self.values_left {
            let left = self.values_left;
            return Err(fault(format!("a page of {count} values in a column that has {left} more")));
        }
        if header.num_nulls > count || header.num_rows > count {
            let (nulls, rows) = (header.num_nulls, header.num_rows);
            return Err(fault(format!("a page of {count} values, {nulls} nulls, {rows} records")));
        }
        if self.traits.has_repetitions {
            self.budget.reserve(u64::from(count) * ENTRY_BYTES)?;
        }
        let has_prefixes = match header.encoding()? {
            Encoding::DELTA_BYTE_ARRAY => true,
            Encoding::DELTA_LENGTH_BYTE_ARRAY => false,
            _ => return Ok(()),
        };
        if !matches!(self.traits.physical, Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY) {
            return Err(fault(format!("values of {} encoded as strings", self.traits.physical)));
        }
        let values = values_of(header, bytes, [self.traits.has_repetitions, self.traits.has_definitions]);
        let values = values.ok_or_else(|| fault("a page that ends within its levels"))?;
        let size = expanded_size(values, count, has_prefixes)?;
        if has_prefixes {
            return self.budget.reserve(size);
        }
        if size > values.len() as u64 {
            return Err(fault(format!("strings of {size} bytes in a page of {}", values.len())));
        }
        Ok(())
    }
}

/// Returns the bytes after the levels of a page.
fn values_of<'a>(header: &PageHeader, bytes: &'a [u8], levels: [bool; 2]) -> Option<&'a [u8]> {
    if header.kind == PageKind::DataV2 {
        return bytes.get(header.definition_size as usize + header.repetition_size as usize..);
    }
    let behind = |bytes: &'a [u8]| {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        rest.get(u32::from_le_bytes(*length) as usize..)
    };
    levels.into_iter().filter(|has| *has).try_fold(bytes, |rest, _| behind(rest))
}

impl Drop for ChunkPages {
    fn drop(&mut self) {
        self.budget.close(self.dictionary_size + self.page_size);
    }
}

impl Iterator for ChunkPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for ChunkPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.peek()?;
        let Some(header) = self.next.take() else {
            return match self.values_left {
                0 => Ok(None),
                left => Err(ParquetError::EOF(format!("a column ends {left} values early"))),
            };
        };
        let page = self.page(&header)?;
        if header.kind != PageKind::Dictionary {
            self.values_left -= u64::from(header.num_values);
        }
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        Ok(self.peek()?.map(|header| PageMetadata {
            num_rows: (header.kind == PageKind::DataV2).then_some(header.num_rows as usize),
            num_levels: Some(header.num_values as usize),
            is_dict: header.kind == PageKind::Dictionary,
        }))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.get_next_page().map(drop)
    }
}
