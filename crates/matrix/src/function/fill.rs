//! Built-in push functions that fill rows, whatever their old values. Random values are a function of the seed, the row
//! and the column alone, so that they are the same for any number of servers.

use std::ops::Range;

use math::hash::named_key;
use math::random::{Purpose, RandomStream, stream};

use crate::element::{Element, OwnedValues};
use crate::function::vector_op::{check_vector, cut, overlap};
use crate::function::view::with_block;
use crate::function::{Arity, Block, FunctionFault, PushFunction, Shape, check_real, floats_only};

/// Writes 1 in column i of the i-th row written, and 0 elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity;

impl PushFunction for Identity {
    type Argument = ();

    fn name(&self) -> &'static str {
        "identity"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(0)
    }

    fn writes(&self) -> Arity {
        Arity::AtLeast(1)
    }

    fn change(&self, _argument: &(), block: &mut Block<'_>) -> Result<(), FunctionFault> {
        with_block!(block, block => {
            let columns = block.range();
            for (i, row) in (0u64..).zip(&mut block.into) {
                row.fill(Element::from_f64(0.0));
                if columns.contains(&i) {
                    row[(i - columns.start) as usize] = Element::from_f64(1.0);
                }
            }
        });
        Ok(())
    }
}

/// Writes `d_i` in column `start + i` of the i-th row written, and 0 elsewhere. The argument is `start` (0 for a whole
/// diagonal) and d, of the element type of the matrix. A d that is shorter than the rows leaves zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diagonal;

impl PushFunction for Diagonal {
    type Argument = (u64, OwnedValues);

    fn name(&self) -> &'static str {
        "diagonal"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(0)
    }

    fn writes(&self) -> Arity {
        Arity::AtLeast(1)
    }

    fn check(&self, (start, diagonal): &(u64, OwnedValues), shape: &Shape) -> Result<(), FunctionFault> {
        check_vector(*start, diagonal, shape)?;
        if start + diagonal.len() as u64 <= shape.into as u64 {
            return Ok(());
        }
        let expected = format!("at most {}, one a row written", shape.into);
        Err(FunctionFault::argument("diagonal", diagonal.len().to_string(), expected))
    }

    fn split(&self, argument: &(u64, OwnedValues), columns: Range<u64>) -> Option<(u64, OwnedValues)> {
        Some(cut(argument.0, &argument.1, columns))
    }

    fn change(
        &self,
        (start, diagonal): &(u64, OwnedValues),
        block: &mut Block<'_>,
    ) -> Result<(), FunctionFault> {
        with_block!(block, block => {
            block.into.iter_mut().for_each(|row| row.fill(Element::from_f64(0.0)));
            let (own, sent) = overlap(block.range(), *start, diagonal.len());
            let first = block.start as usize;
            let rows = block.into.len();
            if let Some(diagonal) = slice_of(&block.into, diagonal) {
                for (column, value) in own.zip(&diagonal[sent]) {
                    if first + column < rows {
                        block.into[first + column][column] = *value;
                    }
                }
            }
        });
        Ok(())
    }
}

/// Returns the values in the type of the rows.
fn slice_of<'a, E: Element>(_rows: &[&mut [E]], values: &'a OwnedValues) -> Option<&'a [E]> {
    E::slice(values.as_values())
}

/// Fills rows with random values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Random {
    /// Uniform in `[low, high)`. The numbers are low and high.
    Uniform,
    /// The numbers are mean and standard deviation.
    Normal,
    /// Glorot, Bengio, AISTATS 2010, eq. 16: uniform in `+-sqrt(6 / (in + out))`. The numbers are in and out.
    Xavier,
    /// He et al., ICCV 2015, eq. 10: normal with deviation `sqrt(2 / in)`. The numbers are in and 0.
    Kaiming,
}

impl Random {
    pub const ALL: [Self; 4] = [Random::Uniform, Random::Normal, Random::Xavier, Random::Kaiming];

    fn draw(self, a: f64, b: f64, random: &mut RandomStream) -> f64 {
        match self {
            Random::Uniform => a + (b - a) * random.uniform(),
            Random::Normal => a + b * random.normal(),
            Random::Xavier => (6.0 / (a + b)).sqrt() * (2.0 * random.uniform() - 1.0),
            Random::Kaiming => (2.0 / a).sqrt() * random.normal(),
        }
    }
}

impl PushFunction for Random {
    /// The seed and two numbers.
    type Argument = (u64, f64, f64);

    fn name(&self) -> &str {
        match self {
            Random::Uniform => "uniform",
            Random::Normal => "normal",
            Random::Xavier => "xavier",
            Random::Kaiming => "kaiming",
        }
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(0)
    }

    fn writes(&self) -> Arity {
        Arity::AtLeast(1)
    }

    fn check(&self, (_, a, b): &(u64, f64, f64), shape: &Shape) -> Result<(), FunctionFault> {
        floats_only(shape)?;
        let (a, b) = (*a, *b);
        match self {
            Random::Uniform => {
                check_real("low", a, |low| low < b, "a finite number below high")?;
                check_real("high", b, |_| (b - a).is_finite(), "a finite number, not too far from low")
            }
            Random::Normal => {
                check_real("mean", a, |_| true, "a finite number")?;
                check_real("deviation", b, |b| b >= 0.0, "a finite number >= 0")
            }
            Random::Xavier => {
                check_real("in", a, |a| a >= 1.0, "a count >= 1")?;
                check_real("out", b, |b| b >= 1.0, "a count >= 1")
            }
            Random::Kaiming => check_real("in", a, |a| a >= 1.0, "a count >= 1"),
        }
    }

    fn change(&self, (seed, a, b): &(u64, f64, f64), block: &mut Block<'_>) -> Result<(), FunctionFault> {
        with_block!(block, block => {
            for (number, row) in block.into_rows.iter().zip(&mut block.into) {
                let key = named_key(self.name().as_bytes(), &number.to_le_bytes());
                for (column, x) in (block.start..).zip(row.iter_mut()) {
                    let mut random = stream(*seed, Purpose::Initialize, key, column);
                    *x = Element::from_f64(self.draw(*a, *b, &mut random));
                }
            }
        });
        Ok(())
    }
}
