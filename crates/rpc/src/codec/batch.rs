//! [`Batch`]: meta contains whole frames, one after the other, each padded to a multiple of 8 bytes as on a connection.
//! Written frames have no checksums of their own bodies, because the checksum of the batch covers them.

use super::{Out, put_frame};
use crate::error::Error;
use crate::frame::Frame;
use crate::header::{HEADER_BYTES, Header, field};
use crate::kind::Kind;
use crate::limits::{BATCH_COUNT_LIMIT, FrameLimits};
use crate::message::{Batch, Message};

impl Batch {
    pub(super) fn put(&self, out: &mut Out<'_>) -> Result<(), Error> {
        out.header.request = self.request;
        check_count(self.messages.len())?;
        for message in &self.messages {
            check_kind(Kind::of(message))?;
            put_frame(message, false, &FrameLimits::default(), out.meta)?;
        }
        Ok(())
    }

    pub(super) fn get(frame: &Frame) -> Result<Self, Error> {
        let (mut rest, mut messages) = (&frame.meta[..], Vec::new());
        while !rest.is_empty() {
            check_count(messages.len() + 1)?;
            let (inner, behind) = split_frame(rest)?;
            messages.push(Message::from_frame(inner)?);
            rest = behind;
        }
        Ok(Self { request: frame.header.request, messages })
    }
}

/// Splits off the first frame; returns it and the rest. Allocates nothing for bytes that are not there.
fn split_frame(bytes: &[u8]) -> Result<(Frame, &[u8]), Error> {
    let cut = |expected| Error::MetaLength {
        kind: Kind::Batch.name(),
        field: "a frame in it",
        expected,
        actual: bytes.len(),
    };
    let Some((head, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Err(cut(HEADER_BYTES));
    };
    let header = Header::from_bytes(head, &FrameLimits::default())?;
    check_kind(header.kind)?;
    let length = header.body_len();
    if length > rest.len() {
        return Err(cut(HEADER_BYTES + length));
    }
    let (body, behind) = rest.split_at(length);
    let mut frame = Frame::with_room(header);
    let mut at = 0;
    while at < length {
        let section = frame.section_from(at);
        let count = section.len();
        section.copy_from_slice(&body[at..at + count]);
        at += count;
    }
    frame.finish(crc32c::crc32c(body))?;
    Ok((frame, behind))
}

/// Refuses kinds that a batch may not contain: those that open a connection, and batches, so that nothing nests.
fn check_kind(kind: Kind) -> Result<(), Error> {
    match kind {
        Kind::Batch | Kind::Hello | Kind::Welcome => {
            Err(field(Kind::Batch, "kind of a frame in it", kind.name(), "a request or an answer"))
        }
        _ => Ok(()),
    }
}

fn check_count(count: usize) -> Result<(), Error> {
    if count > BATCH_COUNT_LIMIT {
        let expected = format!("at most {BATCH_COUNT_LIMIT}: send the rest in another batch");
        return Err(field(Kind::Batch, "number of frames in it", count, expected));
    }
    Ok(())
}
