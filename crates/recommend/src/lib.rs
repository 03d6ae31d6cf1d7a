//! Recommenders: what users will like, learned from what they and others have chosen or rated.
//!
//! **Sources.** Ratings (`als`): Koren, Bell, Volinsky, "Matrix factorization techniques for recommender systems", Computer 42,
//! 2009, with the penalty of Zhou et al., AAIM 2008. Choices (`ials`): Hu, Koren, Volinsky, "Collaborative filtering for implicit
//! feedback datasets", ICDM 2008, in the form of Rendle et al., "Revisiting the performance of iALS on item recommendation
//! benchmarks", `RecSys` 2021; conjugate gradients with warm start: Takács, Pilászy, Tikk, `RecSys` 2011.
//!
//! Neighbors (`itemknn`): Sarwar et al., "Item-based collaborative filtering recommendation algorithms", WWW 2001; `ease`: Steck,
//! "Embarrassingly shallow autoencoders for sparse data", WWW 2019.
//!
//! **Notation.** u a user, i an item, k factors; p and q their rows, b their biases. A rating is near
//! `mean + b_u + b_i + p_u . q_i`, a choice is scored with `p_u . q_i`.
//!
//! **Matrices.**
//!
//! | matrix | shape | element | push rule |
//! |---|---|---|---|
//! | `users`, `items` | a row for each user, item: k factors, then the bias if there are biases | f32 | assign |
//! | `counts` | items x 1: how many users have the item | i64 | assign |
//! | `scale` | 1 x 3, of ratings: mean, lowest, highest | f64 | assign |
//! | `seen` | lists: for each user its items, with their values | f32 | assign |
//! | `neighbors`, of neighbors | lists: for each item its neighbors, with their weights | f32 | assign |
//! | `pairs_of_users`, `validation_pairs`, `pairs_of_items`, in training | lists: for each user its items, for each item its users | f32 | as `duplicates` says |
//! | `implicit_users`, `implicit_items`, in training with `implicit_weight` | as `users` and `items` | f32 | assign |
//! | `sizes`, in training of neighbors | items x 1: what all users have of an item | f64 | assign |
//!
//! **Cost** of an iteration of ALS with conjugate gradients: `steps (pairs k + rows k^2)` multiply-adds for each side; a task
//! pulls each row of the other side that its pairs name once, and pushes its own rows.

mod als;
mod dealing;
mod ease;
mod exact;
mod family;
mod grid;
mod implicit;
mod interactions;
mod job;
mod model;
mod neighbors;
mod objective;
mod params;
pub mod ranking;
mod score;
mod side;
mod solve;
#[cfg(test)]
mod tests;
pub mod top;
mod validation;

pub use family::{FAMILY, ID_COLUMNS};
pub use interactions::{Duplicates, pairs_of as interactions_of};
pub use model::{FactorModel, NeighborModel};
pub use objective::{Objective, ObjectiveSettings};
