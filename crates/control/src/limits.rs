//! Every limit of the control plane by name. How many connections there may be, and how long the first bytes may take, are
//! limits of the port ([`rpc::Limits`]), which calls share with frames.

use std::time::Duration;

/// Longest request: a job file has some KB.
pub const REQUEST_BYTES: usize = 4 << 20;
/// Longest answer: the status of thousands of members.
pub const ANSWER_BYTES: usize = 64 << 20;
/// Of an answer, what lies with the connection before its reader has room for it.
pub const PIECE_BYTES: usize = 16 << 10;
/// Calls that are under way on one connection; further ones wait at their sender.
pub const STREAMS: u32 = 64;
/// Names and values in the head of a call.
pub const HEADER_BYTES: u32 = 16 << 10;
/// Longest time of a call, whatever deadline it carries. What is watched is not bound by it.
pub const CALL_TIME: Duration = Duration::from_mins(1);
/// A connection that has only asked for health, which needs no token, is closed after so long.
pub const STRANGER_TIME: Duration = Duration::from_mins(1);
/// One that says nothing is asked for a sign of life so often,
pub const SIGN_EVERY: Duration = Duration::from_secs(30);
/// and closed when none comes for so long.
pub const SIGN_TIME: Duration = Duration::from_secs(20);
