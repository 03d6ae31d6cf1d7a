//! Messages between processes, their bytes, and the transports that carry them.
//!
//! | module | contents |
//! |---|---|
//! | [`message`] | the messages, one topic a file |
//! | [`codec`], [`header`], [`kind`], [`frame`], [`reader`] | the bytes of messages |
//! | [`wire`] | values: exact, or rounded to fewer bytes |
//! | [`transport`] | the end that connects: blocking, over tcp or unix sockets |
//! | [`service`], [`mod@serve`] | the end that accepts: a pure state machine, and the threads that run it |
//! | [`reliable_queue`] | messages about jobs between members and the master, kept until they are acknowledged |
//! | [`trace`] | the identity of a request in the logs |
//! | [`metrics`] | the counters of a process |
//! | [`buffers`] | the memory of large frames |
//! | [`limits`] | every limit by name |

pub mod buffers;
pub mod codec;
pub mod error;
pub mod frame;
pub mod header;
pub mod kind;
pub mod layout;
pub mod limits;
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
pub use serve::{Listener, ServeConfig, serve};
pub use service::{ConnectionId, Effect, Service};
pub use stop::Stop;
pub use transport::{Address, Closer, ConnectOptions, Receiver, Sender, connect, open, open_first};
pub use wire::{WireType, WireValues};
