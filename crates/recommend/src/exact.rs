//! Sums over the rows of all tasks that have the same bits however the rows are divided: sums of integers.

use matrix::Agent;
use multiversion::multiversion;

use algo::error::Error;

/// Adds up integers over all tasks. The sums must be below 2^62.
pub(super) fn add_up(agent: &mut dyn Agent, sums: &mut [i64]) -> Result<(), Error> {
    // A double has 53 bits, so each half is exact for up to 2^21 tasks.
    let mut halves: Vec<f64> =
        sums.iter().flat_map(|&sum| [(sum >> 32) as f64, (sum & 0xffff_ffff) as f64]).collect();
    agent.all_reduce(&mut halves)?;
    for (sum, halves) in sums.iter_mut().zip(halves.chunks_exact(2)) {
        *sum = ((halves[0] as i64) << 32) + halves[1] as i64;
    }
    Ok(())
}

/// The values of all tasks, in their order.
pub(super) fn of_all_tasks(agent: &mut dyn Agent, value: f64) -> Result<Vec<f64>, Error> {
    let mut values = vec![0.0; agent.task_count() as usize];
    values[agent.task() as usize] = value;
    agent.all_reduce(&mut values)?;
    Ok(values)
}

/// The largest value of all tasks.
pub(super) fn largest(agent: &mut dyn Agent, value: f64) -> Result<f64, Error> {
    Ok(of_all_tasks(agent, value)?.into_iter().fold(f64::NEG_INFINITY, f64::max))
}

/// Bits of a number of a row in the products of a Gramian. Single precision has 24; the error is that of rounding each number
/// to a millionth of the largest one.
const BITS: i32 = 20;
/// Rows whose products are added up in doubles: with [`BITS`], their sums are below 2^53.
const EXACT_ROWS: usize = 1 << 13;
/// Rows that are converted at once.
const PANEL_ROWS: usize = 128;

/// The Gramian `X'X` (width x width, row by row) of the rows of all tasks, of which there are `total`. The numbers are rounded
/// to multiples of a power of two, so that the sums are exact.
pub(super) fn gramian(
    agent: &mut dyn Agent,
    rows: &[f32],
    width: usize,
    total: u64,
) -> Result<Vec<f64>, Error> {
    let own = rows.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
    let largest = largest(agent, f64::from(own))?;
    if largest == 0.0 {
        return Ok(vec![0.0; width * width]);
    }
    // 2^62 is above the sum of `total` products of numbers with so many bits.
    let bits = BITS.min((62 - (64 - total.leading_zeros() as i32)) / 2);
    let exponent = (largest.to_bits() >> 52) as i32 - 1022;
    let scale = f64::from_bits(((1023 + bits - exponent) as u64) << 52);
    let (mut sums, mut partial) = (vec![0i64; width * width], vec![0.0; width * width]);
    let mut panel = vec![0.0; PANEL_ROWS * width];
    for block in rows.chunks(EXACT_ROWS * width) {
        for rows in block.chunks(PANEL_ROWS * width) {
            let panel = &mut panel[..rows.len()];
            panel.iter_mut().zip(rows).for_each(|(to, from)| *to = (f64::from(*from) * scale).round());
            add_products(panel, width, &mut partial);
        }
        sums.iter_mut().zip(&mut partial).for_each(|(sum, part)| *sum += std::mem::take(part) as i64);
    }
    let mut lower: Vec<i64> = (0..width).flat_map(|i| sums[i * width..=i * width + i].to_vec()).collect();
    add_up(agent, &mut lower)?;
    let mut out = vec![0.0; width * width];
    let mut next = lower.iter();
    for i in 0..width {
        for j in 0..=i {
            let sum = *next.next().expect("a number for each pair") as f64 / scale / scale;
            (out[i * width + j], out[j * width + i]) = (sum, sum);
        }
    }
    Ok(out)
}

/// Adds the products `X'X` of rows to `sums`, in the blocks that have a part of the lower triangle. The width is a multiple of 8.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2", "aarch64+neon"))]
pub(super) fn add_products(rows: &[f64], width: usize, sums: &mut [f64]) {
    for i in (0..width).step_by(8) {
        for j in (0..=i).step_by(8) {
            let mut block = [[0.0f64; 8]; 8];
            for row in rows.chunks_exact(width) {
                // Copies: behind references, the compiler gathers the lanes one by one.
                let a: [f64; 8] = row[i..i + 8].try_into().expect("8 numbers");
                let b: [f64; 8] = row[j..j + 8].try_into().expect("8 numbers");
                for (line, factor) in block.iter_mut().zip(a) {
                    for lane in 0..8 {
                        line[lane] += factor * b[lane];
                    }
                }
            }
            for (x, line) in block.iter().enumerate() {
                let sums: &mut [f64] = &mut sums[(i + x) * width + j..][..8];
                sums.iter_mut().zip(line).for_each(|(sum, x)| *sum += x);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use matrix::{LocalConfig, LocalStore};

    use super::*;
    use math::random::{Purpose, stream};

    fn shared(tasks: &[&[f32]], width: usize) -> Vec<Vec<f64>> {
        let total = tasks.iter().map(|rows| rows.len() / width).sum::<usize>() as u64;
        let config =
            LocalConfig { task_count: tasks.len() as u32, wait_limit: algo::test_harness::WAIT_LIMIT };
        let store = std::sync::Arc::new(LocalStore::new(config));
        std::thread::scope(|scope| {
            let runs: Vec<_> = (0..)
                .zip(tasks)
                .map(|(task, rows)| {
                    let mut agent = store.agent(task);
                    scope.spawn(move || gramian(&mut agent, rows, width, total).unwrap())
                })
                .collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        })
    }

    #[test]
    fn a_gramian_has_the_same_bits_however_the_rows_are_divided() {
        let width = 16;
        let mut random = stream(1, Purpose::Test, 0, 0);
        let rows: Vec<f32> = (0..20_000 * width).map(|_| random.normal() as f32).collect();
        let whole = shared(&[&rows], width);
        let (one, rest) = rows.split_at(3 * width);
        let (two, three) = rest.split_at(9_000 * width);
        for other in shared(&[three, one, two], width) {
            assert_eq!(other, whole[0]);
        }
        for i in 0..width {
            for j in 0..width {
                let exact: f64 = rows.chunks_exact(width).map(|x| f64::from(x[i]) * f64::from(x[j])).sum();
                // Each number has an error of at most a millionth of the largest, 4 to 5; 20,000 products.
                assert!((whole[0][i * width + j] - exact).abs() < 0.05, "{i} {j}");
            }
        }
    }

    #[test]
    fn negative_sums_are_exact() {
        let store = std::sync::Arc::new(LocalStore::new(LocalConfig {
            task_count: 1,
            wait_limit: algo::test_harness::WAIT_LIMIT,
        }));
        let mut sums = [-1, i64::MIN / 4, 0, (1 << 61) + 12_345, -(1 << 32)];
        let expected = sums;
        add_up(&mut store.agent(0), &mut sums).unwrap();
        assert_eq!(sums, expected);
    }
}
