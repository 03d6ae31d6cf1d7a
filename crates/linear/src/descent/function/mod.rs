//! PS functions of the minimizers: what the partitions do with the vectors of a minimization.
//!
//! | module | what it holds |
//! |---|---|
//! | [`quasi_newton`] | the products of L-BFGS; the rows and the penalty that all functions share |
//! | [`orthant`] | the products of OWL-QN |
//! | [`step`] | direction, step, gradient of the penalty, scales |
//! | [`consensus`] | the consensus of ADMM |

pub mod consensus;
pub mod orthant;
pub mod quasi_newton;
pub mod step;

use matrix::{FunctionFault, FunctionTable};

/// Adds these functions to a table.
pub fn register(table: &mut FunctionTable) -> Result<(), FunctionFault> {
    table.add_pull(quasi_newton::QuasiNewtonProducts)?.add_pull(orthant::OrthantProducts)?;
    table.add_push(step::Direction)?.add_push(step::OrthantStep)?.add_push(step::PenaltyGradient)?;
    table.add_push(step::CurvatureScale)?.add_push(consensus::ConsensusStep)?;
    Ok(())
}
