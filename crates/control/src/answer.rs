//! The body of an answer. It ends at the deadline of the call, and its connection ends when nobody reads it.
//!
//! HTTP/2 takes the next chunk of a body as soon as the reader has room for the previous one. A chunk that is not taken
//! therefore waits for its reader.

use std::time::Duration;

use axum::Error;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use axum::response::Response;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use rpc::serve::first_of;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_stream::wrappers::ReceiverStream;

use crate::codes;
use crate::http_connection::{AuthState, HttpConnection};
use crate::limits::BODY_CHUNK_BYTES;

/// The allowed time is waited for in this many parts, so that a process that was suspended itself does not close
/// connections that do read.
const STALL_PARTS: u32 = 4;

type Item = Result<Frame<Bytes>, Error>;

/// The deadline of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: Instant,
    /// The time from the beginning of the call to the deadline.
    limit: Duration,
}

impl Deadline {
    /// A deadline from now on. `None` for one that overflows the clock.
    pub(crate) fn after(limit: Duration) -> Option<Self> {
        Instant::now().checked_add(limit).map(|at| Self { at, limit })
    }
}

/// The other end has not read for too long.
struct Stalled;

/// The same answer, until `deadline`. Ends the connection when a chunk waits for its reader for `stall`.
pub(crate) fn limited(
    response: Response,
    deadline: Option<Deadline>,
    stall: Duration,
    connection: HttpConnection,
) -> Response {
    if response.body().is_end_stream() {
        return response;
    }
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, length.into());
    }
    let (frames, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        if let Err(Stalled) = forward(body, &frames, deadline, stall).await {
            connection.raise(AuthState::Unread);
        }
    });
    Response::from_parts(head, Body::new(StreamBody::new(ReceiverStream::new(receiver))))
}

/// Passes the body on in chunks, one at a time, until it ends or the client has left.
async fn forward(
    mut body: Body,
    frames: &mpsc::Sender<Item>,
    deadline: Option<Deadline>,
    stall: Duration,
) -> Result<(), Stalled> {
    let mut rest = Bytes::new();
    while let Some(place) = reserve(frames, stall).await? {
        if rest.is_empty() {
            let left = async {
                frames.closed().await;
                None
            };
            match first_of(left, next_frame(&mut body, deadline)).await {
                None => break,
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => rest = data,
                    Err(trailers) => {
                        place.send(Ok(trailers));
                        break;
                    }
                },
                Some(Err(error)) => {
                    place.send(Err(error));
                    break;
                }
            }
        }
        let chunk = rest.split_to(rest.len().min(BODY_CHUNK_BYTES));
        place.send(Ok(Frame::data(chunk)));
    }
    Ok(())
}

/// Waits until the last chunk was taken. `None` when the client has left.
async fn reserve(
    frames: &mpsc::Sender<Item>,
    stall: Duration,
) -> Result<Option<mpsc::Permit<'_, Item>>, Stalled> {
    for _ in 0..STALL_PARTS {
        if let Ok(place) = timeout(stall / STALL_PARTS, frames.reserve()).await {
            return Ok(place.ok());
        }
    }
    Err(Stalled)
}

async fn next_frame(body: &mut Body, deadline: Option<Deadline>) -> Option<Item> {
    let Some(Deadline { at, limit }) = deadline else { return body.frame().await };
    timeout_at(at, body.frame()).await.unwrap_or_else(|_| {
        let mut trailers = HeaderMap::new();
        // The text is ASCII, so adding it does not fail.
        let _ = codes::deadline_exceeded(limit).add_header(&mut trailers);
        Some(Ok(Frame::trailers(trailers)))
    })
}
