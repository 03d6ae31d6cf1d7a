//! Decodes the messages of an Arrow IPC file or stream.

use arrow_array::RecordBatch;
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::FileDecoder;
use arrow_ipc::{Block, Message, MessageHeader, MetadataVersion, root_as_message};
use arrow_schema::{ArrowError, Schema, SchemaRef};

use super::CONTINUATION;
use crate::panics;

/// Bytes before the metadata of a message: the continuation indicator, and their length.
pub(super) const PREFIX_BYTES: usize = 8;
/// Bytes before each compressed buffer: its decompressed length.
const LENGTH_BYTES: usize = 8;
/// The decompressed length of a buffer that is not compressed.
const NOT_COMPRESSED: i64 = -1;
/// Maximum number of records for each byte of a body: a record takes at least one bit of a column.
const RECORDS_PER_BYTE: usize = 8;
/// The same where the body is compressed: columns of one value, which compress best, take fewer bytes than this.
const COMPRESSED_RECORDS_PER_BYTE: usize = RECORDS_PER_BYTE << 14;
/// Added to the size of a body, so that few records may have columns of nulls alone, which take no bytes.
const LEAST_BODY_BYTES: usize = 64;
/// Maximum number of bytes that one compressed byte can hold: a block of Zstandard repeats a byte 128 Ki times in four bytes.
const DECOMPRESSED_PER_BYTE: i64 = 1 << 15;
/// Maximum size of a record batch in bytes, decompressed.
const BATCH_LIMIT: i64 = 4 << 30;

/// A message with its body, as it is in the input.
pub(super) struct RawMessage {
    bytes: Buffer,
    /// Length of the prefix and the metadata.
    metadata_bytes: usize,
}

impl RawMessage {
    /// `bytes` are the prefix, the metadata and the body.
    pub(super) fn new(bytes: MutableBuffer, metadata_bytes: usize) -> Self {
        Self { bytes: bytes.into(), metadata_bytes }
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn block(&self) -> Block {
        Block::new(0, self.metadata_bytes as i32, (self.bytes.len() - self.metadata_bytes) as i64)
    }

    /// Parses the metadata, and checks the sizes that they give.
    fn checked(&self) -> Result<Message<'_>, String> {
        let (metadata, body) = self.bytes.split_at(self.metadata_bytes);
        let message = parse_metadata(metadata)?;
        let batch = match message.header_type() {
            MessageHeader::RecordBatch => message.header_as_record_batch(),
            MessageHeader::DictionaryBatch => message.header_as_dictionary_batch().and_then(|it| it.data()),
            _ => None,
        };
        let Some(batch) = batch else { return Ok(message) };
        record_count(batch, body.len())?;
        let is_compressed = batch.compression().is_some();
        let mut size = 0i64;
        for buffer in batch.buffers().iter().flatten() {
            let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
            let bytes = range.and_then(|(start, length)| body.get(start..start.checked_add(length)?));
            let bytes = bytes.ok_or("a buffer lies outside of its message")?;
            let length = match bytes.first_chunk::<LENGTH_BYTES>() {
                Some(length) if is_compressed => i64::from_le_bytes(*length),
                _ => NOT_COMPRESSED,
            };
            let length = if length == NOT_COMPRESSED { bytes.len() as i64 } else { length };
            if !(0..=bytes.len() as i64 * DECOMPRESSED_PER_BYTE).contains(&length) {
                let count = bytes.len();
                return Err(format!("a buffer of {count} compressed bytes claims to hold {length} bytes"));
            }
            size = size.saturating_add(length);
            if size > BATCH_LIMIT {
                return Err(format!("a record batch of more than {BATCH_LIMIT} bytes"));
            }
        }
        Ok(message)
    }
}

/// Returns the number of records that a batch states; an error if its body cannot have so many. Memory and time follow from
/// the number before the records are read.
pub(super) fn record_count(batch: arrow_ipc::RecordBatch<'_>, body_bytes: usize) -> Result<usize, String> {
    let per_byte = if batch.compression().is_some() { COMPRESSED_RECORDS_PER_BYTE } else { RECORDS_PER_BYTE };
    let limit = (body_bytes + LEAST_BODY_BYTES).saturating_mul(per_byte);
    usize::try_from(batch.length())
        .ok()
        .filter(|count| *count <= limit)
        .ok_or_else(|| format!("a record batch of {} records in {body_bytes} bytes", batch.length()))
}

/// Returns the length of the metadata that follow this prefix.
pub(super) fn metadata_length(prefix: [u8; PREFIX_BYTES]) -> Result<usize, String> {
    match prefix.strip_prefix(&CONTINUATION).and_then(<[u8]>::first_chunk) {
        Some(length) => Ok(u32::from_le_bytes(*length) as usize),
        None => Err("a message does not begin with the continuation indicator ffffffff (was it written before Arrow 0.15?)".to_owned()),
    }
}

/// Parses the prefix and the metadata of a message. Without the continuation indicator the library takes other bytes for the metadata than
/// those that are checked here.
pub(super) fn parse_metadata(bytes: &[u8]) -> Result<Message<'_>, String> {
    let (prefix, metadata) = bytes.split_first_chunk().ok_or("a message ends within its prefix")?;
    metadata_length(*prefix)?;
    root_as_message(metadata).map_err(|error| format!("a message cannot be read ({error})"))
}

/// Converts a schema of the format.
pub(super) fn schema(encoded: arrow_ipc::Schema<'_>) -> Result<Schema, String> {
    let schema = panics::catch(|| try_fb_to_schema(encoded));
    schema.ok_or("its columns are inconsistent")?.map_err(|error| error.to_string())
}

/// Decodes record batches with the dictionaries that came before them.
pub(super) struct Decoder(FileDecoder);

impl Decoder {
    pub(super) fn new(schema: SchemaRef, version: MetadataVersion) -> Self {
        Self(FileDecoder::new(schema, version))
    }

    /// Reads a dictionary batch.
    pub(super) fn read_dictionary(&mut self, message: &RawMessage) -> Result<(), String> {
        message.checked()?;
        guarded(|| self.0.read_dictionary(&message.block(), &message.bytes))
    }

    /// Reads a record batch.
    pub(super) fn read_batch(&self, message: &RawMessage) -> Result<RecordBatch, String> {
        message.checked()?;
        let batch = guarded(|| self.0.read_record_batch(&message.block(), &message.bytes))?;
        batch.ok_or_else(|| "a message is no record batch".to_owned())
    }
}

fn guarded<R>(work: impl FnOnce() -> Result<R, ArrowError>) -> Result<R, String> {
    panics::catch(work).ok_or("a record batch is inconsistent")?.map_err(|error| error.to_string())
}
