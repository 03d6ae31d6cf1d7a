//! Parameters: what a matrix is, where its rows lie, how pushes merge, when reads are allowed.
//!
//! | module | what it holds |
//! |---|---|
//! | [`agent`] | [`UnsupportedAgent`], all that an algorithm sees |
//! | [`spec`] | [`MatrixSpec`], the declared structure of a matrix |
//! | [`partitioner`] | from key to partition |
//! | [`initializer`] | first values |
//! | [`rule`] | how pushes merge, one file a rule |
//! | [`schedule`] | step sizes over clocks |
//! | [`clock`] | freshness: the clocks of tasks and the three modes, pure |
//! | [`function`] | code that runs at the partitions |
//! | [`vector`] | long vectors that are worked on at the partitions |
//! | [`local`], [`local_agent`] | all of it in one process |
//! | [`lane_matrix`], [`key_router`] | the halves of it for servers and for agents that send |
//! | [`export`] | a matrix out of its partitions, and back |
//! | [`reduce`] | the sum over tasks |
//! | [`stats`] | what is counted |

pub mod agent;
pub mod clock;
mod clock_barrier;
pub mod element;
pub mod error;
pub mod export;
pub mod function;
pub mod initializer;
pub mod key_router;
mod key_runs;
pub mod lane_matrix;
pub mod local;
pub mod local_agent;
mod local_function;
mod matrix;
pub mod matrix_rows;
mod partition;
pub mod partitioner;
pub mod reduce;
pub mod rule;
pub mod schedule;
pub mod spec;
mod staged;
pub mod stats;
mod storage;
pub mod vector;

pub use agent::{Agent, Keys, MatrixId, Selection};
pub use clock::{Clock, ClockTable, Consistency};
pub use element::{Element, ElementType, OwnedValues, Values, ValuesMut};
pub use error::Error;
pub use export::ExportedRows;
pub use function::{FunctionCall, FunctionFault, FunctionTable, PullFunction, PushFunction};
pub use initializer::Initializer;
pub use key_router::{KeyRouter, RoutedKeys, check_selection};
pub use lane_matrix::{KeyRun, LaneMatrix, PartialAnswer, PushId, RowPositions};
pub use local::{LocalConfig, LocalStore};
pub use local_agent::LocalAgent;
pub use matrix_rows::{MatrixRows, RowBlock, RowBlocks};
pub use partitioner::{Partitioner, Placement};
pub use rule::PushRule;
pub use schedule::Schedule;
pub use spec::{Axis, MatrixSpec, Storage};
pub use stats::{MatrixStats, StoreStats};
pub use vector::{ServerVector, VectorPool};
