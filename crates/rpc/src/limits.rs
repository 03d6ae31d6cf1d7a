//! Every limit of the protocol and of a service, by name.

use std::time::Duration;

/// Most bytes of keys, and of values, that a sender puts into one frame of the data plane; larger requests are split. A
/// single row may take more.
pub const CHUNK_BYTES: usize = 4 << 20;
/// Most bytes of one row, its slots included. A row is never split, so that it is merged, read and stored as a whole.
pub const ROW_BYTES: usize = 64 << 20;
/// What a receiver allows in addition, so that a split needs not be exact.
const SLACK_BYTES: u64 = 64 << 10;

/// What a receiver allows in a batch in addition to [`CHUNK_BYTES`] of values: headers, and refusals with their texts.
const BATCH_SLACK_BYTES: u64 = 1 << 20;
/// Most bytes of the arguments of functions for one lane, and of the answers of the partitions of a lane. A row fits.
pub const FUNCTION_BYTES: usize = ROW_BYTES;
/// Most messages in a batch.
pub const BATCH_COUNT_LIMIT: usize = 256;

/// The longest sections of a frame that a receiver accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// Keys of a frame of the data plane, in bytes.
    pub keys_bytes: u64,
    /// Values of a frame of the data plane, in bytes. Senders split at [`CHUNK_BYTES`]; a single row may be longer.
    pub values_bytes: u64,
    /// Meta of a frame of the data plane, in bytes: eight for each run.
    pub meta_bytes: u64,
    /// The contribution of one task to an all-reduce, and the sum, in bytes.
    pub sum_bytes: u64,
    /// A JSON section, in bytes.
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
    /// The limits before the `Hello` is accepted: no long section.
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

/// Limits of a service. The limits of bytes that wait to be written are for each connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub frame: FrameLimits,
    /// Most connections at once, including those that have not sent `Hello`. Further connections get a fault `Busy` and
    /// are closed.
    pub connections: usize,
    /// Longest wait for the `Hello`.
    pub hello_time: Duration,
    /// The lane stops reading requests of a connection while more bytes than this wait to be written to it.
    pub outbound_pause_bytes: usize,
    /// A connection is closed when more bytes than this wait to be written to it.
    pub outbound_bytes: usize,
    /// A connection is closed when bytes wait to be written to it and the other end has read none for this time.
    pub outbound_stall: Duration,
    /// Longest time for writing the remaining bytes to a connection that is closed.
    pub close_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame: FrameLimits::default(),
            connections: 4096,
            hello_time: Duration::from_secs(5),
            outbound_pause_bytes: 16 << 20,
            outbound_bytes: 256 << 20,
            outbound_stall: Duration::from_secs(30),
            close_time: Duration::from_secs(2),
        }
    }
}
