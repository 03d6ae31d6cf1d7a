//! Reaches parameters on servers: the agent as a pure state machine, and its sockets.
//!
//! | module | what it holds |
//! |---|---|
//! | [`layout`] | [`JobLayout`]: which lane holds which partition, and where the lanes are |
//! | [`state`] | [`AgentState`], the agent without sockets and without a clock of its own |
//! | [`meter`] | what an agent counts, for whoever watches |
//! | [`agent`] | [`RemoteAgent`], the same over blocking connections |
//! | `cancellation` | [`Cancellation`], by which the end of a job reaches agents that wait |
//! | `trunks` | [`Trunks`], one connection to each lane for all tasks of a process |
//! | `ahead` | [`AheadAgent`], which asks for what the next step reads; what that is, its `habit` learns |
//!
//! The state is cut by concern: `route` and `plan` turn keys into pieces, `ask` is a pull under way, `prefetch` one asked
//! ahead, `cache` what was read before, `push`, `function` and `clocks` the other calls, `rest` what rounding has left of
//! pushes, `long` the calls with so many keys that they go in parts; `lane` is what is known of a lane, with the `log` of what it
//! has not confirmed and the key lists that it knows (`known`); `input` is what comes from outside.

pub mod agent;
mod ahead;
mod ask;
mod broken;
mod cache;
mod cancellation;
mod clocks;
mod connection;
mod function;
mod habit;
mod input;
mod known;
mod lane;
pub mod layout;
mod log;
mod long;
pub mod meter;
mod plan;
mod prefetch;
mod pull;
mod push;
mod rest;
mod route;
pub mod state;
mod trunks;

pub use agent::RemoteAgent;
pub use ahead::{AheadAgent, Upcoming};
#[cfg(feature = "broken")]
pub use broken::Broken;
pub use cache::CacheCounts;
pub use cancellation::Cancellation;
pub use layout::{JobLayout, LaneAddress, LayoutError, Prefetch, can_be_rounded, spread};
pub use meter::{AgentStats, Meter};
pub use prefetch::AheadCounts;
pub use rest::REST_LIMIT_BYTES;
pub use state::{AgentEffect, AgentState, Outcome};
pub use trunks::Trunks;
