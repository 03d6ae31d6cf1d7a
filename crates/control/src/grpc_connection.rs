//! A connection of a client: a socket, HTTP/2 on it, and the token in the headers of every call.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use http::HeaderValue;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rpc::message::Fault;
use rpc::reader::FrameReader;
use rpc::{Address, FrameLimits, Message};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tonic::body::Body;

use crate::error::Error;

/// The other end begins every HTTP/2 connection with a SETTINGS frame. Its type is the fourth byte: (position, type).
const SETTINGS: (usize, u8) = (3, 4);

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// An answer of the other end that is not HTTP/2.
#[derive(Clone, Debug)]
pub(crate) enum Other {
    /// A fault in a frame: the port accepts no connection now.
    Fault(Fault),
    Unknown,
}

/// A stream that inspects the first bytes it reads, to detect whether the other end uses HTTP/2.
struct Looked {
    stream: Box<dyn Stream>,
    is_first: bool,
    other: Arc<OnceLock<Other>>,
}

/// One connection, for one call after the other.
#[derive(Clone, Debug)]
pub(crate) struct GrpcConnection {
    sender: http2::SendRequest<Body>,
    token: Option<HeaderValue>,
    other: Arc<OnceLock<Other>>,
}

impl GrpcConnection {
    /// Connects. Does not send the token yet.
    pub(crate) async fn open(address: &Address, token: &[u8]) -> Result<Self, Error> {
        let token = match token {
            [] => None,
            token => {
                let value = HeaderValue::from_bytes(&[b"Bearer ", token].concat());
                let mut value = value.map_err(|_| Error::Token)?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let stream = connect(address).await.map_err(|source| Error::Connect { source })?;
        let other = Arc::new(OnceLock::new());
        let looked = Looked { stream, is_first: true, other: Arc::clone(&other) };
        let opened = http2::handshake(TokioExecutor::new(), TokioIo::new(looked)).await;
        let (sender, connection) = opened.map_err(|error| Error::Lost { problem: error.to_string() })?;
        tokio::spawn(async move {
            // The calls on the connection report the error.
            let _ = connection.await;
        });
        Ok(Self { sender, token, other })
    }

    /// The answer of the other end, if it was not HTTP/2.
    pub(crate) fn other(&self) -> Option<&Other> {
        self.other.get()
    }
}

/// The fault in the first frame, if the bytes are one.
fn fault_in(bytes: &[u8]) -> Option<Fault> {
    let mut reader = FrameReader::new(FrameLimits::unauthenticated(), bytes.len());
    let space = reader.space();
    let count = bytes.len().min(space.len());
    space[..count].copy_from_slice(&bytes[..count]);
    reader.advance(count);
    match Message::from_frame(reader.frame().ok()??).ok()? {
        Message::Fault(fault) => Some(fault),
        _ => None,
    }
}

async fn connect(address: &Address) -> io::Result<Box<dyn Stream>> {
    Ok(match address {
        Address::Tcp(place) => {
            let stream = TcpStream::connect(place).await?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
        Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
    })
}

impl tower_service::Service<http::Request<Body>> for GrpcConnection {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.sender.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        if let Some(token) = &self.token {
            request.headers_mut().insert(http::header::AUTHORIZATION, token.clone());
        }
        Box::pin(self.sender.send_request(request))
    }
}

impl AsyncRead for Looked {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        let read = &into.filled()[before..];
        if self.is_first && !read.is_empty() {
            self.is_first = false;
            let (at, kind) = SETTINGS;
            if read.get(at).is_some_and(|byte| *byte != kind) {
                let other = fault_in(read).map_or(Other::Unknown, Other::Fault);
                // The cell is empty, because these are the first bytes.
                let _ = self.other.set(other);
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the other end does not use HTTP/2",
                )));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Looked {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
