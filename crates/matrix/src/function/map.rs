//! Built-in push functions of one row and, for some of them, of numbers: each value becomes `f(value)`, computed in
//! doubles and rounded once to the element type.
//!
//! Where it gives the same bytes (the numbers of the argument are exact in the element type, and one operation rounds),
//! the loop computes in the element type, which is twice as fast for singles.
//!
//! The functions read `from[0]` and write `into[0]`, which may be the same row.

use math::elementary;
use multiversion::multiversion;

use crate::element::{Element, Float};
use crate::function::view::with_block;
use crate::function::{
    Arity, Block, FunctionFault, PushFunction, Shape, TypedBlock, check_real, no_integers,
};

/// A function of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    /// `|x|`.
    Abs,
    /// Rounds up to the next whole number.
    Ceil,
    /// Rounds down to the next whole number.
    Floor,
    /// Rounds to the nearest whole number, halves away from 0.
    Round,
    /// `e^x`.
    Exp,
    /// `e^x - 1`.
    Expm1,
    /// `ln x`, x > 0.
    Log,
    /// `ln(1 + x)`, x > -1.
    Log1p,
    /// The square root, x >= 0.
    Sqrt,
    /// -1, 0 or 1.
    Sign,
    /// `-x`.
    Negate,
}

impl Map {
    pub const ALL: [Self; 11] = [
        Map::Abs,
        Map::Ceil,
        Map::Floor,
        Map::Round,
        Map::Exp,
        Map::Expm1,
        Map::Log,
        Map::Log1p,
        Map::Sqrt,
        Map::Sign,
        Map::Negate,
    ];
}

impl PushFunction for Map {
    type Argument = ();

    fn name(&self) -> &str {
        match self {
            Map::Abs => "abs",
            Map::Ceil => "ceil",
            Map::Floor => "floor",
            Map::Round => "round",
            Map::Exp => "exp",
            Map::Expm1 => "expm1",
            Map::Log => "log",
            Map::Log1p => "log1p",
            Map::Sqrt => "sqrt",
            Map::Sign => "sign",
            Map::Negate => "negate",
        }
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn check(&self, _argument: &(), shape: &Shape) -> Result<(), FunctionFault> {
        let whole = matches!(self, Map::Abs | Map::Sign | Map::Negate);
        if whole { Ok(()) } else { super::floats_only(shape) }
    }

    fn tries_first(&self) -> bool {
        matches!(self, Map::Log | Map::Log1p | Map::Sqrt | Map::Exp | Map::Expm1)
    }

    fn overwrites(&self) -> bool {
        true
    }

    fn keeps_finite(&self, _argument: &()) -> bool {
        matches!(self, Map::Abs | Map::Ceil | Map::Floor | Map::Round | Map::Sign | Map::Negate)
    }

    fn change(&self, _argument: &(), block: &mut Block<'_>) -> Result<(), FunctionFault> {
        if let Block::I64(block) = block {
            match self {
                Map::Abs => map_values(block, i64::wrapping_abs),
                Map::Sign => map_values(block, i64::signum),
                Map::Negate => map_values(block, i64::wrapping_neg),
                Map::Ceil
                | Map::Floor
                | Map::Round
                | Map::Exp
                | Map::Expm1
                | Map::Log
                | Map::Log1p
                | Map::Sqrt => return Err(no_integers()),
            }
            return Ok(());
        }
        match block {
            Block::F32(block) => self.change_floats(block),
            Block::F64(block) => self.change_floats(block),
            Block::I64(_) => return Err(no_integers()),
            Block::I32(block) => self.change_counts(block),
            Block::U32(block) => self.change_counts(block),
        }
        Ok(())
    }
}

impl Map {
    /// Changes 32-bit integers, which doubles have exactly.
    fn change_counts<E: Element>(self, block: &mut TypedBlock<'_, E>) {
        match self {
            Map::Abs => map_values_f64(block, f64::abs),
            Map::Sign => map_values_f64(block, |x| if x == 0.0 { 0.0 } else { x.signum() }),
            Map::Negate => map_values_f64(block, |x| -x),
            Map::Ceil
            | Map::Floor
            | Map::Round
            | Map::Exp
            | Map::Expm1
            | Map::Log
            | Map::Log1p
            | Map::Sqrt => unreachable!("the check refuses integers"),
        }
    }

