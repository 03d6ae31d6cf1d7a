//! Boosted trees (Friedman, "Greedy function approximation: a gradient boosting machine", 2001) on histograms of bins (Ke et
//! al., "LightGBM", NIPS 2017). Gradients are integers, so that the trees have the same bytes for any number of tasks,
//! threads, servers and workers.
//!
//! **Tables.**
//!
//! | table | shape | element | push rule |
//! |---|---|---|---|
//! | `importances` | keys of the data x 3: splits, gain, 1 + number of the feature | f64 | add |
//! | `ensemble` | 1 x (1 + classes): iterations, first scores | f64 | assign |
//! | `nodes` | (tree x (2 leaves - 1) + node) x 9 | f64 | assign |
//! | `categories` | (node x 1024 + word) x 1: 64 categories that go left | i64 | assign |
//!
//! While several tasks train there is also `histograms`, by column (`histogram/partitions`).
//!
//! **An iteration** of a task: gradients and hessians of its records; for leaves that are split, the histogram of the
//! smaller child, which it pushes; the partitions add them up, subtract them from those of the parents, and find the best
//! splits. A task alone does the same in its memory.
//!
//! | file | what it holds |
//! |---|---|
//! | `params`, `auto`, `constraints` | parameters, those that are left open, directions of features and which may meet |
//! | `bins`, `records` | features and their bins; the records of a task as bins |
//! | `objective` | what is minimized: labels, gradients and hessians, percentiles, groups |
//! | `histogram` | gradients as integers, and their sums by bins: of a leaf, of a tree in memory, at the partitions |
//! | `split`, `sampling` | the best split of a leaf; the records of an iteration, and the features of a leaf |
//! | `grow`, `leaves` | a tree, leaf by leaf; the values of its leaves |
//! | `train` | a task |
//! | `tree`, `model`, `importances` | trees in tables, the saved model, what trees say of their features |
//! | `scoring`, `validation` | trees laid out for scoring; the validation records of a task |
//! | `explain` | what each feature adds to a score, and the leaves of a record |
//! | `names`, `render`, `lightgbm` | trees for people, and for LightGBM and back |

mod auto;
mod bins;
mod constraints;
mod explain;
mod family;
mod grow;
mod histogram;
mod importances;
mod leaves;
pub mod lightgbm;
mod model;
mod names;
mod objective;
mod params;
mod records;
mod render;
mod sampling;
mod scoring;
mod split;
#[cfg(test)]
mod tests;
mod train;
mod tree;
mod validation;

pub use constraints::Constraints;
pub use family::FAMILY;
pub use model::Model;
pub use objective::Objective;
