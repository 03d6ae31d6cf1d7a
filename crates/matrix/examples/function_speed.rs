//! Compares the cost of functions with the cost of reading their memory: dot and axpy of two long rows, and five maps
//! in one visit and in five. `cargo run --release -p matrix --example function_speed [-- COLUMNS]`
//!
//! Prints the gigabytes per second of the rows read and written (axpy: two read, one written) beside those of a loop
//! that only reads.

#![allow(clippy::print_stdout, reason = "an example")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use matrix::function::call::call_pull;
use matrix::function::map::{Clip, Map, Scalar};
use matrix::function::reduce::Gram;
use matrix::function::zip::Axpy;
use matrix::{Agent, Consistency, ElementType, Error, FunctionCall, LocalConfig, LocalStore, VectorPool};

const ROUNDS: usize = 15;
const PARTITIONS: u32 = 8;

/// CPU time of this thread, which does not depend on the load of the machine; wall clock where it is not available.
fn busy_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = told.and_then(|text| text.split(' ').next()?.parse().ok());
    ns.map_or_else(|| START.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}

/// Returns the shortest time of several rounds, in seconds.
fn best(mut run: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = busy_time();
        run()?;
        best = best.min(busy_time().saturating_sub(start).as_secs_f64());
    }
    Ok(best)
}

/// Seconds to read two vectors of `len` floats: the lower bound of a dot product.
fn read_seconds(len: usize) -> Result<f64, Error> {
    let data = vec![1u64; len];
    let mut total = 0;
    let seconds = best(|| {
        let (chunks, _) = data.as_chunks::<32>();
        let mut sums = [0u64; 32];
        for chunk in chunks {
            for (sum, x) in sums.iter_mut().zip(chunk) {
                *sum ^= *x;
            }
        }
        total += std::hint::black_box(sums)[0];
        Ok(())
    })?;
    std::hint::black_box(total);
    Ok(seconds)
}

fn main() -> Result<(), Error> {
    let columns: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10_000_000);
    let spec = VectorPool::spec("v", ElementType::F32, 12, columns, PARTITIONS, Consistency::Asp);
    let mut store = LocalStore::new(LocalConfig { task_count: 1, wait_limit: Duration::from_mins(1) });
    let matrix = store.create(spec.clone())?;
    let mut agent = Arc::new(store).agent(0);
    let pool = VectorPool::new(matrix, &spec)?;
    let x = pool.create(&mut agent)?;
    let mut y = pool.create(&mut agent)?;
    y.set(&mut agent, 0.5)?;
    let row_bytes = columns as f64 * 4.0;
    let read = 2.0 * row_bytes / read_seconds(columns as usize)? / 1e9;
    println!("{:<28} {read:>7.1} GB/s", "reading");
    let report = |name: &str, rows: f64, seconds: f64| {
        let speed = rows * row_bytes / seconds / 1e9;
        println!("{name:<28} {speed:>7.1} GB/s {:>6.2} of reading, {:>7.2} ms", speed / read, seconds * 1e3);
    };
    report("dot", 2.0, best(|| y.dot(&mut agent, &x).map(drop))?);
    let (from, into) = (x.row()?, y.row()?);
    let axpy = FunctionCall::push(&Axpy, &[from, into], &[into], &1.0);
    report("axpy", 3.0, best(|| agent.push_function(matrix, std::slice::from_ref(&axpy)))?);
    let maps = [
        FunctionCall::push(&Scalar::Add, &[into], &[into], &1.5),
        FunctionCall::push(&Map::Abs, &[into], &[into], &()),
        FunctionCall::push(&Scalar::Mul, &[into], &[into], &0.5),
        FunctionCall::push(&Clip, &[into], &[into], &(-2.0, 2.0)),
        FunctionCall::push(&Map::Negate, &[into], &[into], &()),
    ];
    let together = best(|| agent.push_function(matrix, &maps))?;
    let apart =
        best(|| maps.iter().try_for_each(|map| agent.push_function(matrix, std::slice::from_ref(map))))?;
    report("five maps in one visit", 10.0, together);
    report("five maps in five visits", 10.0, apart);
    println!("{:<28} {:>7.2} of five visits", "one visit takes", together / apart);
    let rows: Vec<u32> = (0..11).collect();
    report("gram of 11 rows", 11.0, best(|| call_pull(&mut agent, matrix, &Gram, &rows, &()).map(drop))?);
    Ok(())
}
