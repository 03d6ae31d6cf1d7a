//! Messages between processes, their bytes, and the transports that carry them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`message`] | what is said, one conversation a file |
//! | [`codec`], [`header`], [`kind`], [`frame`], [`reader`] | the bytes of it |
//! | [`wire`] | values as they are, or rounded to fewer bytes |
//! | [`transport`] | the end that connects: blocking, over tcp, unix sockets or memory |
//! | [`service`], [`mod@serve`] | the end that is connected to: a pure state machine, and what runs it |
//! | [`member`] | the end of a member that talks with the master |
//! | [`reliable_queue`] | what members and master say about jobs, until it is known to have arrived |
//! | [`trace`] | the identity of a request in the logs |
//! | [`metrics`] | what a process counts, as `/metrics` tells it |
//! | [`buffers`] | the memory of large frames |
//! | [`limits`] | every limit by name |

pub mod buffers;
pub mod codec;
pub mod error;
pub mod frame;
pub mod header;
pub mod kind;
pub mod limits;
pub mod member;
pub mod message;
pub mod metrics;
pub mod reader;
pub mod reliable_queue;
pub mod serve;
pub mod service;
pub mod stop;
pub mod trace;
pub mod transport;
pub mod wire;

#[doc(hidden)]
pub use tracing;

pub use error::Error;
pub use limits::{CHUNK_BYTES, FUNCTION_BYTES, FrameLimits, Limits, ROW_BYTES};
pub use message::Message;
pub use metrics::Metrics;
pub use serve::{Listener, ServeConfig, serve, serve_with_handler};
pub use service::{ConnectionId, Effect, Service};
pub use stop::Stop;
pub use transport::{Address, Closer, ConnectOptions, Receiver, Sender, connect, open};
pub use wire::{WireType, WireValues};
