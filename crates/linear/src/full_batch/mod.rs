//! Linear models by full-batch optimizers, which see all records at each step ([`crate::descent`]).
//!
//! Weights and all other vectors are rows of the matrix `vectors`. It has a column for each feature (and class),
//! numbered by the tasks, and then the columns of the intercept. The memory of a task grows with the number of features
//! in its share, whatever the largest key.
//!
//! | module | what it holds |
//! |---|---|
//! | [`features`] | the features of a share and their columns |
//! | [`survey`] | the steps before the first iteration: features, curvature, first point |
//! | [`local_problem`] | loss and gradient of a share at the point |
//! | [`descent`] | an iteration of L-BFGS, OWL-QN and gradient descent |
//! | [`svrg`] | an iteration of SVRG |
//! | [`admm`], [`residuals`] | an iteration of ADMM; its residuals and stopping criterion |

pub(super) mod admm;
pub(super) mod descent;
mod features;
mod local_problem;
mod residuals;
mod survey;
pub(super) mod svrg;

use matrix::{ElementType, MatrixId, MatrixSpec, PushRule};

use super::model::Model;
use crate::descent::Settings;
use crate::descent::minimizer::Minimizer;
use crate::descent::vectors::VectorLayout;
use algo::family::Model as _;

/// The matrix in which tasks assign numbers to features. It follows the matrices of the model in order of creation.
fn numbers_id(model: &Model) -> MatrixId {
    MatrixId(model.matrices(1).len() as u32)
}

fn vector_layout(model: &Model, settings: &Settings) -> VectorLayout {
    let id = MatrixId(model.matrices(1).len() as u32 + 1);
    let width = model.width() as u64;
    let columns = penalized_columns(model) + if model.intercept { width } else { 0 };
    VectorLayout::new(id, columns.max(1), settings.history)
}

/// The number of columns of features; those of the intercept follow them.
fn penalized_columns(model: &Model) -> u64 {
    model.numbered.unwrap_or(0) * model.width() as u64
}

/// A minimizer before its first evaluation.
fn minimizer(model: &Model, settings: &Settings) -> Minimizer {
    Minimizer::new(settings.clone(), vector_layout(model, settings), penalized_columns(model))
}

/// The matrices that follow those of the model.
pub(super) fn matrices(model: &Model, settings: &Settings, partition_count: u32) -> [MatrixSpec; 2] {
    let numbers = MatrixSpec::sparse("numbers", ElementType::I64, 1, PushRule::Min, partition_count);
    [numbers, vector_layout(model, settings).spec(partition_count)]
}
