//! Built-in push functions with a vector in the argument. They combine it with `into[0]` in the columns from its start
//! on; all other columns stay as they are.

use std::ops::Range;

use crate::element::{Element, OwnedValues};
use crate::function::view::with_block;
use crate::function::{
    Arity, Block, FunctionFault, PushFunction, Shape, TypedBlock, check_real, floats_only,
};

/// Column of the first value, the values (of the element type of the matrix), and a factor that only
/// [`VectorOp::AddScaled`] uses.
pub type VectorArgument = (u64, OwnedValues, f64);

/// The result for x of `into[0]` and v of the argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorOp {
    /// `x + v`.
    Add,
    /// `x - v`.
    Sub,
    /// `min(x, v)`.
    Min,
    /// `max(x, v)`.
    Max,
    /// `x + a v`.
    AddScaled,
    /// `v`.
    Set,
}

impl VectorOp {
    pub const ALL: [Self; 6] =
        [VectorOp::Add, VectorOp::Sub, VectorOp::Min, VectorOp::Max, VectorOp::AddScaled, VectorOp::Set];
}

impl PushFunction for VectorOp {
    type Argument = VectorArgument;

    fn name(&self) -> &str {
        match self {
            VectorOp::Add => "add_vector",
            VectorOp::Sub => "sub_vector",
            VectorOp::Min => "min_vector",
            VectorOp::Max => "max_vector",
            VectorOp::AddScaled => "add_scaled_vector",
            VectorOp::Set => "set_vector",
        }
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(0)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn check(&self, (start, values, factor): &VectorArgument, shape: &Shape) -> Result<(), FunctionFault> {
        if *self == VectorOp::AddScaled {
            floats_only(shape)?;
        }
        check_vector(*start, values, shape)?;
        check_real("factor", *factor, |_| true, "a finite number")
    }

    fn split(&self, argument: &VectorArgument, columns: Range<u64>) -> Option<VectorArgument> {
        let (start, values) = cut(argument.0, &argument.1, columns);
        Some((start, values, argument.2))
    }

    fn change(
        &self,
        (start, values, factor): &VectorArgument,
        block: &mut Block<'_>,
    ) -> Result<(), FunctionFault> {
        let a = *factor;
        if let (Block::I64(block), OwnedValues::I64(values)) = (&mut *block, values) {
            match self {
                VectorOp::Add => zip_overlap(block, *start, values, i64::wrapping_add),
                VectorOp::Sub => zip_overlap(block, *start, values, i64::wrapping_sub),
                VectorOp::Min => zip_overlap(block, *start, values, Ord::min),
                VectorOp::Max => zip_overlap(block, *start, values, Ord::max),
                VectorOp::AddScaled | VectorOp::Set => zip_overlap(block, *start, values, |_, v| v),
            }
            return Ok(());
        }
        with_block!(block, block => match self {
            VectorOp::Add => zip_overlap_f64(block, *start, values, |x, v| x + v),
            VectorOp::Sub => zip_overlap_f64(block, *start, values, |x, v| x - v),
            VectorOp::Min => zip_overlap_f64(block, *start, values, |x, v| if v < x { v } else { x }),
            VectorOp::Max => zip_overlap_f64(block, *start, values, |x, v| if v > x { v } else { x }),
            VectorOp::AddScaled => zip_overlap_f64(block, *start, values, |x, v| x + a * v),
            VectorOp::Set => zip_overlap_f64(block, *start, values, |_, v| v),
        })
    }
}

/// Checks that a vector lies in the columns of the matrix, has its element type, and is finite.
pub(crate) fn check_vector(start: u64, values: &OwnedValues, shape: &Shape) -> Result<(), FunctionFault> {
    if values.element_type() != shape.element {
        let (actual, expected) = (format!("{:?}", values.element_type()), format!("{:?}", shape.element));
        return Err(FunctionFault::argument("element type of the vector", actual, expected));
    }
    let end = start.checked_add(values.len() as u64);
    if end.is_none_or(|end| end > shape.columns) {
        let actual = format!("{} columns from {start} on", values.len());
        let expected = format!("columns below {}", shape.columns);
        return Err(FunctionFault::argument("vector of the call", actual, expected));
    }
    match values.as_values().first_non_finite() {
        None => Ok(()),
        Some((at, _)) => {
            let actual = format!("no finite number at {at}");
            Err(FunctionFault::argument("vector of the call", actual, "finite numbers"))
        }
    }
}

/// Returns the part of a vector that lies in `columns`. The first column of the vector is `start`.
pub(crate) fn cut(start: u64, values: &OwnedValues, columns: Range<u64>) -> (u64, OwnedValues) {
    let end = start + values.len() as u64;
    let from = columns.start.clamp(start, end);
    let to = columns.end.clamp(from, end);
    let own = (from - start) as usize..(to - start) as usize;
    (from, values.as_values().slice(own).to_owned_values())
}

/// Returns the columns that a block shares with a vector of `len` values from `start` on: as indices in the block and
/// in the vector.
pub(crate) fn overlap(columns: Range<u64>, start: u64, len: usize) -> (Range<usize>, Range<usize>) {
    let from = columns.start.max(start);
    let to = columns.end.min(start + len as u64).max(from);
    let within = |first: u64| (from.saturating_sub(first)) as usize..(to.saturating_sub(first)) as usize;
    if from >= to { (0..0, 0..0) } else { (within(columns.start), within(start)) }
}

fn zip_overlap<E: Element>(block: &mut TypedBlock<'_, E>, start: u64, values: &[E], f: impl Fn(E, E) -> E) {
    let (own, sent) = overlap(block.range(), start, values.len());
    for (x, v) in block.into[0][own].iter_mut().zip(&values[sent]) {
        *x = f(*x, *v);
    }
}

fn zip_overlap_f64<E: Element>(
    block: &mut TypedBlock<'_, E>,
    start: u64,
    values: &OwnedValues,
    f: impl Fn(f64, f64) -> f64,
) -> Result<(), FunctionFault> {
    let Some(values) = E::slice(values.as_values()) else {
        return Err(FunctionFault::user("the vector has another element type than the matrix"));
    };
    zip_overlap(block, start, values, |x, v| E::from_f64(f(x.to_f64(), v.to_f64())));
    Ok(())
}
