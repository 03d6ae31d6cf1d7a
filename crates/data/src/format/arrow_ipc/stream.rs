//! Streams: a schema, then dictionaries and record batches until the end.

use std::io::{Cursor, Read};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::MutableBuffer;
use arrow_ipc::MessageHeader;
use arrow_schema::SchemaRef;

use super::decoder::{Decoder, PREFIX_BYTES, RawMessage, metadata_length, parse_metadata, schema};
use super::{FILE_MAGIC, damaged};
use crate::arrow::{BatchIterator, BatchSequence};
use crate::compression::ByteStream;
use crate::error::Error;
use crate::input::Input;

/// In a file the stream begins at a multiple of this number of bytes, after the magic bytes and zeros.
const ALIGNMENT: usize = 8;
/// Maximum number of bytes that are allocated before they have arrived.
const READ_BYTES: usize = 1 << 20;

/// An opened stream. Its schema is known from its first bytes.
pub(super) struct IpcStream {
    input: Input,
    schema: SchemaRef,
    first: Option<RecordBatch>,
}

impl IpcStream {
    pub(super) fn open(input: &Input) -> Result<Self, Error> {
        let head = input.head()?;
        let mut reader = MessageReader::open(input.name(), Box::new(Cursor::new(head.bytes)))?;
        // The first batch may be longer than the bytes that were sampled.
        let first = reader.next_batch().ok().flatten().map(|(batch, _)| batch);
        Ok(Self { input: input.clone(), schema: Arc::clone(&reader.schema), first })
    }

    pub(super) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl BatchSequence for IpcStream {
    fn first(&self) -> Option<RecordBatch> {
        self.first.clone()
    }

    fn is_rereadable(&self) -> bool {
        self.input.is_rereadable()
    }

    fn open(&self) -> Result<BatchIterator, Error> {
        let bytes = StreamBytes(self.input.open_at(0)?);
        let mut reader = MessageReader::open(self.input.name(), Box::new(bytes))?;
        if reader.schema != self.schema {
            return Err(damaged(self.input.name(), "its columns have changed since it was opened"));
        }
        Ok(Box::new(std::iter::from_fn(move || reader.next_batch().transpose())))
    }
}

/// The bytes of an input for the traits of the standard library. An error carries the error of the input.
struct StreamBytes(ByteStream);

impl Read for StreamBytes {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer).map_err(std::io::Error::other)
    }
}

struct MessageReader {
    name: String,
    bytes: Box<dyn Read + Send>,
    schema: SchemaRef,
    decoder: Decoder,
    is_at_end: bool,
}

impl MessageReader {
    /// Reads the schema.
    fn open(name: &str, bytes: Box<dyn Read + Send>) -> Result<Self, Error> {
        let fault = |reason: String| damaged(name, &reason);
        let mut bytes = stream_of(bytes).map_err(|error| fault(read_fault(&error)))?;
        let metadata =
            read_metadata(&mut bytes).map_err(fault)?.ok_or_else(|| fault("it is empty".to_owned()))?;
        let message = parse_metadata(&metadata).map_err(fault)?;
        let encoded = message
            .header_as_schema()
            .ok_or_else(|| fault("it does not begin with its columns".to_owned()))?;
        let schema: SchemaRef = Arc::new(schema(encoded).map_err(fault)?);
        let decoder = Decoder::new(Arc::clone(&schema), message.version());
        Ok(Self { name: name.to_owned(), bytes, schema, decoder, is_at_end: false })
    }

    /// Returns the next record batch and the bytes that were read; `None` at the end.
    fn next_batch(&mut self) -> Result<Option<(RecordBatch, u64)>, Error> {
        let mut size_bytes = 0;
        while !self.is_at_end {
            let next = self.next_message().map_err(|reason| damaged(&self.name, &reason))?;
            let Some((kind, message)) = next else {
                self.is_at_end = true;
                break;
            };
            size_bytes += message.size_bytes();
            let fault = |reason: String| damaged(&self.name, &reason);
            match kind {
                MessageHeader::DictionaryBatch => self.decoder.read_dictionary(&message).map_err(fault)?,
                MessageHeader::RecordBatch => {
                    let batch = self.decoder.read_batch(&message).map_err(fault)?;
                    return Ok(Some((batch, size_bytes)));
                }
                kind => return Err(fault(format!("an unexpected message {kind:?}"))),
            }
        }
        Ok(None)
    }

    fn next_message(&mut self) -> Result<Option<(MessageHeader, RawMessage)>, String> {
        let Some(metadata) = read_metadata(&mut self.bytes)? else { return Ok(None) };
        let message = parse_metadata(&metadata)?;
        let kind = message.header_type();
        let length = usize::try_from(message.bodyLength()).map_err(|_| "a message of negative length")?;
        let mut bytes = MutableBuffer::with_capacity(metadata.len() + length.min(READ_BYTES));
        bytes.extend_from_slice(&metadata);
        let mut missing = length;
        while missing > 0 {
            let (start, count) = (bytes.len(), missing.min(READ_BYTES));
            bytes.resize(start + count, 0);
            self.bytes.read_exact(&mut bytes[start..]).map_err(|error| read_fault(&error))?;
            missing -= count;
        }
        Ok(Some((kind, RawMessage::new(bytes, metadata.len()))))
    }
}

/// Skips what is before the stream if the bytes are those of a file.
fn stream_of(mut bytes: Box<dyn Read + Send>) -> std::io::Result<Box<dyn Read + Send>> {
    let mut start = [0; ALIGNMENT];
    bytes.read_exact(&mut start)?;
    if start.starts_with(FILE_MAGIC) {
        bytes.read_exact(&mut start)?;
        while start == [0; ALIGNMENT] {
            bytes.read_exact(&mut start)?;
        }
    }
    Ok(Box::new(Cursor::new(start).chain(bytes)))
}

/// Reads the prefix and the metadata of a message; `None` at the end of the stream.
fn read_metadata(bytes: &mut dyn Read) -> Result<Option<Vec<u8>>, String> {
    let mut prefix = [0; PREFIX_BYTES];
    // A stream may end without a mark of its end.
    let count = read_up_to(bytes, &mut prefix).map_err(|error| read_fault(&error))?;
    match count {
        0 => return Ok(None),
        PREFIX_BYTES => {}
        _ => return Err("it ends within a message".to_owned()),
    }
    let length = metadata_length(prefix)?;
    if length == 0 {
        return Ok(None);
    }
    let mut metadata = prefix.to_vec();
    let taken = bytes.take(length as u64).read_to_end(&mut metadata).map_err(|error| read_fault(&error))?;
    if taken < length {
        return Err("it ends within a message".to_owned());
    }
    Ok(Some(metadata))
}

fn read_up_to(bytes: &mut dyn Read, out: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < out.len() {
        match bytes.read(&mut out[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

fn read_fault(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "it ends within a message".to_owned(),
        _ => error.to_string(),
    }
}
