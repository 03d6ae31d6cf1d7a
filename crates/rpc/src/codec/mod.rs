//! Converts between messages and the bytes of frames. The files have the same topics as in [`crate::message`].
//!
//! A frame is written as head (header and padded meta), keys, values, padding. Keys and values are never copied: they
//! are written from the memory of the message, and the vectors of a received frame become those of the message.

mod batch;
mod body;
mod bytes;
mod clock;
mod function;
mod handshake;
mod json;
mod keys;
mod pull;
mod push;
mod rows;
mod session;
mod size;
mod staged;

pub use body::Body;
pub use size::{calls_bytes, parts_bytes};

use crate::error::Error;
use crate::frame::{Frame, padding};
use crate::header::{HEADER_BYTES, Header};
use crate::kind::Kind;
use crate::limits::FrameLimits;
use crate::message::{
    AskMap, Barrier, Batch, CloseSession, CloseToken, Commit, CommitFunction, Committed, Control, Done,
    DropMatrix, DropRows, Export, ExportPage, Hello, Import, Join, Joined, KeepRows, Leave, Message, Pull,
    PullFunction, Pulled, PulledFunction, Push, PushFunction, PushPosition, PushStaged, Released,
    RenewSession, RestoreRows, ScanRows, Stats, Tick, TryFunction, Welcome,
};

/// Where the head of a message is written: the header, and the buffer that meta is appended to.
struct Out<'a> {
    header: Header,
    meta: &'a mut Vec<u8>,
}

/// Appends the head of the frame of `message`. If a section is longer than a receiver accepts, returns an error and
/// appends nothing.
pub fn put_head(
    message: &Message,
    checksum: bool,
    limits: &FrameLimits,
    head: &mut Vec<u8>,
) -> Result<(), Error> {
    let start = head.len();
    let result = try_put_head(message, checksum, limits, head);
    if result.is_err() {
        head.truncate(start);
    }
    result
}

fn try_put_head(
    message: &Message,
    checksum: bool,
    limits: &FrameLimits,
    head: &mut Vec<u8>,
) -> Result<(), Error> {
    let meta_at = head.len() + HEADER_BYTES;
    head.resize(meta_at, 0);
    let mut out = Out { header: Header::new(Kind::of(message)), meta: head };
    put(message, &mut out)?;
    let body = Body::of(message);
    let mut header = out.header;
    let kind = header.kind.name();
    let length = |section: &'static str, count: usize| {
        let too_long = Error::TooLong { kind, section, bytes: count as u64, limit: u64::from(u32::MAX) };
        u32::try_from(count).map_err(|_| too_long)
    };
    let meta_len = head.len() - meta_at;
    (header.meta_len, header.keys_len) = (length("meta", meta_len)?, length("keys", body.keys.len())?);
    (header.values_len, header.value_type) = (length("values", body.values.len)?, body.values.value_type);
    header.check_lengths(limits)?;
    head.resize(head.len() + padding(meta_len), 0);
    if checksum {
        let meta = crc32c::crc32c(&head[meta_at..]);
        header.checksum = true;
        header.body_sum = body.slices().iter().fold(meta, |sum, slice| crc32c::crc32c_append(sum, slice));
    }
    head[meta_at - HEADER_BYTES..meta_at].copy_from_slice(&header.to_bytes());
    Ok(())
}

/// Appends the whole frame of `message`.
pub fn put_frame(
    message: &Message,
    checksum: bool,
    limits: &FrameLimits,
    bytes: &mut Vec<u8>,
) -> Result<(), Error> {
    put_head(message, checksum, limits, bytes)?;
    for slice in Body::of(message).slices() {
        bytes.extend_from_slice(slice);
    }
    Ok(())
}

fn put(message: &Message, out: &mut Out<'_>) -> Result<(), Error> {
    match message {
        Message::Hello(message) => message.put(out),
        Message::Welcome(message) => message.put(out),
        Message::OpenJob(message) => json::put(message, out)?,
        Message::CloseJob(message) => json::put(message, out)?,
        Message::Pull(message) => message.put(out),
        Message::Pulled(message) => message.put(out),
        Message::Push(message) => message.put(out),
        Message::Tick(message) => message.put(out),
        Message::Leave(message) => message.put(out),
        Message::Join(message) => message.put(out),
        Message::Joined(message) => message.put(out),
        Message::Barrier(message) => message.put(out),
        Message::Released(message) => message.put(out),
        Message::Export(message) => message.put(out),
        Message::ExportPage(message) => message.put(out),
        Message::Import(message) => message.put(out),
        Message::KeepRows(message) => message.put(out),
        Message::RestoreRows(message) => message.put(out),
        Message::DropRows(message) => message.put(out),
        Message::ScanRows(message) => message.put(out),
        Message::Stats(message) => {
            (out.header.request, out.header.job) = (message.request, message.job);
        }
        Message::StatsReply(message) => json::put(message, out)?,
        Message::Done(message) => message.put(out),
        Message::Fault(message) => json::put(message, out)?,
        Message::Control(message) => message.put(out)?,
        Message::OpenSession(message) => json::put(message, out)?,
        Message::SessionMap(message) => json::put(message, out)?,
        Message::CreateMatrix(message) => json::put(message, out)?,
        Message::DropMatrix(message) => message.put(out),
        Message::AskMap(message) => message.put(out),
        Message::RenewSession(message) => message.put(out),
        Message::CloseSession(message) => message.put(out),
        Message::AddMatrix(message) => json::put(message, out)?,
        Message::CheckpointSession(message) => json::put(message, out)?,
        Message::PushStaged(message) => message.put(out),
        Message::Commit(message) => message.put(out),
        Message::Committed(message) => message.put(out),
        Message::CloseToken(message) => message.put(out),
        Message::Batch(message) => message.put(out)?,
        Message::PullFunction(message) => message.put(out),
        Message::PulledFunction(message) => message.put(out),
        Message::PushFunction(message) => message.put(out),
        Message::TryFunction(message) => message.put(out),
        Message::CommitFunction(message) => message.put(out),
    }
    Ok(())
}

