//! Files: the footer has the positions of dictionaries and record batches.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::MutableBuffer;
use arrow_ipc::{Block, MessageHeader, root_as_footer};
use arrow_schema::SchemaRef;

use super::decoder::{Decoder, PREFIX_BYTES, RawMessage, parse_metadata, record_count, schema};
use super::{FILE_MAGIC, damaged};
use crate::arrow::{BatchSize, IndexedBatches};
use crate::byte_source::ByteSource;
use crate::error::Error;

/// The end of a file: the length of the footer, and the magic bytes.
const END_BYTES: usize = 4 + FILE_MAGIC.len();

/// An opened file.
pub(super) struct IpcFile {
    name: String,
    bytes: ByteSource,
    size_bytes: u64,
    schema: SchemaRef,
    decoder: Decoder,
    batches: Vec<BatchBlock>,
}

/// Where a record batch is, and its number of records.
struct BatchBlock {
    block: Block,
    records: usize,
}

impl IpcFile {
    pub(super) fn open(name: &str, bytes: ByteSource, size_bytes: u64) -> Result<Self, Error> {
        Self::read(name, bytes, size_bytes).map_err(|reason| damaged(name, &reason))
    }

    fn read(name: &str, bytes: ByteSource, size_bytes: u64) -> Result<Self, String> {
        let footer = read_footer(&bytes, size_bytes)?;
        let footer =
            root_as_footer(&footer).map_err(|error| format!("its footer cannot be read ({error})"))?;
        let schema: SchemaRef = Arc::new(schema(footer.schema().ok_or("its footer has no columns")?)?);
        let decoder = Decoder::new(Arc::clone(&schema), footer.version());
        let (name, batches) = (name.to_owned(), Vec::new());
        let mut file = Self { name, bytes, size_bytes, schema, decoder, batches };
        // Dictionaries add up in memory, so the footer may not name the same bytes again and again.
        let mut unread = size_bytes;
        for block in footer.dictionaries().iter().flatten() {
            let message = file.message(block)?;
            unread = unread
                .checked_sub(message.size_bytes())
                .ok_or("its dictionaries are longer than the file")?;
            file.decoder.read_dictionary(&message)?;
        }
        for block in footer.recordBatches().iter().flatten() {
            let records = file.record_count(block)?;
            file.batches.push(BatchBlock { block: *block, records });
        }
        Ok(file)
    }

    pub(super) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Returns the lengths of the metadata and the body of a block that lies within the file.
    fn lengths(&self, block: &Block) -> Result<(usize, usize), String> {
        let lengths = || {
            let metadata = usize::try_from(block.metaDataLength()).ok()?;
            let body = usize::try_from(block.bodyLength()).ok()?;
            let start = u64::try_from(block.offset()).ok()?;
            let end = start.checked_add(metadata as u64)?.checked_add(body as u64)?;
            (end <= self.size_bytes && metadata >= PREFIX_BYTES).then_some((metadata, body))
        };
        lengths().ok_or_else(|| "a record batch lies outside of the file".to_owned())
    }

    fn message(&self, block: &Block) -> Result<RawMessage, String> {
        let (metadata, body) = self.lengths(block)?;
        let mut bytes = MutableBuffer::from_len_zeroed(metadata + body);
        self.bytes.read_at(block.offset() as u64, &mut bytes)?;
        Ok(RawMessage::new(bytes, metadata))
    }

    fn record_count(&self, block: &Block) -> Result<usize, String> {
        let (metadata, body) = self.lengths(block)?;
        let mut bytes = vec![0; metadata];
        self.bytes.read_at(block.offset() as u64, &mut bytes)?;
        let message = parse_metadata(&bytes)?;
        if message.header_type() != MessageHeader::RecordBatch {
            return Err("its footer names a message that is no record batch".to_owned());
        }
        record_count(message.header_as_record_batch().ok_or("a record batch cannot be read")?, body)
    }
}

fn read_footer(bytes: &ByteSource, size_bytes: u64) -> Result<Vec<u8>, String> {
    let mut end = [0; END_BYTES];
    let start = size_bytes.checked_sub(END_BYTES as u64).ok_or("its footer is missing")?;
    bytes.read_at(start, &mut end)?;
    let (length, magic) = end.split_first_chunk::<4>().expect("it has ten bytes");
    if magic != FILE_MAGIC {
        return Err("its footer is missing".to_owned());
    }
    let length = u64::from(u32::from_le_bytes(*length));
    let start = start.checked_sub(length).ok_or_else(|| format!("a footer of {length} bytes"))?;
    let mut footer = vec![0; length as usize];
    bytes.read_at(start, &mut footer)?;
    Ok(footer)
}

impl IndexedBatches for IpcFile {
    fn sizes(&self) -> Vec<BatchSize> {
        let size = |BatchBlock { block, records }: &BatchBlock| BatchSize {
            records: *records,
            bytes: block.bodyLength() as u64 + block.metaDataLength() as u64,
        };
        self.batches.iter().map(size).collect()
    }

    fn read(&self, index: usize) -> Result<RecordBatch, Error> {
        let BatchBlock { block, records } = &self.batches[index];
        let batch = self.message(block).and_then(|message| self.decoder.read_batch(&message));
        let fault = |reason: String| damaged(&self.name, &format!("record batch {index}: {reason}"));
        let batch = batch.map_err(fault)?;
        if batch.num_rows() != *records {
            return Err(fault(format!("{} records, not {records}", batch.num_rows())));
        }
        Ok(batch)
    }
}
