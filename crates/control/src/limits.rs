//! Every limit of the control plane by name. How many connections there may be, and how long the first bytes may take, are
//! limits of the port ([`rpc::Limits`]), which calls share with frames.

use std::time::Duration;

/// Longest request: a job file has some KB.
pub const REQUEST_BYTES: usize = 4 << 20;
/// Longest answer: the status of thousands of members.
pub const RESPONSE_BYTES: usize = 64 << 20;
/// Longest title of a job that is kept.
pub const TITLE_BYTES: usize = 300;
/// Longest text of an error that is kept: it may quote a line of the data.
pub const ERROR_BYTES: usize = 4 << 10;
/// Longest progress of a job: its matrices, and where 64 of its tasks stand.
pub const PROGRESS_BYTES: usize = 64 << 10;
/// Longest report of a job that is given to those who watch it, and kept for those who ask later: about 70,000 epochs.
pub const REPORT_BYTES: usize = 32 << 20;
/// Longest report of a member of itself.
pub const MEMBER_REPORT_BYTES: usize = 16 << 10;
/// Of an answer, what lies with the connection before its reader has room for it.
pub const BODY_CHUNK_BYTES: usize = 16 << 10;
/// Calls that are under way on one connection; further ones wait at their sender.
pub const STREAM_LIMIT: u32 = 64;
/// Names and values in the head of a call.
pub const HEADER_BYTES: u32 = 16 << 10;
/// Longest time of a call, whatever deadline it carries. What is watched is not bound by it.
pub const CALL_TIME: Duration = Duration::from_mins(1);
/// A connection that has only asked for health, which needs no token, is closed after so long.
pub const UNAUTHENTICATED_TIME: Duration = Duration::from_mins(1);
/// One that says nothing is asked for a sign of life so often,
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// and closed when none comes for so long.
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);
