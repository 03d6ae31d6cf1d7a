//! Your own PS functions: two small traits, two lines in the table, then calls by an ordinary agent.
//!
//! ```text
//! cargo run -p matrix --example own_function
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use matrix::function::call::call_pull;
use matrix::function::sum::RangeSum;
use matrix::function::{Arity, Block, Columns, Shape};
use matrix::{
    Agent as _, Consistency, ElementType, FunctionCall, FunctionFault, FunctionTable, LocalConfig,
    LocalStore, PullFunction, PushFunction, Values, VectorPool,
};

/// The Huber loss of a row of residuals. The argument is the residual at which the loss turns from quadratic to linear.
struct Huber;

impl PullFunction for Huber {
    type Argument = f64;
    type Partial = RangeSum;
    type Answer = f64;

    fn name(&self) -> &'static str {
        "huber"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn check(&self, delta: &f64, _shape: &Shape) -> Result<(), FunctionFault> {
        if *delta > 0.0 {
            return Ok(());
        }
        Err(FunctionFault::argument("delta", delta.to_string(), "a number > 0"))
    }

    /// Runs at the partition. The terms are added so that the sum does not depend on the number of servers.
    fn read(&self, delta: &f64, columns: &Columns<'_>) -> Result<RangeSum, FunctionFault> {
        let residuals = columns.typed::<f32>(0)?;
        Ok(RangeSum::of(columns.range().start, columns.len(), |range, terms| {
            for (term, r) in terms.iter_mut().zip(&residuals[range]) {
                let r = f64::from(*r).abs();
                *term = if r <= *delta { 0.5 * r * r } else { delta * (r - 0.5 * delta) };
            }
        }))
    }

    /// Runs at the agent.
    fn merge(&self, _delta: &f64, _shape: &Shape, parts: Vec<RangeSum>) -> Result<f64, FunctionFault> {
        RangeSum::total(&parts)
    }
}

/// Rounds a row to integer multiples of the argument.
struct Quantize;

impl PushFunction for Quantize {
    type Argument = f64;

    fn name(&self) -> &'static str {
        "quantize"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn change(&self, unit: &f64, block: &mut Block<'_>) -> Result<(), FunctionFault> {
        block.each_column(|_, from, into| into[0] = (from[0] / unit).round() * unit);
        Ok(())
    }
}

/// The same loss on a plain vector, to compare.
fn plain_huber(residuals: &[f32], delta: f64) -> f64 {
    let term = |r: f64| if r <= delta { 0.5 * r * r } else { delta * (r - 0.5 * delta) };
    residuals.iter().map(|r| term(f64::from(*r).abs())).sum()
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut functions = FunctionTable::builtin();
    functions.add_pull(Huber)?.add_push(Quantize)?;
    let config = LocalConfig { task_count: 1, wait_limit: Duration::from_mins(1) };
    let mut store = LocalStore::with_functions(config, functions);
    let spec = VectorPool::spec("residuals", ElementType::F32, 2, 10_000, 8, Consistency::Asp);
    let matrix = store.create(spec.clone())?;
    let mut agent = Arc::new(store).agent(0);
    let mut residuals = VectorPool::new(matrix, &spec)?.create(&mut agent)?;
    let values: Vec<f32> = (0..10_000).map(|i| (i % 200) as f32 / 50.0 - 2.0).collect();
    residuals.put(&mut agent, Values::F32(&values))?;

    let row = residuals.row()?;
    let before = call_pull(&mut agent, matrix, &Huber, &[row], &1.0)?;
    agent.push_function(matrix, &[FunctionCall::push(&Quantize, &[row], &[row], &0.5)])?;
    let after = call_pull(&mut agent, matrix, &Huber, &[row], &1.0)?;
    let plain = plain_huber(&values, 1.0);
    if (before - plain).abs() > 1e-9 * plain {
        return Err(format!("{before} at the partitions, {plain} on a plain vector").into());
    }
    println!("Huber loss {before:.3}, of rounded residuals {after:.3}");

    let refused = call_pull(&mut agent, matrix, &Huber, &[row], &-1.0);
    println!("{}", refused.err().map_or_else(String::new, |error| error.to_string()));
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
