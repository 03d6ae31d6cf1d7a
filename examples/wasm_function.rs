//! A PS function as a WebAssembly module: loaded from a file, added to the table, and called by an ordinary agent. The
//! example compares it with the built-in function of the same formula.
//!
//! ```text
//! cargo run -p wasm --example wasm_function [-- FILE]
//! ```
//!
//! Without a file it uses `axpy.wat`. A file is a module with `wat_axpy` or `rust_axpy` (`wasm_axpy.rs`), as text or
//! binary.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use matrix::function::pack;
use matrix::function::zip::Axpy;
use matrix::{
    Agent as _, Consistency, ElementType, FunctionCall, FunctionTable, LocalConfig, LocalStore, Values,
    VectorPool,
};

const COLUMNS: u64 = 100_000;
const ROUNDS: usize = 300;

fn run() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/axpy.wat")),
        PathBuf::from,
    );
    // Converts text to binary; seraphim itself accepts only binary modules.
    let module = wasm::load(&wat::parse_file(&file)?, &wasm::Limits::default())?;
    let mut functions = FunctionTable::builtin();
    module.register(&mut functions)?;
    let name = module.names().first().copied().unwrap_or_default().to_owned();

    let config = LocalConfig { task_count: 1, wait_limit: Duration::from_mins(1) };
    let mut store = LocalStore::with_functions(config, functions);
    let spec = VectorPool::spec("vectors", ElementType::F32, 3, COLUMNS, 1, Consistency::Asp);
    let matrix = store.create(spec.clone())?;
    let mut agent = Arc::new(store).agent(0);
    let pool = VectorPool::new(matrix, &spec)?;
    let mut x = pool.create(&mut agent)?;
    let (ours, built_in) = (pool.create(&mut agent)?, pool.create(&mut agent)?);
    let values: Vec<f32> = (0..COLUMNS).map(|i| (i as f32 * 0.37).sin()).collect();
    x.put(&mut agent, Values::F32(&values))?;

    let (from, ours_row, built_in_row) = (x.row()?, ours.row()?, built_in.row()?);
    let call = FunctionCall {
        name: name.clone(),
        version: 1,
        from: vec![from, ours_row],
        into: vec![ours_row],
        argument: pack(&vec![0.3f64]),
    };
    let twin = FunctionCall::push(&Axpy, &[from, built_in_row], &[built_in_row], &0.3);
    let (mut seconds, mut twin_seconds) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        agent.push_function(matrix, std::slice::from_ref(&call))?;
        seconds.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        agent.push_function(matrix, std::slice::from_ref(&twin))?;
        twin_seconds.push(start.elapsed().as_secs_f64());
    }
    let differ = agent_difference(&mut agent, matrix, ours_row, built_in_row)?;
    if let Some(column) = differ {
        return Err(format!("{name} and the built-in axpy differ in column {column}").into());
    }
    let (ours, twin) = (median(&mut seconds) * 1e6, median(&mut twin_seconds) * 1e6);
    println!("{name}: the same bytes as the built-in axpy after {ROUNDS} calls on {COLUMNS} columns");
    println!("{ours:.0} us a call, the built-in {twin:.0} us: {:.2} times", ours / twin);
    Ok(())
}

/// Returns the first column in which two rows differ.
fn agent_difference(
    agent: &mut matrix::LocalAgent,
    matrix: matrix::MatrixId,
    first: u32,
    second: u32,
) -> Result<Option<u64>, matrix::Error> {
    use matrix::function::call::call_pull;
    call_pull(agent, matrix, &matrix::function::extreme::FirstDifference, &[first, second], &())
}

fn median(seconds: &mut [f64]) -> f64 {
    seconds.sort_unstable_by(f64::total_cmp);
    seconds[seconds.len() / 2]
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
