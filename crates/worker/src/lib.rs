//! Reaches parameters on servers: the agent as a pure state machine, and its sockets.
//!
//! | module | what it holds |
//! |---|---|
//! | [`layout`] | [`JobLayout`]: which lane holds which partition, and where the lanes are |
//! | [`state`] | [`AgentState`], the agent without sockets and without a clock of its own |
//! | [`stats`] | what an agent counts, for whoever watches |
//! | [`agent`] | [`RemoteAgent`], the same over blocking connections |
//! | `cancellation` | [`CancellationToken`], by which the end of a job reaches agents that wait |
//! | `multiplexer` | [`Multiplexer`], one connection to each lane for all tasks of a process |
//! | `ahead` | [`AheadAgent`], which asks for what the next step reads; what that is, its `pull_pattern` learns |
//!
//! The state is cut by concern: `route` and `lane_keys` turn keys into pieces, `ask` is a pull under way, `prefetch` one asked
//! ahead, `cache` what was read before, `push`, `function` and `clocks` the other calls, `residuals` what rounding has left of
//! pushes, `long_key_list` the calls with so many keys that they go in parts; `lane` is what is known of a lane, with the `log` of what it
//! has not confirmed and the key lists that it knows (`cached_key_lists`); `input` is what comes from outside.

pub mod agent;
mod ahead;
mod broken;
mod cache;
mod cached_key_lists;
mod cancellation;
mod clocks;
mod function;
mod input;
mod lane;
mod lane_connection;
mod lane_keys;
pub mod layout;
mod long_key_list;
mod multiplexer;
mod pending_pull;
mod prefetch;
mod pull;
mod pull_pattern;
mod push;
mod residuals;
mod retransmit_queue;
mod route;
pub mod state;
pub mod stats;

pub use agent::RemoteAgent;
pub use ahead::{AheadAgent, Upcoming};
#[cfg(feature = "broken")]
pub use broken::Broken;
pub use cache::CacheCounts;
pub use cancellation::CancellationToken;
pub use layout::{JobLayout, LaneAddress, LayoutError, Prefetch, assign_partitions, can_be_rounded};
pub use multiplexer::Multiplexer;
pub use prefetch::AheadCounts;
pub use residuals::RESIDUAL_LIMIT_BYTES;
pub use state::{AgentEffect, AgentState, CallOutput};
pub use stats::{AgentStats, SharedStats};