    fn change_floats<E: Float>(self, block: &mut TypedBlock<'_, E>) {
        let sign = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
        match self {
            Map::Abs => map_floats(block, E::magnitude),
            Map::Ceil => map_values_f64(block, f64::ceil),
            Map::Floor => map_values_f64(block, f64::floor),
            Map::Round => map_values_f64(block, f64::round),
            Map::Exp => map_values_f64(block, elementary::exp),
            Map::Expm1 => map_values_f64(block, elementary::exp_m1),
            Map::Log => map_values_f64(block, elementary::ln),
            Map::Log1p => map_values_f64(block, elementary::ln_1p),
            Map::Sqrt => map_values_f64(block, f64::sqrt),
            Map::Sign => map_values_f64(block, sign),
            Map::Negate => map_floats(block, |x| -x),
        }
    }
}

/// A function of one value and one number a.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// `x + a`.
    Add,
    /// `x - a`.
    Sub,
    /// `a x`.
    Mul,
    /// `x / a`, a not 0.
    Div,
    /// `x^a`.
    Power,
    /// `sign(x) max(|x| - a, 0)`, a >= 0: the proximal step of `a |x|`.
    SoftThreshold,
    /// x, or 0 when `|x| < a`, a >= 0.
    Compress,
}

impl Scalar {
    pub const ALL: [Self; 7] = [
        Scalar::Add,
        Scalar::Sub,
        Scalar::Mul,
        Scalar::Div,
        Scalar::Power,
        Scalar::SoftThreshold,
        Scalar::Compress,
    ];
}

impl PushFunction for Scalar {
    type Argument = f64;

    fn name(&self) -> &str {
        match self {
            Scalar::Add => "scalar_add",
            Scalar::Sub => "scalar_sub",
            Scalar::Mul => "scalar_mul",
            Scalar::Div => "scalar_div",
            Scalar::Power => "power",
            Scalar::SoftThreshold => "soft_threshold",
            Scalar::Compress => "compress",
        }
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn check(&self, a: &f64, shape: &Shape) -> Result<(), FunctionFault> {
        super::floats_only(shape)?;
        match self {
            Scalar::Add | Scalar::Sub | Scalar::Mul | Scalar::Power => {
                check_real("a", *a, |_| true, "a finite number")
            }
            Scalar::Div => check_real("a", *a, |a| a != 0.0, "a finite number other than 0"),
            Scalar::SoftThreshold | Scalar::Compress => {
                check_real("a", *a, |a| a >= 0.0, "a finite number >= 0")
            }
        }
    }

    fn tries_first(&self) -> bool {
        *self == Scalar::Power
    }

    fn overwrites(&self) -> bool {
        true
    }

    fn keeps_finite(&self, _a: &f64) -> bool {
        matches!(self, Scalar::SoftThreshold | Scalar::Compress)
    }

    fn change(&self, a: &f64, block: &mut Block<'_>) -> Result<(), FunctionFault> {
        match block {
            Block::F32(block) => self.change_floats(*a, block),
            Block::F64(block) => self.change_floats(*a, block),
            Block::I64(_) | Block::I32(_) | Block::U32(_) => return Err(no_integers()),
        }
        Ok(())
    }
}

impl Scalar {
    fn change_floats<E: Float>(self, a: f64, block: &mut TypedBlock<'_, E>) {
        if let Some(a) = exact::<E>(a) {
            // A double is precise enough that rounding a sum, product or quotient of singles twice gives the same
            // result as rounding it once.
            match self {
                Scalar::Add => return map_floats(block, |x| x + a),
                Scalar::Sub => return map_floats(block, |x| x - a),
                Scalar::Mul => return map_floats(block, |x| a * x),
                Scalar::Div => return map_floats(block, |x| x / a),
                Scalar::Compress => {
                    return map_floats(block, |x| if x.magnitude() < a { E::ZERO } else { x });
                }
                Scalar::Power | Scalar::SoftThreshold => {}
            }
        }
        match self {
            Scalar::Add => map_values_f64(block, |x| x + a),
            Scalar::Sub => map_values_f64(block, |x| x - a),
            Scalar::Mul => map_values_f64(block, |x| a * x),
            Scalar::Div => map_values_f64(block, |x| x / a),
            Scalar::Power => map_values_f64(block, |x| elementary::pow(x, a)),
            Scalar::SoftThreshold => map_values_f64(block, |x| shrink(x, a)),
            Scalar::Compress => map_values_f64(block, |x| if x.abs() < a { 0.0 } else { x }),
        }
    }
}

/// Returns the number in the element type, if it is exact there.
fn exact<E: Float>(a: f64) -> Option<E> {
    let own = E::from_f64(a);
    (own.to_f64() == a).then_some(own)
}

fn shrink(x: f64, a: f64) -> f64 {
    if x > a {
        x - a
    } else if x < -a {
        x + a
    } else {
        0.0
    }
}

/// Limits values to `[low, high]`. The argument is `low` and `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clip;

impl PushFunction for Clip {
    type Argument = (f64, f64);

