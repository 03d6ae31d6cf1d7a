//! Errors of the communication between processes.

use std::io;

use crate::message::Fault;

/// An error of this crate. Variants carry data; the text says what, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the error text of each variant explains its fields")]
pub enum Error {
    /// The other end has closed the connection, or this end was shut down.
    #[error("the connection is closed")]
    Closed,

    /// Nothing arrived in time. Nothing is lost: the next receive continues.
    #[error("timed out {during}")]
    TimedOut { during: &'static str },

    /// The other end answered with a fault.
    #[error("refused ({:?}): {}", .0.kind, .0.text)]
    Refused(Fault),

    /// The operating system returned an error.
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },

    /// The text is not an address.
    #[error("address {text:?}: {problem}; write tcp:HOST:PORT, HOST:PORT or unix:PATH")]
    Address { text: String, problem: &'static str },

    /// The other end answered with HTTP.
    #[error(
        "this is an HTTP port: members and clients of parameters use the port of frames, which is the port before it \
         unless --http named another one"
    )]
    Http,

    /// The other end uses another protocol.
    #[error("not a frame: the first bytes are {actual:#010x}, expected {expected:#010x} (\"SRPH\")")]
    Magic { expected: u32, actual: u32 },

    /// The other end uses another version of the protocol.
    #[error(
        "the frame has protocol version {actual}, this process uses {expected}: use the same release at both ends"
    )]
    Version { expected: u16, actual: u16 },

    /// The bytes were damaged on the way.
    #[error(
        "{part} of frame {kind} is damaged: its CRC-32C is {actual:#010x}, the header has {expected:#010x}"
    )]
    Checksum { part: &'static str, kind: u16, expected: u32, actual: u32 },

    /// This version does not have the kind.
    #[error("frame kind {kind} is unknown, kinds are 1 to {last}")]
    Kind { kind: u16, last: u16 },

    /// A section is longer than its limit.
    #[error("{section} of frame {kind} has {bytes} bytes, the limit is {limit}")]
    TooLong { kind: &'static str, section: &'static str, bytes: u64, limit: u64 },

    /// A field has an impossible value.
    #[error("frame {kind}: {field} is {actual}, expected {expected}")]
    Field { kind: &'static str, field: &'static str, actual: String, expected: String },

    /// A meta section ends early or late.
    #[error("frame {kind}: meta has {actual} bytes, {field} ends at {expected}")]
    MetaLength { kind: &'static str, field: &'static str, expected: usize, actual: usize },

    /// A JSON section cannot be parsed.
    #[error("frame {kind}: its JSON cannot be read: {problem}")]
    Json { kind: &'static str, problem: String },

    /// Another message arrived than the expected one.
    #[error("received {actual}, expected {expected}")]
    Unexpected { expected: &'static str, actual: &'static str },

    /// A thread of the service ended by itself.
    #[error("lane {lane} panicked; see its error earlier in the log")]
    Lane { lane: usize },
}

impl Error {
    /// An error of a Unix socket at `path`. A path that is too long is told in other words than the system's.
    pub(crate) fn unix(what: String, path: &std::path::Path, source: io::Error) -> Self {
        /// Most bytes of the path of a Unix socket, with the byte that ends it.
        const PATH_BYTES: usize = 108;
        let bytes = path.as_os_str().len();
        if source.kind() != io::ErrorKind::InvalidInput || bytes < PATH_BYTES {
            return Error::Io { what, source };
        }
        let text = format!(
            "the path of a Unix socket has at most {} bytes, and this one has {bytes}: use a shorter folder (for sockets in \
             the folder of temporary files, set TMPDIR)",
            PATH_BYTES - 1
        );
        Error::Io { what, source: io::Error::new(io::ErrorKind::InvalidInput, text) }
    }

    /// An error of the operating system, with the operation that failed.
    pub(crate) fn io(what: impl Into<String>, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected => Error::Closed,
            _ => Error::Io { what: what.into(), source },
        }
    }

    /// Whether the other end is lost, or has lost what the request is about: nothing is wrong with the request itself.
    pub fn is_loss(&self) -> bool {
        match self {
            Error::Closed | Error::TimedOut { .. } | Error::Io { .. } => true,
            Error::Refused(fault) => fault.kind.is_loss(),
            _ => false,
        }
    }

    /// Whether the error only means that the operation would block.
    pub(crate) fn is_wait(kind: io::ErrorKind) -> bool {
        matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
    }
}
