//! Functions on one server process compared with the memory of the machine: `dot` and `axpy` of rows of ten million
//! `f32`, against a loop in this process that only reads. Each has one thread. The rounds alternate, so a busy machine
//! slows both.

use anyhow::Result;
use matrix::{Consistency, ElementType, MatrixId, Values, VectorPool};
use serde_json::{Value, json};
use worker::RemoteAgent;

use super::wire::{ChildServer, median, open_job, timed};

const COLUMNS: u64 = 10_000_000;
const ROUNDS: usize = 11;
const PARTITIONS: u32 = 8;
/// Bytes of a row.
const ROW_BYTES: u64 = COLUMNS * 4;

/// Gigabytes per second: of the rows that `dot` reads, of the rows that `axpy` reads and writes, and of a loop that
/// reads.
pub(super) fn run() -> Result<Value> {
    let server = [ChildServer::start("wire-server")?];
    let spec = VectorPool::spec("v", ElementType::F32, 2, COLUMNS, PARTITIONS, Consistency::Asp);
    let layout = open_job(1, &server, vec![spec.clone()], 1)?;
    let mut agent = RemoteAgent::new(layout, 0, &[])?;
    let pool = VectorPool::new(MatrixId(0), &spec)?;
    let (mut x, mut y) = (pool.create(&mut agent)?, pool.create(&mut agent)?);
    let values: Vec<f32> = (0..COLUMNS).map(|i| (i % 1000) as f32 / 1000.0).collect();
    x.put(&mut agent, Values::F32(&values))?;
    y.put(&mut agent, Values::F32(&values))?;
    // As many bytes as two rows.
    let read = vec![1u64; values.len()];
    let (mut reads, mut dots, mut axpys) = (Vec::new(), Vec::new(), Vec::new());
    let (mut dot_ratios, mut axpy_ratios) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let gigabytes = |bytes: u64, seconds: f64| bytes as f64 / seconds / 1e9;
        let reading = timed(|| {
            std::hint::black_box(sum(&read));
            Ok(())
        })?;
        let rate = gigabytes(2 * ROW_BYTES, reading);
        let dot = gigabytes(2 * ROW_BYTES, timed(|| Ok(x.dot(&mut agent, &y).map(drop)?))?);
        let axpy = gigabytes(3 * ROW_BYTES, timed(|| Ok(y.axpy(&mut agent, 1e-3, &x)?))?);
        dot_ratios.push(dot / rate);
        axpy_ratios.push(axpy / rate);
        reads.push(rate);
        dots.push(dot);
        axpys.push(axpy);
    }
    Ok(json!({
        "read_gb_s": median(reads),
        "dot_gb_s": median(dots),
        "axpy_gb_s": median(axpys),
        "dot_of_read": median(dot_ratios),
        "axpy_of_read": median(axpy_ratios),
    }))
}

/// Reads all values.
fn sum(data: &[u64]) -> u64 {
    let (chunks, _) = data.as_chunks::<32>();
    let mut sums = [0u64; 32];
    for chunk in chunks {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum ^= *x;
        }
    }
    sums.iter().fold(0, |all, sum| all ^ sum)
}
