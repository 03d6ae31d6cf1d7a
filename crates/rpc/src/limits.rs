//! Every limit of the protocol and of a service, by name.

use std::time::Duration;

/// Most bytes of keys, and of values, that a sender puts into one frame of the data plane: larger requests are cut.
/// A single row may take more.
pub const CHUNK_BYTES: usize = 4 << 20;
/// Most bytes of one row, its slots included: a row is never cut, so that it is merged, read and kept whole.
pub const ROW_BYTES: usize = 64 << 20;
/// What a receiver allows on top, so that a cut needs not be exact.
const SLACK_BYTES: u64 = 64 << 10;

/// The same in a batch, where values of the answers may take [`CHUNK_BYTES`]: headers, and refusals with their texts.
const BATCH_SLACK_BYTES: u64 = 1 << 20;
/// Most bytes of the arguments of functions for one lane, and of a lane's parts of an answer: a row fits.
pub const FUNCTION_BYTES: usize = ROW_BYTES;
/// Most messages in a batch.
pub const BATCH_COUNT_LIMIT: usize = 256;

/// Longest sections of a frame that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// Keys of a frame of the data plane, in bytes.
    pub keys_bytes: u64,
    /// Values of a frame of the data plane, in bytes. Senders cut at [`CHUNK_BYTES`]; a single row may be longer.
    pub values_bytes: u64,
    /// Meta of a frame of the data plane, in bytes: eight for each run.
    pub meta_bytes: u64,
    /// What one task brings to an all-reduce, and its sum, in bytes.
    pub sum_bytes: u64,
    /// A readable (JSON) section, in bytes.
    pub control_bytes: u64,
    /// The frames in a batch, in bytes.
    pub batch_bytes: u64,
    /// Arguments and answers of functions, in bytes.
    pub function_bytes: u64,
}

impl Default for FrameLimits {
    fn default() -> Self {
        Self {
            keys_bytes: CHUNK_BYTES as u64 + SLACK_BYTES,
            values_bytes: ROW_BYTES as u64 + SLACK_BYTES,
            meta_bytes: 1 << 20,
            sum_bytes: 64 << 20,
            control_bytes: 256 << 20,
            batch_bytes: CHUNK_BYTES as u64 + BATCH_SLACK_BYTES,
            function_bytes: FUNCTION_BYTES as u64 + SLACK_BYTES,
        }
    }
}

impl FrameLimits {
    /// Of one who has not said hello: nothing long.
    pub fn unauthenticated() -> Self {
        Self {
            keys_bytes: 0,
            values_bytes: 0,
            meta_bytes: 4 << 10,
            sum_bytes: 0,
            control_bytes: 4 << 10,
            batch_bytes: 0,
            function_bytes: 0,
        }
    }
}

/// Limits of a service. Those of bytes that wait to be written are of each branch of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of each frame.
    pub frame: FrameLimits,
    /// Most connections at once, those that have not said hello included. Further ones are told `BusyGuard` and closed.
    pub connections: usize,
    /// The hello must be there after so long.
    pub hello_time: Duration,
    /// No more requests of a connection are read while more bytes than this wait to be written to it.
    pub outbound_pause_bytes: usize,
    /// Most bytes of requests that are put aside for the branches of one connection that are paused; a connection with more
    /// is closed. One with a single branch is not read while that is paused.
    pub deferred_bytes: usize,
    /// A connection is closed when more bytes than this wait to be written to it.
    pub outbound_bytes: usize,
    /// A connection is closed when bytes wait to be written to it and it has taken none for so long.
    pub outbound_stall: Duration,
    /// What is still to be written to a connection when it is closed must be gone after so long.
    pub close_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame: FrameLimits::default(),
            connections: 4096,
            hello_time: Duration::from_secs(5),
            outbound_pause_bytes: 16 << 20,
            deferred_bytes: 256 << 20,
            outbound_bytes: 256 << 20,
            outbound_stall: Duration::from_secs(30),
            close_time: Duration::from_secs(2),
        }
    }
}
