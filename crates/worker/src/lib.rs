//! Reaches parameters on servers: the agent as a pure state machine, and its sockets.
//!
//! | module | contents |
//! |---|---|
//! | [`state`] | [`AgentState`], the agent without sockets and without a clock of its own |
//! | [`stats`] | the counters of an agent |
//! | [`agent`] | [`RemoteAgent`], the same over blocking connections |
//! | [`session`] | [`ParameterSession`]: matrices of the parameter service for a loop of a program's own |
//! | `lane_client` | [`LaneClient`], the connection to a lane that agents, tools and sessions use |
//! | `cancellation` | [`CancellationToken`], which ends the waits of agents when their job ends |
//!
//! The state is cut by concern: `matrix::KeyRuns` and `lane_keys` split the keys of a call by partition and by lane;
//! `pending_pull` is a pull that is not answered, and `prefetch` a pull sent before the task waits for it; `push`,
//! `function` and `clocks` are the other calls; `residuals` is what rounding took from pushes; `long_key_list` splits
//! calls with very many keys into parts; `lane` is the state of a lane, with its `retransmit_queue` and its
//! `cached_key_lists`; `input` handles messages, connections and time.

pub mod agent;
mod cached_key_lists;
mod call;
mod cancellation;
mod clocks;
mod function;
mod injected_fault;
mod input;
mod lane;
mod lane_client;
mod lane_keys;
#[cfg(test)]
mod layout_tests;
mod long_key_list;
mod pending_pull;
mod prefetch;
mod pull;
mod push;
mod residuals;
mod retransmit_queue;
pub mod session;
pub mod state;
pub mod stats;

pub use agent::RemoteAgent;
pub use call::CallOutput;
pub use cancellation::CancellationToken;
#[cfg(feature = "fault-injection")]
pub use injected_fault::InjectedFault;
pub use lane_client::{LaneClient, RetryPolicy};

pub use prefetch::PrefetchCounts;
pub use residuals::RESIDUAL_LIMIT_BYTES;
pub use session::{ParameterSession, PushIdentity, SessionError, SessionOptions};
pub use state::{AgentEffect, AgentState};
pub use stats::{AgentStats, SharedStats};
