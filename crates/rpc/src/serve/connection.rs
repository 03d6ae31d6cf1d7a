//! One connection of a lane. It reads frames in order, unless paused, and writes frames as fast as the other end reads
//! them.

use std::io;
use std::rc::Rc;

use tokio::time::timeout;

use super::connection_writer::ConnectionWriter;
use super::counters::{add, count};
use super::faults::fault_of;
use super::lane::Lane;
use super::lane_command::AuthenticatedConnection;
use super::runtime::first_of;
use super::socket::ReadHalf;
use crate::error::Error;
use crate::message::Message;
use crate::reader::FrameReader;

/// Bytes of a reader's buffer; one read brings many small frames.
const BUFFER_BYTES: usize = 32 << 10;
/// When more bytes of answers than this wait, they are sent before the next request is handled, so that the other end
/// can work on them meanwhile.
const FLUSH_BYTES: usize = 128 << 10;
/// Most bytes that are read and discarded when the lane closes a connection, so that a reset does not lose the last
/// frames.
const DISCARDED_BYTES: usize = 1 << 20;

/// How a connection ended.
enum End {
    /// The other end closed the connection, or it failed.
    Lost,
    /// The service closed it.
    Closing,
    /// The other end sent an invalid frame: the number of the request, the error.
    InvalidFrame(u64, Error),
    /// The other end does not read.
    Stalled,
}

/// Serves a connection from its `Hello` to its end.
pub(super) async fn run(lane: Rc<Lane>, greeted: AuthenticatedConnection) {
    let AuthenticatedConnection { socket, mut reader, hello, checksum, slot: _place } = greeted;
    let (mut read, write) = match socket.attach() {
        Ok(halves) => halves,
        Err(error) => return tracing::warn!(%error, "cannot attach a connection to its lane"),
    };
    let limits = lane.limits();
    reader.set_limits(limits.frame, BUFFER_BYTES);
    let link = lane.add(checksum, write);
    lane.message(link.id, hello);
    let end = first_of(read_all(&lane, &link, &mut read, &mut reader), write_all(&lane, &link)).await;
    let has_last_words = match end {
        End::Lost => false,
        End::Closing => true,
        End::InvalidFrame(request, error) => {
            count(&lane.counters().closed_bad_frame);
            tracing::warn!(connection = link.id, %error, "closed a connection after an invalid frame");
            let fault = Message::Fault(fault_of(request, &error));
            link.push(fault, limits).is_ok()
        }
        End::Stalled => {
            count(&lane.counters().closed_outbound);
            tracing::warn!(connection = link.id, "closed a connection that does not read");
            false
        }
    };
    lane.remove(link.id);
    if has_last_words {
        let farewell = async {
            link.write_all(limits.close_time, |written| lane.wrote(written)).await?;
            if !lane.is_stopping() {
                // Dropping the writing half ends that direction.
                drop(link);
                discard(&mut read).await?;
            }
            Ok::<(), io::Error>(())
        };
        let _ = timeout(limits.close_time, farewell).await;
    }
}

async fn read_all(
    lane: &Lane,
    link: &ConnectionWriter,
    read: &mut ReadHalf,
    reader: &mut FrameReader,
) -> End {
    loop {
        loop {
            if link.is_closing.get() {
                return End::Closing;
            }
            if link.must_wait(lane.limits()) {
                lane.flush();
                if link.must_wait(lane.limits()) {
                    link.read_wake.notified().await;
                }
                continue;
            }
            let frame = match reader.frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => return End::InvalidFrame(0, error),
            };
            count(&lane.counters().frames_in);
            let request = frame.header.request;
            match Message::from_frame(frame) {
                Ok(Message::Hello(_)) => {
                    let expected = "one Hello, as the first message";
                    return End::InvalidFrame(request, Error::Unexpected { expected, actual: "Hello" });
                }
                Ok(message) => lane.message(link.id, message),
                Err(error) => return End::InvalidFrame(request, error),
            }
            if link.waiting_bytes() > FLUSH_BYTES {
                lane.flush();
            }
        }
        lane.flush();
        let woken = async {
            link.read_wake.notified().await;
            Ok(None)
        };
        let arrived = async { read.read(reader.space()).await.map(Some) };
        match first_of(arrived, woken).await {
            Ok(Some(0)) | Err(_) => return End::Lost,
            Ok(Some(count)) => {
                add(&lane.counters().bytes_in, count);
                reader.advance(count);
            }
            Ok(None) => {}
        }
    }
}

async fn write_all(lane: &Lane, link: &ConnectionWriter) -> End {
    let limits = lane.limits();
    loop {
        link.wait_for_output().await;
        let wrote = |count| {
            lane.wrote(count);
            if link.waiting_bytes() <= limits.outbound_pause_bytes {
                link.read_wake.notify_one();
            }
        };
        match link.write_all(limits.outbound_stall, wrote).await {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return End::Stalled,
            Err(_) => return End::Lost,
        }
    }
}

async fn discard(read: &mut ReadHalf) -> io::Result<()> {
    let (mut buffer, mut total) = ([0; 4096], 0);
    while total < DISCARDED_BYTES {
        match read.read(&mut buffer).await? {
            0 => break,
            count => total += count,
        }
    }
    Ok(())
}
