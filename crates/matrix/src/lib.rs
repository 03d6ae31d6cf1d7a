//! Parameters: what a matrix is, where its rows lie, how pushes merge, and when reads are allowed.
//!
//! | module | what it holds |
//! |---|---|
//! | [`agent`] | [`Agent`], the interface of algorithms to the parameters |
//! | [`pull_ticket`] | [`PullTicket`], a pull that is requested before its values are needed |
//! | [`spec`] | [`MatrixSpec`], the declared structure of a matrix |
//! | [`partitioner`] | from key to partition |
//! | [`initializer`] | initial values |
//! | [`rule`] | how pushes merge, one file for each rule |
//! | [`schedule`] | step sizes over clocks |
//! | [`clock`] | the clocks of tasks and the three consistency modes, without threads or time |
//! | [`function`] | PS functions: code that runs at the partitions |
//! | [`vector`] | long vectors whose arithmetic runs at the partitions |
//! | [`local`], [`local_agent`] | all matrices in one process |
//! | [`Matrix`] | partitions of a matrix: all of them in a process, or those of a lane |
//! | [`KeyRuns`] | the keys of a pull or push, in runs by partition |
//! | [`export`] | export and import of a matrix |
//! | [`lists`] | matrices whose rows are lists of any length |
//! | [`RowBlock`] | rows as they travel and lie in files |
//! | [`Snapshot`] | all rows of a matrix at one moment |
//! | [`reduce`] | the sum over tasks |
//! | [`stats`] | counters |

pub mod agent;
pub mod clock;
mod clock_barrier;
pub mod element;
pub mod error;
pub mod export;
pub mod function;
pub mod initializer;
mod key_runs;
pub mod lists;
pub mod local;
pub mod local_agent;
mod matrix;
pub mod matrix_rows;
mod partition;
pub mod partitioner;
mod partitions;
pub mod pull_ticket;
pub mod reduce;
mod routed_keys;
mod row_block;
mod row_positions;
pub mod rule;
pub mod schedule;
mod snapshot;
pub mod spec;
mod staged;
pub mod stats;
mod storage;
pub mod vector;

pub use agent::{Agent, Keys, MatrixId, Selection};
pub use clock::{Clock, ClockTable, Consistency, Prefetch};
pub use element::{Element, ElementType, OwnedValues, Values, ValuesMut};
pub use error::Error;
pub use export::{ExportRange, RowCounts};
pub use function::{FunctionCall, FunctionFault, FunctionTable, PullFunction, PushFunction};
pub use initializer::Initializer;
pub use key_runs::{KeyRuns, check_selection};
pub use lists::{ListMatrix, ListSelection};
pub use local::{LocalConfig, LocalStore};
pub use local_agent::LocalAgent;
pub use matrix::{Matrix, PartialAnswer, merge_partial_answers};
pub use matrix_rows::{MatrixRows, RowBlocks};
pub use partitioner::{OwnPartitioner, Partitioner, Placement};
pub use pull_ticket::PullTicket;
pub use routed_keys::{RoutedKeys, ValueOrder};
pub use row_block::{Lists, RowBlock};
pub use row_positions::{KeyRun, RowPositions};
pub use rule::PushRule;
pub use schedule::Schedule;
pub use snapshot::Snapshot;
pub use spec::{Axis, MatrixSpec, Storage};
pub use staged::{PushId, StagedRun};
pub use stats::{MatrixStats, StoreStats};
pub use vector::{ServerVector, VectorPool};
