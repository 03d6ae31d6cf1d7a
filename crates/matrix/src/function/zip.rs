//! Built-in push functions of several rows into one: `into[0]` becomes `f(from)`, column by column. `into[0]` may be
//! one of the rows read.

use multiversion::multiversion;

use crate::element::Element;
use crate::function::view::with_block;
use crate::function::{
    Arity, Block, FunctionFault, PushFunction, Shape, check_real, floats_only, no_integers,
};

/// A function of two values, x of `from[0]` and y of `from[1]`. Integers wrap, and cannot be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zip {
    /// `x + y`.
    Add,
    /// `x - y`.
    Sub,
    /// `x y`.
    Mul,
    /// `x / y`, y not 0.
    Div,
    /// `min(x, y)`.
    Min,
    /// `max(x, y)`.
    Max,
}

impl Zip {
    pub const ALL: [Self; 6] = [Zip::Add, Zip::Sub, Zip::Mul, Zip::Div, Zip::Min, Zip::Max];
}

impl PushFunction for Zip {
    type Argument = ();

    fn name(&self) -> &str {
        match self {
            Zip::Add => "add",
            Zip::Sub => "sub",
            Zip::Mul => "mul",
            Zip::Div => "div",
            Zip::Min => "pair_min",
            Zip::Max => "pair_max",
        }
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(2)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn check(&self, _argument: &(), shape: &Shape) -> Result<(), FunctionFault> {
        if *self == Zip::Div { floats_only(shape) } else { Ok(()) }
    }

    fn tries_first(&self) -> bool {
        *self == Zip::Div
    }

    fn overwrites(&self) -> bool {
        true
    }

    fn keeps_finite(&self, _argument: &()) -> bool {
        matches!(self, Zip::Min | Zip::Max)
    }

    fn change(&self, _argument: &(), block: &mut Block<'_>) -> Result<(), FunctionFault> {
        if let Block::I64(block) = block {
            let (x, y, out) = (block.from[0], block.from[1], &mut *block.into[0]);
            match self {
                Zip::Add => zip_values(x, y, out, i64::wrapping_add),
                Zip::Sub => zip_values(x, y, out, i64::wrapping_sub),
                Zip::Min => zip_values(x, y, out, Ord::min),
                Zip::Max => zip_values(x, y, out, Ord::max),
                Zip::Mul => zip_values(x, y, out, i64::wrapping_mul),
                Zip::Div => return Err(no_integers()),
            }
            return Ok(());
        }
        with_block!(block, block => {
            let (x, y, out) = (block.from[0], block.from[1], &mut *block.into[0]);
            match self {
                Zip::Add => zip_values_f64(x, y, out, |x, y| x + y),
                Zip::Sub => zip_values_f64(x, y, out, |x, y| x - y),
                Zip::Mul => zip_values_f64(x, y, out, |x, y| x * y),
                Zip::Div => zip_values_f64(x, y, out, |x, y| x / y),
                Zip::Min => zip_values_f64(x, y, out, |x, y| if y < x { y } else { x }),
                Zip::Max => zip_values_f64(x, y, out, |x, y| if y > x { y } else { x }),
            }
        });
        Ok(())
    }
}

/// `into[0] = a x + y`, in doubles, rounded once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axpy;

impl PushFunction for Axpy {
    type Argument = f64;

    fn name(&self) -> &'static str {
        "axpy"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(2)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn check(&self, a: &f64, shape: &Shape) -> Result<(), FunctionFault> {
        floats_only(shape)?;
        check_real("a", *a, |_| true, "a finite number")
    }

    fn overwrites(&self) -> bool {
        true
    }

