//! Every limit of the control plane by name. The number of connections, the time for the first call and the time for which
//! an answer may stay unread are those of [`rpc::Limits`], which hold for a port of frames too.

use std::time::Duration;

/// Longest request: a job file has some KB.
pub const REQUEST_BYTES: usize = 4 << 20;
/// Longest answer: the status of thousands of members.
pub const RESPONSE_BYTES: usize = 64 << 20;
/// Longest name of a worker group.
pub const WORKER_GROUP_BYTES: usize = 200;
/// Longest title of a job that is stored.
pub const TITLE_BYTES: usize = 300;
/// Longest text of an error that is stored: it may quote a line of the data.
pub const ERROR_BYTES: usize = 4 << 10;
/// Longest progress of a job: its matrices, and the state of 64 of its tasks.
pub const PROGRESS_BYTES: usize = 64 << 10;
/// Longest report of a job that is sent to its watchers and stored for later requests: about 70,000 epochs.
pub const REPORT_BYTES: usize = 32 << 20;
/// Longest report of a member about itself.
pub const MEMBER_REPORT_BYTES: usize = 16 << 10;
/// Most bytes of an answer that are passed to a connection at once, when its reader has room for them.
pub const BODY_CHUNK_BYTES: usize = 16 << 10;
/// Most concurrent calls on one connection; further calls wait at the client.
pub const STREAM_LIMIT: u32 = 64;
/// Most connections above the limit that wait for the refusal of their first call; further ones are closed.
pub const REFUSAL_LIMIT: usize = 64;
/// Names and values in the headers of a call.
pub const HEADER_BYTES: u32 = 16 << 10;
/// Longest time of a call, whatever its deadline. It does not limit watches.
pub const CALL_TIME: Duration = Duration::from_mins(1);
/// A connection that has only called the health service, which needs no token, is closed after this time.
pub const UNAUTHENTICATED_TIME: Duration = Duration::from_mins(1);
/// A connection without traffic is pinged at this interval.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// A connection that does not answer a ping is closed after this time.
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);
