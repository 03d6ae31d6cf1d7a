//! The built-in functions, which every table has.

use crate::function::consensus::ConsensusStep;
use crate::function::descent::{CurvatureScale, Direction, OrthantStep, PenaltyGradient};
use crate::function::extreme::{Extreme, FirstDifference, TopK};
use crate::function::fill::{Diagonal, Identity, Random};
use crate::function::map::{Clip, Map, Scalar, Set};
use crate::function::orthant::OrthantProducts;
use crate::function::quasi_newton::QuasiNewtonProducts;
use crate::function::reduce::{CountNonZero, Dot, Gram, Reduce};
use crate::function::sketch::Quantiles;
use crate::function::vector_op::VectorOp;
use crate::function::zip::{Axpy, Combine, CopyRow, Zip};
use crate::function::{FunctionFault, FunctionTable};

pub(crate) fn register(table: &mut FunctionTable) -> Result<(), FunctionFault> {
    Reduce::ALL.into_iter().try_for_each(|function| table.add_pull(function).map(drop))?;
    Extreme::ALL.into_iter().try_for_each(|function| table.add_pull(function).map(drop))?;
    table.add_pull(Dot)?.add_pull(Gram)?.add_pull(CountNonZero)?.add_pull(FirstDifference)?;
    table
        .add_pull(TopK::Value)?
        .add_pull(TopK::Magnitude)?
        .add_pull(Quantiles)?
        .add_pull(QuasiNewtonProducts)?;
    table.add_pull(OrthantProducts)?;
    Map::ALL.into_iter().try_for_each(|function| table.add_push(function).map(drop))?;
    Scalar::ALL.into_iter().try_for_each(|function| table.add_push(function).map(drop))?;
    Zip::ALL.into_iter().try_for_each(|function| table.add_push(function).map(drop))?;
    VectorOp::ALL.into_iter().try_for_each(|function| table.add_push(function).map(drop))?;
    Random::ALL.into_iter().try_for_each(|function| table.add_push(function).map(drop))?;
    table.add_push(Clip)?.add_push(Set)?.add_push(Axpy)?.add_push(Combine)?.add_push(CopyRow)?;
    table.add_push(Identity)?.add_push(Diagonal)?;
    table.add_push(Direction)?.add_push(OrthantStep)?.add_push(PenaltyGradient)?.add_push(CurvatureScale)?;
    table.add_push(ConsensusStep)?;
    Ok(())
}
