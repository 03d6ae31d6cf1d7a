//! Sockets that accept connections.

use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use tokio::net::TcpSocket;

use super::socket::Socket;
use crate::error::Error;
use crate::transport::Address;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4096;

#[derive(Debug)]
pub struct Listener {
    address: Address,
    socket: ListenerSocket,
}

#[derive(Debug)]
enum ListenerSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Binds the address; port 0 is any free one. The file of a Unix socket that no process serves any more is
    /// replaced. The file is removed when the listener is dropped.
    pub fn bind(address: &Address) -> Result<Self, Error> {
        let failed = |source| Error::Io { what: format!("accept connections at {address}"), source };
        match address {
            Address::Tcp(place) => {
                let listener = bind_tcp(place).map_err(failed)?;
                let port = listener.local_addr().map_err(failed)?.port();
                let host = place.rsplit_once(':').map_or(place.as_str(), |(host, _)| host);
                Ok(Self {
                    address: Address::Tcp(format!("{host}:{port}")),
                    socket: ListenerSocket::Tcp(listener),
                })
            }
            Address::Unix(path) => {
                remove_if_dead(path);
                let what = || format!("accept connections at {address}");
                let listener = bind_unix(path).map_err(|source| Error::unix(what(), path, source))?;
                listener.set_nonblocking(true).map_err(failed)?;
                Ok(Self { address: address.clone(), socket: ListenerSocket::Unix(listener) })
            }
        }
    }

    /// The address with its actual port.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// A listener for the runtime of the calling thread. `self` stays bound and keeps the file.
    pub fn to_async(&self) -> io::Result<AsyncListener> {
        Ok(match &self.socket {
            ListenerSocket::Tcp(listener) => {
                AsyncListener::Tcp(tokio::net::TcpListener::from_std(listener.try_clone()?)?)
            }
            ListenerSocket::Unix(listener) => {
                AsyncListener::Unix(tokio::net::UnixListener::from_std(listener.try_clone()?)?)
            }
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address {
            // Another process that has taken the path since then has removed the file first. If the race is lost, a
            // file remains that bind replaces.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Binds the first address of the name that is free. The backlog is long, because a client that finds it full retries
/// only after a second.
fn bind_tcp(place: &str) -> io::Result<TcpListener> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in place.to_socket_addrs()? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        match socket.bind(address).and_then(|()| socket.listen(BACKLOG)) {
            Ok(listener) => return listener.into_std(),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The file appears only when the socket accepts connections, so a process that sees it may connect.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".new");
    let aside = Path::new(&aside);
    // The file of a process that died at this point.
    let _ = std::fs::remove_file(aside);
    let Ok(listener) = UnixListener::bind(aside) else {
        // The path is nearly too long for the suffix, or both paths fail with the same error.
        return UnixListener::bind(path);
    };
    let linked = std::fs::hard_link(aside, path);
    let _ = std::fs::remove_file(aside);
    match linked {
        Ok(()) => Ok(listener),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(io::ErrorKind::AddrInUse.into()),
        // A file system without hard links.
        Err(_) => UnixListener::bind(path),
    }
}

fn remove_if_dead(path: &Path) {
    let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if UnixStream::connect(path).is_err_and(|error| refused(&error)) {
        let _ = std::fs::remove_file(path);
    }
}

/// A listener in a runtime.
#[derive(Debug)]
pub enum AsyncListener {
    Tcp(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener),
}

impl AsyncListener {
    pub async fn accept(&self) -> io::Result<Socket> {
        match self {
            AsyncListener::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
            AsyncListener::Unix(listener) => Ok(Socket::Unix(listener.accept().await?.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Number of sockets that the test creates one after the other while a thread connects to each at once.
    const SOCKETS: usize = 2_000;

    #[test]
    fn a_socket_takes_connections_as_soon_as_its_file_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (begun, met) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let is_at = |count: &AtomicUsize, round| count.load(Ordering::Acquire) > round;
        std::thread::scope(|scope| {
            let eager = scope.spawn(|| {
                for round in 0..SOCKETS {
                    while !is_at(&begun, round) {
                        std::hint::spin_loop();
                    }
                    loop {
                        match UnixStream::connect(&path) {
                            Ok(_) => break,
                            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                            Err(error) => return Err(error),
                        }
                    }
                    met.store(round + 1, Ordering::Release);
                }
                Ok(())
            });
            let address = Address::Unix(path.clone());
            for round in 0..SOCKETS {
                begun.store(round + 1, Ordering::Release);
                let listener = Listener::bind(&address).unwrap();
                while !is_at(&met, round) && !eager.is_finished() {
                    std::thread::yield_now();
                }
                drop(listener);
                if eager.is_finished() {
                    break;
                }
            }
            eager.join().unwrap().unwrap();
        });
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn a_place_that_is_taken_is_refused_and_one_that_nobody_serves_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let address = Address::Unix(folder.path().join("socket"));
        let listener = Listener::bind(&address).unwrap();
        let Err(Error::Io { source, .. }) = Listener::bind(&address) else { panic!("it is taken") };
        assert_eq!(source.kind(), io::ErrorKind::AddrInUse);
        UnixStream::connect(folder.path().join("socket")).unwrap();
        // As after a process was killed, the file stays.
        std::fs::hard_link(folder.path().join("socket"), folder.path().join("left")).unwrap();
        drop(listener);
        Listener::bind(&Address::Unix(folder.path().join("left"))).unwrap();
    }
}
