//! A blocking byte stream of any transport. Several threads may use it at once.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::address::Address;
use crate::error::Error;

#[derive(Debug)]
pub(super) enum BlockingSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl BlockingSocket {
    pub(super) fn connect(address: &Address, timeout: Duration) -> Result<Self, Error> {
        match address {
            Address::Tcp(place) => connect_tcp(place, timeout).map(BlockingSocket::Tcp),
            Address::Unix(path) => UnixStream::connect(path)
                .map(BlockingSocket::Unix)
                .map_err(|source| Error::unix(format!("connect to {address}"), path, source)),
        }
    }

    pub(super) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            BlockingSocket::Tcp(stream) => Read::read(&mut &*stream, into),
            BlockingSocket::Unix(stream) => Read::read(&mut &*stream, into),
        }
    }

    /// Reads the bytes that are already there.
    pub(super) fn read_now(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            BlockingSocket::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                let result = Read::read(&mut &*stream, into);
                stream.set_nonblocking(false)?;
                result
            }
            BlockingSocket::Unix(stream) => {
                stream.set_nonblocking(true)?;
                let result = Read::read(&mut &*stream, into);
                stream.set_nonblocking(false)?;
                result
            }
        }
    }

    pub(super) fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            BlockingSocket::Tcp(stream) => Write::write_vectored(&mut &*stream, slices),
            BlockingSocket::Unix(stream) => Write::write_vectored(&mut &*stream, slices),
        }
    }

    /// Sets the longest wait of a read. 0 means the shortest possible wait.
    pub(super) fn set_read_limit(&self, limit: Option<Duration>) -> io::Result<()> {
        let limit = limit.map(|limit| limit.max(Duration::from_micros(1)));
        match self {
            BlockingSocket::Tcp(stream) => stream.set_read_timeout(limit),
            BlockingSocket::Unix(stream) => stream.set_read_timeout(limit),
        }
    }

    pub(super) fn set_write_limit(&self, limit: Option<Duration>) -> io::Result<()> {
        let limit = limit.map(|limit| limit.max(Duration::from_micros(1)));
        match self {
            BlockingSocket::Tcp(stream) => stream.set_write_timeout(limit),
            BlockingSocket::Unix(stream) => stream.set_write_timeout(limit),
        }
    }

    /// Ends both directions and wakes threads that wait in them. A second call does nothing.
    pub(super) fn shutdown(&self) {
        let _ = match self {
            BlockingSocket::Tcp(stream) => stream.shutdown(Shutdown::Both),
            BlockingSocket::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

/// Tries each address of the name, all within `timeout`.
fn connect_tcp(place: &str, timeout: Duration) -> Result<TcpStream, Error> {
    let what = || format!("connect to tcp:{place}");
    let deadline = Instant::now() + timeout;
    let addresses = place.to_socket_addrs().map_err(|source| Error::Io { what: what(), source })?;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        let rest = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&address, rest) {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(|source| Error::Io { what: what(), source })?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(Error::Io { what: what(), source: last })
}
