//! The built-in functions, which every table has.

use crate::function::extreme::{Extreme, FirstDifference, TopK};
use crate::function::fill::{Diagonal, Identity, Random};
use crate::function::map::{Clip, Map, Scalar, Set};
use crate::function::products::InnerProducts;
use crate::function::reduce::{CountNonZero, Dot, Gram, Reduce};
use crate::function::sketch::Quantiles;
use crate::function::vector_op::VectorOp;
use crate::function::zip::{Axpy, Combine, CopyRow, Zip};
use crate::function::{FunctionFault, FunctionTable};

pub(crate) fn register(table: &mut FunctionTable) -> Result<(), FunctionFault> {
    Reduce::ALL.into_iter().try_for_each(|function| table.add_pull(function).map(drop))?;
    Extreme::ALL.into_iter().try_for_each(|function| table.add_pull(function).map(drop))?;
    table.add_pull(Dot)?.add_pull(Gram)?.add_pull(CountNonZero)?.add_pull(FirstDifference)?;
    table.add_pull(InnerProducts)?.add_pull(TopK::Value)?.add_pull(TopK::Magnitude)?;
    table.add_pull(Quantiles)?;
    Map::ALL.into_iter().try_for_each(|function| table.add_push(function).map(drop))?;
    Scalar::ALL.into_iter().try_for_each(|function| table.add_push(function).map(drop))?;
    Zip::ALL.into_iter().try_for_each(|function| table.add_push(function).map(drop))?;
    VectorOp::ALL.into_iter().try_for_each(|function| table.add_push(function).map(drop))?;
    Random::ALL.into_iter().try_for_each(|function| table.add_push(function).map(drop))?;
    table.add_push(Clip)?.add_push(Set)?.add_push(Axpy)?.add_push(Combine)?.add_push(CopyRow)?;
    table.add_push(Identity)?.add_push(Diagonal)?;
    table.add_lists().map(drop)
}
