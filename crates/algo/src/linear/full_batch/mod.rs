//! Linear models by optimizers that see all records at each step ([`crate::descent`]).
//!
//! Weights and all other vectors are rows of the matrix `vectors`: a column for each feature (and class), numbered by the
//! tasks, then the intercept's. What a task holds is as long as the features of its share are many, whatever the largest key.
//!
//! | module | what it holds |
//! |---|---|
//! | [`features`] | the features of a share and their columns |
//! | [`survey`] | what must be known before the first step: features, curvature, first weights |
//! | [`local_problem`] | loss and gradient of a share at the point |
//! | [`mod@train`] | the loop of a task |
//! | [`svrg`] | the loop of SVRG |
//! | [`admm`], [`residuals`] | the loop of ADMM; when its tasks agree |

pub(super) mod admm;
mod features;
mod local_problem;
mod residuals;
mod survey;
pub(super) mod svrg;
mod train;

use matrix::{
    Axis, Consistency, ElementType, Initializer, MatrixId, MatrixSpec, Partitioner, PushRule, Storage,
};

use super::model::Model;
use crate::descent::Settings;
use crate::descent::vectors::VectorLayout;

pub(super) use train::train;

/// The matrix in which tasks agree on the numbers of features, by order of creation behind those of the model.
fn numbers_id(model: &Model) -> MatrixId {
    MatrixId(model.matrix_count())
}

/// The matrix of vectors.
fn vector_layout(model: &Model, settings: &Settings) -> VectorLayout {
    let id = MatrixId(model.matrix_count() + 1);
    let width = model.width() as u64;
    let columns = penalized_columns(model) + if model.intercept { width } else { 0 };
    VectorLayout::new(id, columns.max(1), settings.history)
}

/// Columns of features; those of the intercept come behind them.
fn penalized_columns(model: &Model) -> u64 {
    model.numbered.unwrap_or(0) * model.width() as u64
}

/// The matrices behind those of the model.
pub(super) fn matrices(model: &Model, settings: &Settings, partition_count: u32) -> [MatrixSpec; 2] {
    let numbers = MatrixSpec {
        name: "numbers".to_owned(),
        element: ElementType::I64,
        rows: 1 << 63,
        columns: 1,
        axis: Axis::Row,
        storage: Storage::Sparse,
        partitioner: Partitioner::Hash { partition_count },
        initializer: Initializer::Zero,
        rule: PushRule::Min,
        consistency: Consistency::Bsp,
        seed: 0,
    };
    [numbers, vector_layout(model, settings).spec(partition_count)]
}
