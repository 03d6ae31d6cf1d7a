//! Linear models: `score = b + sum_j w_j x_j`, fitted by minimizing a loss of score and label. Logistic regression,
//! linear SVM, softmax, least squares and Huber regression share one trainer; they differ in the [`loss`](algo::loss).
//!
//! **Sources.** H. Brendan `McMahan` et al., "Ad click prediction: a view from the trenches", KDD 2013: algorithm 1
//! (FTRL-Proximal per coordinate, the default push rule) and section 5 (progressive validation: a record is scored
//! before it is learned). For losses see [`algo::loss`].
//!
//! **Notation.** n records of a batch, d distinct features in it, k classes (1 except for softmax). X: n x d, sparse;
//! w: d x k; b: k; slopes s: n x k, the derivative of the loss in the score.
//!
//! **Matrices.**
//!
//! | matrix | shape | element | push rule |
//! |---|---|---|---|
//! | `weights` | features x k, sparse by hash (dense by range with `dimensions`) | f32 | `optimizer` |
//! | `intercept` | 1 x k, dense | f32 | `optimizer` without l1 and l2 |
//! | `moments`, if `standardize` | features x 3: share of records with the feature, mean, mean square | f64 | add |
//!
//! **A step** of a task: pull `w[columns of the batch]` and `b`; compute scores `X w + b`, slopes, and the gradient `X'
//! s`, merged per feature; push the gradient; tick.
//!
//! **Where we differ.** The paper updates after every record. Here the gradients of a batch are summed per feature and
//! applied as one; this costs no quality on sparse data (measured up to 8,192 records on 1 M x 10 M synthetic clicks)
//! and needs one pull and one push per batch. SGD and momentum push the mean instead of the sum, because their step
//! grows with the gradient and the best rate would depend on the batch size; adaptive rules divide by the size of past
//! gradients, so for them the factor cancels.
//!
//! **All records.** With `lbfgs`, `owlqn`, `gd`, `svrg` and `admm` a step sees all records (`full_batch/`). They use
//! two more matrices, `numbers` and `vectors`, after these; `weights` and `intercept` are then assigned from the
//! vectors.
//!
//! **Cost** of a step with e entries: 2 e k multiply-adds; 4 d k bytes pulled and as many pushed.

mod auto;
mod choices;
mod coefficients;
pub mod descent;
mod family;
mod full_batch;
mod job;
mod model;
mod optimizer;
mod optimizer_params;
mod param_table;
mod params;
mod scan;
mod schedule;
mod score;
#[cfg(test)]
mod tests;
mod train;

pub use algo::scaling::{ScaledColumns, Standardize};
pub use family::FAMILY;
pub use job::{CLASS_LIMIT, Linear};
pub use model::Model;
pub use param_table::{AUTO_EPOCHS_LIMIT, AUTO_RECORD_VISITS, HUBER, LINEAR, LR, SOFTMAX, SVM};
pub use params::{ClassWeights, Params};
pub use score::LinearScorer;