    fn change(&self, a: &f64, block: &mut Block<'_>) -> Result<(), FunctionFault> {
        let a = *a;
        with_block!(block, block => {
            zip_values_f64(block.from[0], block.from[1], &mut *block.into[0], |x, y| a * x + y);
        });
        Ok(())
    }
}

/// `into[0] = a_1 x_1 + ... + a_k x_k`, added from the left in doubles, rounded once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combine;

/// Number of columns that are combined at a time. In shorter chunks the CPU would fetch less ahead, because each row
/// lies in other pages of memory.
const CHUNK: usize = 4096;
/// Number of rows that are added at a time, in their order.
const GROUP: usize = 4;

impl PushFunction for Combine {
    type Argument = Vec<f64>;

    fn name(&self) -> &'static str {
        "combine"
    }

    fn reads(&self) -> Arity {
        Arity::AtLeast(1)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn check(&self, factors: &Vec<f64>, shape: &Shape) -> Result<(), FunctionFault> {
        floats_only(shape)?;
        if factors.len() != shape.from {
            let expected = format!("{}, one for each row to read", shape.from);
            return Err(FunctionFault::argument("factors", factors.len().to_string(), expected));
        }
        factors.iter().try_for_each(|a| check_real("factor", *a, |_| true, "a finite number"))
    }

    fn overwrites(&self) -> bool {
        true
    }

    fn change(&self, factors: &Vec<f64>, block: &mut Block<'_>) -> Result<(), FunctionFault> {
        with_block!(block, block => {
            let mut sums = vec![0.0; CHUNK.min(block.len())];
            for (i, out) in block.into[0].chunks_mut(CHUNK).enumerate() {
                let sums = &mut sums[..out.len()];
                sums.fill(0.0);
                let columns = i * CHUNK..i * CHUNK + out.len();
                let (factors, last_factors) = factors.as_chunks::<GROUP>();
                let (rows, last_rows) = block.from.as_chunks::<GROUP>();
                for (factors, rows) in factors.iter().zip(rows) {
                    add_scaled_group(factors, rows.map(|row| &row[columns.clone()]), sums);
                }
                for (a, row) in last_factors.iter().zip(last_rows) {
                    add_scaled(*a, &row[columns.clone()], sums);
                }
                for (out, sum) in out.iter_mut().zip(sums) {
                    *out = Element::from_f64(*sum);
                }
            }
        });
        Ok(())
    }
}

/// `into[0] = x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyRow;

impl PushFunction for CopyRow {
    type Argument = ();

    fn name(&self) -> &'static str {
        "copy"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn overwrites(&self) -> bool {
        true
    }

    fn keeps_finite(&self, _argument: &()) -> bool {
        true
    }

    fn change(&self, _argument: &(), block: &mut Block<'_>) -> Result<(), FunctionFault> {
        with_block!(block, block => block.into[0].copy_from_slice(block.from[0]));
        Ok(())
    }
}

fn zip_values<E: Element>(x: &[E], y: &[E], out: &mut [E], f: impl Fn(E, E) -> E) {
    for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
        *out = f(*x, *y);
    }
}

/// Computes in doubles. For `+ - * /` of singles this gives the same bytes as computing in singles.
#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn zip_values_f64<E: Element, F: Fn(f64, f64) -> f64>(x: &[E], y: &[E], out: &mut [E], f: F) {
    for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
        *out = E::from_f64(f(x.to_f64(), y.to_f64()));
    }
}

#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn add_scaled<E: Element>(a: f64, row: &[E], sums: &mut [f64]) {
    for (sum, x) in sums.iter_mut().zip(row) {
        *sum += a * x.to_f64();
    }
}

/// Adds `a_1 x_1`, then `a_2 x_2`, and so on.
#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn add_scaled_group<E: Element>(factors: &[f64; GROUP], rows: [&[E]; GROUP], sums: &mut [f64]) {
    let rows = rows.map(|row| &row[..sums.len()]);
    for (i, sum) in sums.iter_mut().enumerate() {
        for (a, row) in factors.iter().zip(rows) {
            *sum += a * row[i].to_f64();
        }
    }
}
