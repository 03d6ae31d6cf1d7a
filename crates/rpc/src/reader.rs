//! Turns bytes into frames. The reader does no I/O: its user asks where the next bytes go ([`FrameReader::space`]),
//! reports how many arrived, and takes frames until there are no more. It may stop between any two bytes without losing
//! any.

use crate::error::Error;
use crate::frame::Frame;
use crate::header::{HEADER_BYTES, Header};
use crate::limits::FrameLimits;
use crate::message::Message;

/// Sections with at least this many missing bytes are read directly into their memory. Shorter remainders go through
/// the buffer, where one read brings several small frames.
const DIRECT_BYTES: usize = 8 << 10;

/// Collects bytes and returns frames.
#[derive(Debug)]
pub struct FrameReader {
    limits: FrameLimits,
    buffer: Vec<u8>,
    /// The bytes `start..end` of the buffer are filled and not yet consumed.
    start: usize,
    end: usize,
    partial: Option<PartialFrame>,
}

/// The messages of whole frames, one after the other.
pub fn read_messages(mut bytes: &[u8], limits: &FrameLimits) -> Result<Vec<Message>, Error> {
    let mut reader = FrameReader::new(*limits, bytes.len());
    let mut messages = Vec::new();
    loop {
        while let Some(frame) = reader.frame()? {
            messages.push(Message::from_frame(frame)?);
        }
        if bytes.is_empty() {
            return if reader.is_between_frames() { Ok(messages) } else { Err(Error::Closed) };
        }
        let space = reader.space();
        let count = space.len().min(bytes.len());
        space[..count].copy_from_slice(&bytes[..count]);
        bytes = &bytes[count..];
        reader.advance(count);
    }
}

/// A frame whose header has arrived.
#[derive(Debug)]
struct PartialFrame {
    frame: Frame,
    /// Number of bytes of the padded body that have arrived.
    filled: usize,
    /// The CRC-32C of those bytes.
    sum: u32,
}

impl FrameReader {
    /// A reader with a buffer of `buffer_bytes`, at least one header.
    pub fn new(limits: FrameLimits, buffer_bytes: usize) -> Self {
        let buffer = vec![0; buffer_bytes.max(HEADER_BYTES)];
        Self { limits, buffer, start: 0, end: 0, partial: None }
    }

    /// Changes the limits and enlarges the buffer when the other end has authenticated.
    pub fn set_limits(&mut self, limits: FrameLimits, buffer_bytes: usize) {
        self.limits = limits;
        if self.buffer.len() < buffer_bytes {
            self.buffer.resize(buffer_bytes, 0);
        }
    }

    /// Where the next bytes go; never empty.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.reads_direct()
            && let Some(partial) = &mut self.partial
        {
            return partial.frame.section_from(partial.filled);
        }
        if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.buffer[self.end..]
    }

    /// Reports that `count` bytes were written into [`Self::space`].
    pub fn advance(&mut self, count: usize) {
        if !self.reads_direct() {
            self.end += count;
        } else if let Some(partial) = &mut self.partial {
            partial.advance(count);
        }
    }

    /// The next frame, if all of it has arrived. After an error the rest of the stream cannot be parsed.
    pub fn frame(&mut self) -> Result<Option<Frame>, Error> {
        if self.partial.is_none() {
            let Some(bytes) = self.buffer[self.start..self.end].first_chunk::<HEADER_BYTES>() else {
                // The bytes that are there may already show that no frame can follow.
                return check_magic(&self.buffer[self.start..self.end]).map(|()| None);
            };
            let header = Header::from_bytes(bytes, &self.limits)?;
            self.start += HEADER_BYTES;
            self.partial = Some(PartialFrame { frame: Frame::with_room(header), filled: 0, sum: 0 });
        }
        let Some(partial) = &mut self.partial else { return Ok(None) };
        loop {
            let rest = partial.frame.section_from(partial.filled);
            if rest.is_empty() {
                break;
            }
            let count = rest.len().min(self.end - self.start);
            if count == 0 {
                return Ok(None);
            }
            rest[..count].copy_from_slice(&self.buffer[self.start..self.start + count]);
            self.start += count;
            partial.advance(count);
        }
        let Some(PartialFrame { mut frame, sum, .. }) = self.partial.take() else { return Ok(None) };
        frame.finish(sum)?;
        Ok(Some(frame))
    }

    /// The bytes that have arrived and are not part of a frame yet.
    pub(crate) fn unparsed(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Whether the stream may end here.
    pub fn is_between_frames(&self) -> bool {
        self.partial.is_none() && self.start == self.end
    }

    fn reads_direct(&self) -> bool {
        if self.start != self.end {
            return false;
        }
        self.partial
            .as_ref()
            .is_some_and(|partial| partial.frame.section_len_from(partial.filled) >= DIRECT_BYTES)
    }
}

impl PartialFrame {
    fn advance(&mut self, count: usize) {
        if self.frame.header.checksum {
            let bytes = &self.frame.section_from(self.filled)[..count];
            self.sum = crc32c::crc32c_append(self.sum, bytes);
        }
        self.filled += count;
    }
}

/// A stream that does not begin with the magic is not ours, however short it is.
fn check_magic(bytes: &[u8]) -> Result<(), Error> {
    let expected = crate::header::MAGIC.to_le_bytes();
    let count = bytes.len().min(expected.len());
    if bytes[..count] == expected[..count] {
        return Ok(());
    }
    let mut actual = [0; 4];
    actual[..count].copy_from_slice(&bytes[..count]);
    Err(crate::header::not_a_frame(u32::from_le_bytes(actual)))
}
