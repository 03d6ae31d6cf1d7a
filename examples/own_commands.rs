//! The ordinary commands with your own PS functions, which the last five lines add. The workers and servers that `train
//! --servers 2` or `apply --servers 2` starts run this program too, so they have the functions.
//!
//! ```text
//! cargo run --example own_commands -- functions
//! cargo run --example own_commands -- train lr --data examples/breast_cancer/train.csv --label benign --model out/
//! cargo run --example own_commands -- apply out/ --function log_sum --servers 2
//! cargo run --example own_commands -- apply out/ --function squash --argument 0.5 --output squashed/
//! ```

use std::process::ExitCode;

use engine::Tables;
use matrix::function::sum::RangeSum;
use matrix::function::{Arity, Block, Columns, Shape};
use matrix::{FunctionFault, PullFunction, PushFunction};

/// The sum of ln(1 + |x|) over a row.
struct LogSum;

impl PullFunction for LogSum {
    type Argument = ();
    type Partial = RangeSum;
    type Answer = f64;

    fn name(&self) -> &'static str {
        "log_sum"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn read(&self, (): &(), columns: &Columns<'_>) -> Result<RangeSum, FunctionFault> {
        let row = columns.typed::<f32>(0)?;
        Ok(RangeSum::of(columns.range().start, columns.len(), |range, terms| {
            for (term, x) in terms.iter_mut().zip(&row[range]) {
                *term = f64::from(*x).abs().ln_1p();
            }
        }))
    }

    fn merge(&self, (): &(), _shape: &Shape, parts: Vec<RangeSum>) -> Result<f64, FunctionFault> {
        RangeSum::total(&parts)
    }
}

/// Compresses large values of a row: x becomes a tanh(x / a), where a is the argument.
struct Squash;

impl PushFunction for Squash {
    type Argument = f64;

    fn name(&self) -> &'static str {
        "squash"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn check(&self, a: &f64, _shape: &Shape) -> Result<(), FunctionFault> {
        if *a > 0.0 { Ok(()) } else { Err(FunctionFault::argument("a", a.to_string(), "a number > 0")) }
    }

    fn change(&self, a: &f64, block: &mut Block<'_>) -> Result<(), FunctionFault> {
        block.each_column(|_, from, into| into[0] = a * (from[0] / a).tanh());
        Ok(())
    }
}

fn main() -> ExitCode {
    let mut tables = Tables::default();
    tables.functions.add_pull(LogSum).and_then(|table| table.add_push(Squash)).expect("the names are free");
    seraphim::cli::run_with(&tables)
}
