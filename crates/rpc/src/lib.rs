//! Messages between processes, their bytes, and the transports that carry them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`message`] | what is said, one conversation a file |
//! | [`codec`], [`header`], [`kind`], [`frame`], [`reader`] | the bytes of it |
//! | [`transport`] | the end that connects: blocking, over tcp, unix sockets or memory |
//! | [`service`], [`mod@serve`] | the end that is connected to: a pure state machine, and what runs it |
//! | [`limits`] | every limit by name |

pub mod codec;
pub mod error;
pub mod frame;
pub mod header;
pub mod kind;
pub mod limits;
pub mod message;
pub mod reader;
pub mod serve;
pub mod service;
pub mod stop;
pub mod transport;

pub use error::Error;
pub use limits::{CHUNK_BYTES, FrameLimits, Limits};
pub use message::Message;
pub use serve::{Listener, ServeConfig, serve};
pub use service::{ConnectionId, Effect, Service};
pub use stop::Stop;
pub use transport::{Address, ConnectOptions, Receiver, Sender, connect, open};
