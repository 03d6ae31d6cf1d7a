//! What trees minimize.
//!
//! | file | what it holds |
//! |---|---|
//! | `kind` | the objectives: labels, predictions, first scores |
//! | `slopes` | losses, gradients and hessians of records |
//! | `percentile` | percentiles over all tasks, for scores and leaves of `absolute` and `quantile` |
//! | `ranking` | the groups of `lambdarank`, and its gradients |
//! | `metrics` | what records add to the metrics |

mod kind;
mod metrics;
mod percentile;
mod ranking;
mod slopes;

pub use kind::Objective;
pub(super) use metrics::{add_losses, add_to_metrics};
pub(super) use percentile::percentiles;
pub(super) use ranking::{Ranking, position_of};
pub(super) use slopes::{Slopes, slopes};