impl Message {
    /// The message in a frame.
    pub fn from_frame(frame: Frame) -> Result<Self, Error> {
        Ok(match frame.header.kind {
            Kind::Hello => Message::Hello(Hello::get(&frame)?),
            Kind::Welcome => Message::Welcome(Welcome::get(&frame)?),
            Kind::OpenJob => Message::OpenJob(json::get(&frame)?),
            Kind::CloseJob => Message::CloseJob(json::get(&frame)?),
            Kind::Pull => Message::Pull(Pull::get(frame)?),
            Kind::Pulled => Message::Pulled(Pulled::get(frame)?),
            Kind::Push => Message::Push(Push::get(frame)?),
            Kind::Tick => Message::Tick(Tick::get(&frame)),
            Kind::Leave => Message::Leave(Leave::get(&frame)),
            Kind::Join => Message::Join(Join::get(&frame)),
            Kind::Joined => Message::Joined(Joined::get(&frame)),
            Kind::Barrier => Message::Barrier(Barrier::get(frame)?),
            Kind::Released => Message::Released(Released::get(frame)?),
            Kind::Export => Message::Export(Export::get(&frame)?),
            Kind::ExportPage => Message::ExportPage(ExportPage::get(frame)?),
            Kind::Import => Message::Import(Import::get(frame)?),
            Kind::KeepRows => Message::KeepRows(KeepRows::get(&frame)?),
            Kind::RestoreRows => Message::RestoreRows(RestoreRows::get(&frame)),
            Kind::DropRows => Message::DropRows(DropRows::get(&frame)),
            Kind::ScanRows => Message::ScanRows(ScanRows::get(&frame)?),
            Kind::Stats => Message::Stats(Stats { request: frame.header.request, job: frame.header.job }),
            Kind::StatsReply => Message::StatsReply(json::get(&frame)?),
            Kind::Done => Message::Done(Done::get(&frame)?),
            Kind::Fault => Message::Fault(json::get(&frame)?),
            Kind::Control => Message::Control(Control::get(&frame)?),
            Kind::OpenSession => Message::OpenSession(json::get(&frame)?),
            Kind::SessionMap => Message::SessionMap(json::get(&frame)?),
            Kind::CreateMatrix => Message::CreateMatrix(json::get(&frame)?),
            Kind::DropMatrix => Message::DropMatrix(DropMatrix::get(&frame)),
            Kind::AskMap => Message::AskMap(AskMap::get(&frame)),
            Kind::RenewSession => Message::RenewSession(RenewSession::get(&frame)),
            Kind::CloseSession => Message::CloseSession(CloseSession::get(&frame)),
            Kind::AddMatrix => Message::AddMatrix(json::get(&frame)?),
            Kind::CheckpointSession => Message::CheckpointSession(json::get(&frame)?),
            Kind::PushStaged => Message::PushStaged(PushStaged::get(frame)?),
            Kind::Commit => Message::Commit(Commit::get(&frame)?),
            Kind::Committed => Message::Committed(Committed::get(&frame)?),
            Kind::CloseToken => Message::CloseToken(CloseToken::get(&frame)),
            Kind::Batch => Message::Batch(Batch::get(&frame)?),
            Kind::PullFunction => Message::PullFunction(PullFunction::get(&frame)?),
            Kind::PulledFunction => Message::PulledFunction(PulledFunction::get(&frame)?),
            Kind::PushFunction => Message::PushFunction(PushFunction::get(&frame)?),
            Kind::TryFunction => Message::TryFunction(TryFunction::get(&frame)?),
            Kind::CommitFunction => Message::CommitFunction(CommitFunction::get(&frame)?),
        })
    }

    pub fn kind_name(&self) -> &'static str {
        Kind::of(self).name()
    }
}

impl Done {
    fn put(&self, out: &mut Out<'_>) {
        out.header.request = self.request;
        set_watermark(&mut out.header, self.applied);
        out.meta.extend(self.minimum.to_le_bytes());
    }

    fn get(frame: &Frame) -> Result<Self, Error> {
        let (request, applied) = (frame.header.request, watermark(&frame.header));
        Ok(Self { request, minimum: minimum_of(frame)?, applied })
    }
}

/// The push watermark, which is in the header as clock and index.
fn watermark(header: &Header) -> PushPosition {
    PushPosition { clock: header.clock, index: header.index }
}

fn set_watermark(header: &mut Header, applied: PushPosition) {
    (header.clock, header.index) = (applied.clock, applied.index);
}

/// The meta of an answer that consists of the smallest clock only.
fn minimum_of(frame: &Frame) -> Result<u64, Error> {
    let mut meta = bytes::MetaReader::new(frame.header.kind, &frame.meta);
    let minimum = meta.u64("minimum")?;
    meta.end("minimum")?;
    Ok(minimum)
}
