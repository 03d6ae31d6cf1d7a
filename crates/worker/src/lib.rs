//! Reaches parameters on servers: the agent as a pure state machine, and its sockets.
//!
//! | module | what it holds |
//! |---|---|
//! | [`layout`] | [`JobLayout`]: which lane holds which partition, and where the lanes are |
//! | [`state`] | [`AgentState`], the agent without sockets and without a clock of its own |
//! | [`meter`] | what an agent counts, for whoever watches |
//! | [`agent`] | [`RemoteAgent`], the same over blocking connections |
//!
//! The state is cut by concern: `route` and `plan` turn keys into pieces, `ask` is a pull under way, `prefetch` one asked
//! ahead, `push` and `clocks` the other calls; `lane` is what is known of a lane, with the `log` of what it has not
//! confirmed and the key lists that it knows (`known`); `input` is what comes from outside.

pub mod agent;
mod ask;
mod clocks;
mod input;
mod known;
mod lane;
pub mod layout;
mod log;
pub mod meter;
mod plan;
mod prefetch;
mod pull;
mod push;
mod route;
pub mod state;

pub use agent::RemoteAgent;
pub use layout::{JobLayout, LaneAddress, LayoutError, spread};
pub use meter::{AgentStats, Meter};
pub use state::{AgentEffect, AgentState, Outcome};
