//! KMeans: k centres such that the sum of the squared distances of the records from their nearest centres is small.
//!
//! **Sources.** Lloyd, "Least squares quantization in PCM", 1982 (`method=lloyd`); Sculley, "Web-scale k-means
//! clustering", WWW 2010, algorithm 1 (`method=mini_batch`); the first centres: see `seeding`; `distance=cosine` is the
//! spherical k-means of Dhillon and Modha, 2001: records and centres have the length 1.
//!
//! **Notation.** n records of a task, d features that occur in them, k centres. X: n x d; C: d x k; S: d x k, the sums of
//! the records of each cluster by weight; N: k, the weights.
//!
//! **Matrices.**
//!
//! | matrix | shape | element | push rule |
//! |---|---|---|---|
//! | `centres` | features x k, sparse by hash | f32 | assign |
//! | `norms` | 1 x k: `|c|^2` | f64 | assign |
//! | `sums`, in training | features x k, sparse by hash: S | f64 | add |
//! | `counts`, in training | 1 x k: N | f64 | add |
//! | `owners`, in training | features x 1: the first task that has the feature | i64 | min |
//!
//! **An iteration** of a task: pull S of its features and N; C = S / N; assign the records whose nearest centre may have
//! changed; push the changes of S and N; tick. S and N are sums, so every task sees the same centres, and mini-batches
//! are the same with records that are only added: S / N is then the running mean of algorithm 1.
//!
//! **Cost** of an iteration: at most 2 n d k multiply-adds, fewer as clusters come to rest; 8 d k bytes pulled and as
//! many pushed.

mod exchange;
mod family;
mod job;
mod lloyd;
mod mini_batch;
mod model;
mod params;
mod points;
mod score;
mod seeding;
#[cfg(test)]
mod tests;

pub use family::FAMILY;
pub use model::Model;
pub use params::Distance;
pub use score::ClusterScorer;
