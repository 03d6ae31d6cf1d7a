//! Finds connections whose answers are not read: the other end answers pings but does not read what it has requested.
//!
//! An answer is sent in chunks. HTTP/2 asks for the next chunk as soon as the reader has room for the previous one, so
//! a chunk after which none was asked for waits for its reader.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::time::sleep;
use tonic::Status;

use crate::limits::BODY_CHUNK_BYTES;

/// Number of checks within the allowed time. The wait is counted in checks, so that a process that was suspended itself
/// does not close connections that do read.
const LOOKS: u32 = 4;

/// The answers of a connection that have a waiting chunk.
#[derive(Debug, Default)]
pub(crate) struct Unread(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    last_answer: u64,
    /// By answer: the number of checks that found it waiting.
    looks: BTreeMap<u64, u32>,
}

impl Unread {
    /// Wraps an answer that is sent on this connection.
    pub(crate) fn pieces(self: &Arc<Self>, answer: tonic::body::Body) -> ChunkedBody {
        let mut waiting = self.waiting();
        waiting.last_answer += 1;
        ChunkedBody { answer, rest: Bytes::new(), number: waiting.last_answer, unread: Arc::clone(self) }
    }

    /// Ends when a chunk has waited for `limit`, at most a quarter longer.
    pub(crate) async fn too_long(&self, limit: Duration) {
        loop {
            sleep(limit / LOOKS).await;
            let mut waiting = self.waiting();
            for looks in waiting.looks.values_mut() {
                *looks += 1;
            }
            if waiting.looks.values().any(|looks| *looks > LOOKS) {
                return;
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer of which the connection buffers at most one chunk.
#[derive(Debug)]
pub(crate) struct ChunkedBody {
    answer: tonic::body::Body,
    /// The unsent remainder of a part that is longer than a chunk.
    rest: Bytes,
    number: u64,
    unread: Arc<Unread>,
}

impl Body for ChunkedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let me = &mut *self;
        me.unread.waiting().looks.remove(&me.number);
        if me.rest.is_empty() {
            match ready!(Pin::new(&mut me.answer).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => me.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        let piece = me.rest.split_to(me.rest.len().min(BODY_CHUNK_BYTES));
        me.unread.waiting().looks.insert(me.number, 0);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.answer.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, hint) = (self.rest.len() as u64, self.answer.size_hint());
        let mut whole = SizeHint::new();
        whole.set_lower(rest + hint.lower());
        if let Some(upper) = hint.upper() {
            whole.set_upper(rest + upper);
        }
        whole
    }
}

impl Drop for ChunkedBody {
    fn drop(&mut self) {
        self.unread.waiting().looks.remove(&self.number);
    }
}
