//! Learning algorithms: each family has its own folder, with the same file names in each.
//!
//! | module | what it holds |
//! |---|---|
//! | [`family`] | what the program knows of a family: its row, its models; the table of families |
//! | [`algorithm`] | an algorithm on one page: one impl, from which family, job, model, scorer and learner follow |
//! | [`advice`] | what the losses of a training say, and what may help |
//! | [`job`] | what a job of any family needs of its data, and what a task receives |
//! | [`task_loop`] | the loop of a task: epochs, validation, reports, what a task keeps between epochs |
//! | `batch_loop` | an epoch of a task that learns batch by batch |
//! | `check`, `in_process` | whether an algorithm gives the same bytes for any servers and from every save; runs in memory |
//! | [`coordinator`] | what the tasks of a job report to the coordinator that runs them |
//! | [`param`] | parameters: type, range, default, unit, meaning; checked once |
//! | [`descent`] | L-BFGS, OWL-QN and gradient descent on vectors at the partitions |
//! | [`factorization`] | factorization machines, plain and field-aware |
//! | [`mod@kmeans`] | KMeans: Lloyd, mini-batches, k-means++ and k-means|| |
//! | [`linear`] | logistic regression, SVM, softmax, least squares, Huber: one trainer |
//! | [`loss`], [`csr`], `labels` | losses of scores, arithmetic of sparse records, labels as users write them |
//! | [`recommend`] | recommenders: factorization of ratings and of choices, the best items of users |
//! | [`scaling`], `scan` | scaling of columns by their moments, which a scan of all records measures |
//! | `rows`, `chosen`, `exchange` | rows of matrices by the keys of a batch; values for settings that are left open; sums over tasks |
//! | [`topics`] | latent Dirichlet allocation by collapsed Gibbs sampling |
//! | [`metric`] | exact metrics that merge over tasks |
//! | [`stopping`] | early stopping on a validation metric |

pub mod advice;
pub mod algorithm;
mod batch_loop;
mod check;
mod chosen;
pub mod coordinator;
pub mod csr;
pub mod descent;
pub mod error;
mod exchange;
pub mod factorization;
pub mod family;
mod in_process;
pub mod job;
pub mod kmeans;
pub mod labels;
pub mod linear;
pub mod loss;
pub mod metric;
pub mod param;
pub mod recommend;
mod rows;
pub mod scaling;
mod scan;
pub mod stopping;
pub mod task_loop;
#[cfg(test)]
mod test_harness;
pub mod topics;
pub mod trees;

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

/// The families of this crate. A new one is a folder and a row here.
pub const FAMILIES: &[&Family] = &[
    &factorization::FAMILY,
    &kmeans::FAMILY,
    &linear::FAMILY,
    &recommend::FAMILY,
    &topics::FAMILY,
    &trees::FAMILY,
];

/// Creates the table of all PS functions: the built-in ones and those of the families of this crate.
pub fn functions() -> matrix::FunctionTable {
    let mut table = matrix::FunctionTable::builtin();
    Families::default().add_functions(&mut table).expect("the names of the functions differ");
    table
}
