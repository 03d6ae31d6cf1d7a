//! What all families of algorithms share: their interfaces, and the parts that several of them are made of. Each family has a
//! crate of its own, with the same file names in each; this one names none.
//!
//! | module | what it holds |
//! |---|---|
//! | [`family`], `model` | what the program knows of a family: its row, the table of families; its models |
//! | [`algorithm`] | an algorithm on one page: one impl, from which family, job, model, scorer and learner follow |
//! | [`advice`] | what the losses of a training say, and what may help |
//! | [`job`], `needs`, `data_facts`, `train_task` | a job of any family; what it needs of its data and what is known of them; what a task receives |
//! | `output`, `scorer` | what a prediction is, and how batches are scored |
//! | [`task_loop`], `learner`, `task_state` | the loop of a task: epochs, validation, reports; what a family gives it; what a task keeps between epochs |
//! | [`batch_loop`] | an epoch of a task that learns batch by batch |
//! | `check`, [`in_process`] | whether an algorithm gives the same bytes for any servers and from every save; runs in memory |
//! | `test_harness`, a feature | what tests of families train with |
//! | [`coordinator`] | what the tasks of a job report to the coordinator that runs them |
//! | [`param`] | parameters: type, range, default, unit, meaning; checked once |
//! | [`loss`], [`csr`], [`labels`] | losses of scores, arithmetic of sparse records, labels as users write them |
//! | [`scaling`], [`mod@scan`] | scaling of columns by their moments, which a scan of all records measures |
//! | [`rows`], [`mod@chosen`], [`exchange`] | rows of matrices by the keys of a batch; values for settings that are left open; sums over tasks |
//! | [`metric`] | exact metrics that merge over tasks |
//! | [`stopping`] | early stopping on a validation metric |

pub mod advice;
pub mod algorithm;
pub mod batch_loop;
mod check;
pub mod chosen;
pub mod coordinator;
pub mod csr;
mod data_facts;
pub mod error;
pub mod exchange;
pub mod family;
pub mod in_process;
pub mod job;
pub mod labels;
mod learner;
pub mod loss;
pub mod metric;
mod model;
mod needs;
mod output;
pub mod param;
pub mod rows;
pub mod scaling;
pub mod scan;
mod scorer;
pub mod stopping;
pub mod task_loop;
mod task_state;
#[cfg(any(test, feature = "test-harness"))]
pub mod test_harness;
mod train_task;

pub use advice::{EpochMetrics, Remedies, TrainingReport};
pub use algorithm::Algorithm;
pub use check::check;
pub use coordinator::{Coordinator, EpochDecision, EpochReport, StepDecision};
pub use error::Error;
pub use family::{
    AlgorithmRow, DerivedTable, Families, Family, MissingTable, Model, ModelFacts, RecordNeeds, SavedModel,
    TextFormat,
};
pub use job::{
    DataFacts, DataProfile, Epochs, Explanation, Job, Needs, Output, Resolution, ResolvedSettings, Scorer,
    TableLayout, TrainTask, evaluate,
};
pub use metric::MetricAccumulator;
pub use param::{ParamKind, ParamSpec};
pub use stopping::{EarlyStopping, StoppingDecision};
pub use task_loop::{EpochEnd, Learner, TaskState, train};