    fn name(&self) -> &'static str {
        "clip"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn check(&self, (low, high): &(f64, f64), shape: &Shape) -> Result<(), FunctionFault> {
        super::floats_only(shape)?;
        check_real("low", *low, |low| low <= *high, "a finite number, not above high")?;
        check_real("high", *high, |_| true, "a finite number")
    }

    fn overwrites(&self) -> bool {
        true
    }

    /// A bound may be a result, so both must be finite in single precision.
    fn keeps_finite(&self, (low, high): &(f64, f64)) -> bool {
        low.abs().max(high.abs()) <= f64::from(f32::MAX)
    }

    fn change(&self, (low, high): &(f64, f64), block: &mut Block<'_>) -> Result<(), FunctionFault> {
        match block {
            Block::F32(block) => clip(block, *low, *high),
            Block::F64(block) => clip(block, *low, *high),
            Block::I64(_) | Block::I32(_) | Block::U32(_) => return Err(no_integers()),
        }
        Ok(())
    }
}

/// Writes one value to all columns of the rows written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set;

impl PushFunction for Set {
    type Argument = f64;

    fn name(&self) -> &'static str {
        "set"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(0)
    }

    fn writes(&self) -> Arity {
        Arity::AtLeast(1)
    }

    fn check(&self, value: &f64, shape: &Shape) -> Result<(), FunctionFault> {
        if shape.element.is_integer() {
            return check_real(
                "value",
                *value,
                |x| x.fract() == 0.0,
                "a whole number in a matrix of integers",
            );
        }
        check_real("value", *value, |_| true, "a finite number")
    }

    fn change(&self, value: &f64, block: &mut Block<'_>) -> Result<(), FunctionFault> {
        with_block!(block, block => {
            block.into.iter_mut().for_each(|row| row.fill(Element::from_f64(*value)));
        });
        Ok(())
    }
}

fn clip<E: Float>(block: &mut TypedBlock<'_, E>, low: f64, high: f64) {
    if let (Some(low), Some(high)) = (exact::<E>(low), exact::<E>(high)) {
        return map_floats(block, |x| {
            let x = if x < low { low } else { x };
            if x > high { high } else { x }
        });
    }
    map_values_f64(block, |x| x.clamp(low, high));
}

/// Maps each value by itself, in the element type.
fn map_floats<E: Float>(block: &mut TypedBlock<'_, E>, f: impl Fn(E) -> E) {
    map_float_row(block.from[0], block.into[0], f);
}

#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn map_float_row<E: Float, F: Fn(E) -> E>(from: &[E], into: &mut [E], f: F) {
    for (out, x) in into.iter_mut().zip(from) {
        *out = f(*x);
    }
}

/// Maps each value by itself.
fn map_values<E: Element>(block: &mut TypedBlock<'_, E>, f: impl Fn(E) -> E) {
    for (out, x) in block.into[0].iter_mut().zip(block.from[0]) {
        *out = f(*x);
    }
}

/// Maps each value by itself, computing in doubles.
fn map_values_f64<E: Element>(block: &mut TypedBlock<'_, E>, f: impl Fn(f64) -> f64) {
    map_row_f64(block.from[0], block.into[0], f);
}

#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn map_row_f64<E: Element, F: Fn(f64) -> f64>(from: &[E], into: &mut [E], f: F) {
    for (out, x) in into.iter_mut().zip(from) {
        *out = E::from_f64(f(x.to_f64()));
    }
}
