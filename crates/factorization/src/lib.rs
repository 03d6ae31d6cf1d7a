//! Factorization machines: `score = b + sum_i w_i x_i + sum_{i<j} a_ij x_i x_j`, where the weight `a_ij` of a pair of
//! features is the inner product of their factors, so that pairs that were never seen together have a weight too.
//!
//! **Sources.** Rendle, "Factorization machines", ICDM 2010 (`fm`): `a_ij = <v_i, v_j>`, and equation 5 for the sum over
//! pairs in linear time; Juan, Zhuang, Chin, Lin, "Field-aware factorization machines for CTR prediction", `RecSys` 2016
//! (`ffm`): `a_ij = <v_i,field(j), v_j,field(i)>`.
//!
//! **Notation.** n records of a batch, e entries, d distinct features in the batch, k factors, F fields (1 for `fm`). X:
//! n x d, sparse; w: d; V: d x (F k); slopes s: n, the derivative of the loss in the score.
//!
//! **Matrices.**
//!
//! | matrix | shape | element | push rule |
//! |---|---|---|---|
//! | `weights` | features x 1, sparse by hash | f32 | `linear_optimizer` |
//! | `intercept` | 1 x 1, dense | f32 | `linear_optimizer` without l1 and l2 |
//! | `factors` | features x (F k), sparse by hash; a row reads as 0 until its first push | f32 | `optimizer` |
//! | `moments`, if `standardize` | features x 3: share of records with the feature, mean, mean square | f64 | add |
//! | `sightings`, in training with `admission` > 1 | features x 1: records with the feature | f32 | add |
//!
//! **A step** of a task: pull w, b and V of the features of the batch; score; push the gradients; tick. A feature has
//! a row of factors from the batch in which it has been seen `admission` times. Until then it has a weight only, and
//! the pairs with it count as 0, as they do for a feature that training never saw.
//!
//! **Where we differ.** The gradients of a batch are summed per feature and applied as one. The penalty of the
//! factors belongs to each record, `l2 / 2` times the squared and `l1` times the absolute factors of its features, so it
//! counts as often as the feature occurs in the batch. The result then depends little on the batch size (frappe, k=8, ten passes: AUC .950 to
//! .951 with batches of 64 to 256).
//!
//! **Cost** of a step: 4 e k multiply-adds for `fm`, 4 k for each pair of entries of a record for `ffm`; 4 d (1 + F k)
//! bytes pulled and as many pushed.

mod auto;
mod family;
mod interaction;
mod job;
mod model;
mod params;
mod score;
#[cfg(test)]
mod tests;
mod train;

pub use family::FAMILY;
pub use model::Model;
