//! The first bytes of a connection: a `Hello`, which is checked. HTTP is told where its port is.

use std::time::Duration;

use subtle::ConstantTimeEq;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::counters::{ConnectionSlot, count};
use super::faults::{fault_bytes, fault_of};
use super::lane_command::AuthenticatedConnection;
use super::lanes::Lanes;
use super::shared::{ServeConfig, Shared};
use super::socket::Socket;
use crate::error::Error;
use crate::limits::FrameLimits;
use crate::message::{Fault, FaultKind, Hello, Message};
use crate::reader::FrameReader;

/// Buffer of a connection before its `Hello`. It is small, because there may be many.
const HANDSHAKE_BUFFER_BYTES: usize = 1 << 10;
/// Most bytes that are read and discarded from a refused connection, so that a reset does not lose the refusal.
const DISCARDED_BYTES: usize = 64 << 10;

/// The first bytes of HTTP/1 requests that people and tools send by mistake, and of every HTTP/2 connection.
const HTTP: [&[u8]; 4] = [b"GET ", b"HEAD", b"POST", b"PRI "];

enum FirstBytes {
    Hello { hello: Hello, checksum: bool },
    Http,
}

/// Runs until the connection is passed on or closed.
pub(super) async fn handshake(lanes: Lanes, shared: Shared, mut socket: Socket, slot: ConnectionSlot) {
    let limits = &shared.config.limits;
    let mut reader = FrameReader::new(FrameLimits::unauthenticated(), HANDSHAKE_BUFFER_BYTES);
    let Ok(first) = timeout(limits.hello_time, read_first(&mut socket, &mut reader)).await else {
        let text = format!("no Hello arrived within {:.1} s", limits.hello_time.as_secs_f64());
        let fault = Fault { request: 0, kind: FaultKind::BadFrame, text, retry_after_ms: 0 };
        return refuse(&shared, socket, fault).await;
    };
    match first {
        Ok(FirstBytes::Http) => refuse_with(&shared, socket, http_refusal(&shared.config).as_bytes()).await,
        Ok(FirstBytes::Hello { hello, checksum }) => match check_hello(&lanes, &shared, &hello) {
            Ok(()) => hand_to_lane(&lanes, socket, reader, hello, checksum, slot),
            Err(fault) => refuse(&shared, socket, fault).await,
        },
        Err((_, Error::Closed | Error::Io { .. })) => {}
        Err((request, error)) => refuse(&shared, socket, fault_of(request, &error)).await,
    }
}

/// Reads the first frame, or detects HTTP. Errors come with the number of the request, if it is known.
async fn read_first(socket: &mut Socket, reader: &mut FrameReader) -> Result<FirstBytes, (u64, Error)> {
    loop {
        let waiting = reader.unparsed();
        if HTTP.iter().any(|method| waiting.starts_with(method)) {
            return Ok(FirstBytes::Http);
        }
        let may_be_http = !waiting.is_empty() && HTTP.iter().any(|method| method.starts_with(waiting));
        if !may_be_http && let Some(frame) = reader.frame().map_err(|error| (0, error))? {
            let (request, checksum) = (frame.header.request, frame.header.checksum);
            return match Message::from_frame(frame).map_err(|error| (request, error))? {
                Message::Hello(hello) => Ok(FirstBytes::Hello { hello, checksum }),
                other => {
                    let error = Error::Unexpected { expected: "Hello", actual: other.kind_name() };
                    Err((request, error))
                }
            };
        }
        match socket.read(reader.space()).await {
            Ok(0) => return Err((0, Error::Closed)),
            Ok(count) => reader.advance(count),
            Err(error) => return Err((0, Error::io("receive a hello", error))),
        }
    }
}

/// The answer to HTTP, which a person with a browser or `curl` can read.
fn http_refusal(config: &ServeConfig) -> String {
    let addresses: Vec<String> = config.http.iter().map(ToString::to_string).collect();
    let text = match addresses.as_slice() {
        [] => "this port carries frames only".to_owned(),
        _ => format!(
            "this port carries frames only; gRPC, /metrics and /health are at {}",
            addresses.join(", ")
        ),
    };
    format!(
        "HTTP/1.1 421 Misdirected Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{text}\n",
        text.len() + 1
    )
}

fn check_hello(lanes: &Lanes, shared: &Shared, hello: &Hello) -> Result<(), Fault> {
    let fault = |kind, text| Err(Fault { request: hello.request, kind, text, retry_after_ms: 0 });
    check_token(&shared.config, hello)?;
    let lanes = lanes.count();
    if usize::from(hello.lane) >= lanes {
        let text = format!("no lane {}: this process has {lanes} lanes, numbered from 0", hello.lane);
        return fault(FaultKind::NotFound, text);
    }
    Ok(())
}

/// Compares the token of a `Hello` with the secret of the cluster, in constant time.
fn check_token(config: &ServeConfig, hello: &Hello) -> Result<(), Fault> {
    if hello.token.ct_eq(&config.token).into() {
        return Ok(());
    }
    let text = if hello.token.is_empty() {
        "a token is required: give --token-file FILE, the file that the master was started with"
    } else {
        "the token is not the one of this cluster: use the file that the master was started with"
    };
    let text = text.to_owned();
    Err(Fault { request: hello.request, kind: FaultKind::BadToken, text, retry_after_ms: 0 })
}

fn hand_to_lane(
    lanes: &Lanes,
    socket: Socket,
    reader: FrameReader,
    hello: Hello,
    checksum: bool,
    slot: ConnectionSlot,
) {
    let lane = hello.lane;
    match socket.detach() {
        Ok(socket) => {
            let hello = Message::Hello(hello);
            let greeted = AuthenticatedConnection { socket, reader, hello, checksum, slot };
            lanes.hand_to_lane(lane, greeted);
        }
        Err(error) => tracing::warn!(%error, "cannot pass a connection to its lane"),
    }
}

async fn refuse(shared: &Shared, socket: Socket, fault: Fault) {
    tracing::debug!(kind = ?fault.kind, text = fault.text, "refused a connection");
    refuse_with(shared, socket, &fault_bytes(fault)).await;
}

async fn refuse_with(shared: &Shared, mut socket: Socket, bytes: &[u8]) {
    count(&shared.counters.refused_hello);
    let close_time = shared.config.limits.close_time;
    if let Ok(Ok(())) = timeout(close_time, socket.write_all(bytes)).await {
        close_gracefully(socket, close_time).await;
    }
}

/// Shuts the writing direction down and reads for a while. Closing with unread bytes would cause a reset, which may
/// overtake the written bytes.
async fn close_gracefully(mut socket: Socket, limit: Duration) {
    let discard = async {
        socket.shutdown().await?;
        let (mut buffer, mut total) = ([0; 1024], 0);
        while total < DISCARDED_BYTES {
            match socket.read(&mut buffer).await? {
                0 => break,
                count => total += count,
            }
        }
        Ok::<(), std::io::Error>(())
    };
    let _ = timeout(limit, discard).await;
}
