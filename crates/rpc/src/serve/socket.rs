//! Sockets in a runtime, tcp or unix.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream, tcp, unix};

/// A connection that was accepted.
#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A socket on its way from one runtime to another.
#[derive(Debug)]
pub(super) enum DetachedSocket {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

pub(super) enum ReadHalf {
    Tcp(tcp::OwnedReadHalf),
    Unix(unix::OwnedReadHalf),
}

pub(super) enum WriteHalf {
    Tcp(tcp::OwnedWriteHalf),
    Unix(unix::OwnedWriteHalf),
}

impl Socket {
    /// Writes as much as the socket accepts at once.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.try_write(bytes),
            Socket::Unix(stream) => stream.try_write(bytes),
        }
    }

    pub(super) fn detach(self) -> io::Result<DetachedSocket> {
        Ok(match self {
            Socket::Tcp(stream) => DetachedSocket::Tcp(stream.into_std()?),
            Socket::Unix(stream) => DetachedSocket::Unix(stream.into_std()?),
        })
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_read(context, into),
            Socket::Unix(stream) => Pin::new(stream).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Socket::Unix(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

impl DetachedSocket {
    /// Registers the socket in the runtime of the calling thread.
    pub(super) fn attach(self) -> io::Result<(ReadHalf, WriteHalf)> {
        Ok(match self {
            DetachedSocket::Tcp(stream) => {
                let (read, write) = TcpStream::from_std(stream)?.into_split();
                (ReadHalf::Tcp(read), WriteHalf::Tcp(write))
            }
            DetachedSocket::Unix(stream) => {
                let (read, write) = UnixStream::from_std(stream)?.into_split();
                (ReadHalf::Unix(read), WriteHalf::Unix(write))
            }
        })
    }
}

impl ReadHalf {
    pub(super) async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            ReadHalf::Tcp(stream) => stream.read(into).await,
            ReadHalf::Unix(stream) => stream.read(into).await,
        }
    }
}

impl WriteHalf {
    pub(super) async fn writable(&self) -> io::Result<()> {
        match self {
            WriteHalf::Tcp(stream) => stream.writable().await,
            WriteHalf::Unix(stream) => stream.writable().await,
        }
    }

    pub(super) fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            WriteHalf::Tcp(stream) => stream.try_write_vectored(slices),
            WriteHalf::Unix(stream) => stream.try_write_vectored(slices),
        }
    }
}
