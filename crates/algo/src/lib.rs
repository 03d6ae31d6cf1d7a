//! Learning algorithms: each family has its own folder, with the same file names in each.
//!
//! | module | what it holds |
//! |---|---|
//! | [`mod@algorithm`] | the table of algorithms; [`Job`] and [`Model`], which cover all families |
//! | [`job`] | what a job of any family needs of its data, and what a task receives |
//! | [`coordinator`] | what the tasks of a job report to the coordinator that runs them |
//! | [`param`] | parameters: type, range, default, unit, meaning; checked once |
//! | [`descent`] | L-BFGS, OWL-QN and gradient descent on vectors at the partitions |
//! | [`linear`] | logistic regression, SVM, softmax, least squares, Huber: one trainer |
//! | [`metric`] | exact metrics that merge over tasks |
//! | [`stopping`] | early stopping on a validation metric |

pub mod algorithm;
pub mod coordinator;
pub mod descent;
pub mod error;
pub mod job;
pub mod linear;
pub mod metric;
pub mod param;
pub mod stopping;

pub use algorithm::{
    Algorithm, DataFacts, DataNeeds, DataProfile, Epochs, Job, Model, Output, Resolution, ResolvedSettings,
    Scorer, TrainTask, algorithm, algorithms, evaluate, functions,
};
pub use coordinator::{Coordinator, EpochDecision, EpochReport, StepDecision};
pub use error::Error;
pub use metric::MetricAccumulator;
pub use param::{ParamKind, ParamSpec};
pub use stopping::{EarlyStopping, StoppingDecision};
