//! The equations of rows of a factorization, and their solutions: by conjugate gradients for eight rows at once, or exactly by
//! Cholesky.
//!
//! For a row with the pairs e, the vectors `v_e` of the other side, weights and targets:
//! `(base + sum_e weight_e v_e v_e' + ridge I) x = right + sum_e target_e v_e`.
//!
//! Every number is computed in 16 lanes whatever the processor has, without fused multiply-add, so a row has the same bits
//! everywhere, and it does not depend on the rows beside it.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the instructions of its caller"
)]

use math::solve::{NotPositive, cholesky, solve_cholesky};
use multiversion::multiversion;

use super::exact::add_products;

/// Lanes of a sum.
pub(super) const LANES: usize = 16;
/// Rows that are multiplied at once.
pub(super) const GROUP: usize = 8;
/// The share of the first squared residual at which a row is solved: what single precision can reach.
const SOLVED: f32 = 1e-13;
/// A direction that is so much flatter than the steepest one has no curvature but rounding.
const FLAT: f32 = 1e-6;

/// The length of a row in memory: full lanes, of which those behind the last number are 0.
pub(super) fn padded(width: usize) -> usize {
    width.next_multiple_of(LANES)
}

/// The equations of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Equations<'a> {
    /// Numbers of a row.
    pub(super) width: usize,
    /// What all rows have in common, padded x padded; `None` is 0.
    pub(super) base: Option<&'a [f32]>,
    /// What is added to the right side of each row, padded; none: 0.
    pub(super) right: Option<&'a [f32]>,
    /// The rows of the other side, padded.
    pub(super) others: &'a [f32],
    /// The pairs of row r are `starts[r]..starts[r + 1]`.
    pub(super) starts: &'a [usize],
    /// For each pair the row of the other side.
    pub(super) positions: &'a [u32],
    /// For each pair; none: all are 1.
    pub(super) weights: Option<&'a [f32]>,
    /// For each pair; none: all are 1.
    pub(super) targets: Option<&'a [f32]>,
    /// For each row.
    pub(super) ridges: &'a [f32],
}

impl Equations<'_> {
    #[inline(always)]
    fn vector(&self, pair: usize, length: usize) -> &[f32] {
        &self.others[self.positions[pair] as usize * length..][..length]
    }

    /// Adds `sum_e weight_e (v_e . p) v_e` to `out`.
    #[inline(always)]
    fn add_pairs(&self, row: usize, p: &[f32], out: &mut [f32]) {
        let (pairs, length) = (self.starts[row]..self.starts[row + 1], p.len());
        let weight = |pair: usize| self.weights.map_or(1.0, |weights| weights[pair]);
        let mut pair = pairs.start;
        while pair + 4 <= pairs.end {
            let v: [&[f32]; 4] = std::array::from_fn(|at| self.vector(pair + at, length));
            let mut factors = dots(v, p);
            (0..4).for_each(|at| factors[at] *= weight(pair + at));
            add_scaled(v, factors, out);
            pair += 4;
        }
        for pair in pair..pairs.end {
            let v = self.vector(pair, length);
            let factor = weight(pair) * dot(v, p);
            out.iter_mut().zip(v).for_each(|(out, v)| *out += factor * v);
        }
    }

    /// The right side of a row.
    #[inline(always)]
    fn right_side(&self, row: usize, out: &mut [f32]) {
        let (pairs, length) = (self.starts[row]..self.starts[row + 1], out.len());
        let target = |pair: usize| self.targets.map_or(1.0, |targets| targets[pair]);
        match self.right {
            Some(right) => out.copy_from_slice(&right[row * length..][..length]),
            None => out.fill(0.0),
        }
        let mut pair = pairs.start;
        while pair + 4 <= pairs.end {
            let v: [&[f32]; 4] = std::array::from_fn(|at| self.vector(pair + at, length));
            add_scaled(v, std::array::from_fn(|at| target(pair + at)), out);
            pair += 4;
        }
        for pair in pair..pairs.end {
            let target = target(pair);
            out.iter_mut().zip(self.vector(pair, length)).for_each(|(out, v)| *out += target * v);
        }
    }

    /// Sets `out` to the left side of the rows from `first` on, at `p`.
    #[inline(always)]
    fn left_sides(&self, first: usize, p: &[f32], out: &mut [f32]) {
        let length = padded(self.width);
        match self.base {
            Some(base) => multiply_group(base, p, out, length),
            None => out.fill(0.0),
        }
        for (at, (p, out)) in p.chunks_exact(length).zip(out.chunks_exact_mut(length)).enumerate() {
            let Some(ridge) = self.ridges.get(first + at) else { return };
            out.iter_mut().zip(p).for_each(|(out, p)| *out += ridge * p);
            self.add_pairs(first + at, p, out);
        }
    }

    /// Takes up to `steps` steps of conjugate gradients for all rows, from the `rows` given (padded). Returns the sum over rows of
    /// `(b + r) . x`, where b is the right side and r the residual at the end: what the objective of these rows lies below the
    /// one at 0.
    pub(super) fn approach(&self, rows: &mut [f32], steps: usize) -> f64 {
        let length = padded(self.width);
        let mut work = Work::new(length);
        let mut gain = 0.0;
        for (group, rows) in rows.chunks_mut(GROUP * length).enumerate() {
            gain += approach_group(self, group * GROUP, rows, steps, &mut work);
        }
        gain
    }

    /// Solves a row exactly.
    ///
    /// # Errors
    /// If the row has no unique solution.
    pub(super) fn solve(&self, row: usize, x: &mut [f32], work: &mut ExactWork) -> Result<(), NotPositive> {
        let (length, width) = (x.len(), self.width);
        let ExactWork { sums, vectors, matrix, right } = work;
        sums.clear();
        sums.resize(length * length, 0.0);
        if let Some(base) = self.base {
            sums.iter_mut().zip(base).for_each(|(sum, base)| *sum = f64::from(*base));
        }
        let pairs: Vec<usize> = (self.starts[row]..self.starts[row + 1]).collect();
        for pairs in pairs.chunks(64) {
            vectors.clear();
            for &pair in pairs {
                let root = self.weights.map_or(1.0, |weights| f64::from(weights[pair]).sqrt());
                vectors.extend(self.vector(pair, length).iter().map(|v| root * f64::from(*v)));
            }
            add_products(vectors, length, sums);
        }
        let mut side = vec![0.0; length];
        self.right_side(row, &mut side);
        right.clear();
        right.extend(side[..width].iter().map(|b| f64::from(*b)));
        matrix.clear();
        for i in 0..width {
            matrix.extend_from_slice(&sums[i * length..][..width]);
            matrix[i * width + i] += f64::from(self.ridges[row]);
        }
        cholesky(matrix, width)?;
        solve_cholesky(matrix, right);
        x.iter_mut().zip(&*right).for_each(|(x, solved)| *x = *solved as f32);
        Ok(())
    }
}

/// Memory of [`Equations::solve`].
#[derive(Clone, Debug, Default)]
pub(super) struct ExactWork {
    sums: Vec<f64>,
    vectors: Vec<f64>,
    matrix: Vec<f64>,
    right: Vec<f64>,
}

/// Memory of a group of rows.
struct Work {
    right: Vec<f32>,
    residual: Vec<f32>,
    direction: Vec<f32>,
    product: Vec<f32>,
    x: Vec<f32>,
    length: usize,
}

impl Work {
    fn new(length: usize) -> Self {
        let rows = || vec![0.0; GROUP * length];
        Self { right: rows(), residual: rows(), direction: rows(), product: rows(), x: rows(), length }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2", "aarch64+neon"))]
fn approach_group(
    equations: &Equations<'_>,
    first: usize,
    rows: &mut [f32],
    steps: usize,
    work: &mut Work,
) -> f64 {
    let Work { right, residual, direction, product, x, length } = work;
    let length = *length;
    let count = rows.len() / length;
    x.fill(0.0);
    x[..rows.len()].copy_from_slice(rows);
    equations.left_sides(first, x, product);
    let (mut squares, mut ends, mut steepest) = ([0.0f32; GROUP], [0.0f32; GROUP], [0.0f32; GROUP]);
    direction.fill(0.0);
    for at in 0..count {
        let range = at * length..(at + 1) * length;
        equations.right_side(first + at, &mut right[range.clone()]);
        for i in range.clone() {
            residual[i] = right[i] - product[i];
            direction[i] = residual[i];
        }
        squares[at] = dot(&residual[range.clone()], &residual[range.clone()]);
        ends[at] = squares[at] * SOLVED;
        if !squares[at].is_finite() {
            // The caller finds it.
            x[range].fill(f32::NAN);
        }
    }
    for _ in 0..steps {
        equations.left_sides(first, direction, product);
        for at in 0..count {
            let range = at * length..(at + 1) * length;
            let (r, p) = (&mut residual[range.clone()], &mut direction[range.clone()]);
            let curvature = dot(p, &product[range.clone()]);
            let slope = curvature / dot(p, p);
            steepest[at] = steepest[at].max(slope);
            if squares[at] <= ends[at] || slope <= FLAT * steepest[at] {
                continue;
            }
            let step = squares[at] / curvature;
            x[range.clone()].iter_mut().zip(&*p).for_each(|(x, p)| *x += step * p);
            r.iter_mut().zip(&product[range]).for_each(|(r, product)| *r -= step * product);
            let square = dot(r, r);
            let factor = square / squares[at];
            squares[at] = square;
            p.iter_mut().zip(&*r).for_each(|(p, r)| *p = *r + factor * *p);
        }
    }
    rows.copy_from_slice(&x[..rows.len()]);
    let mut gain = 0.0;
    for at in 0..count {
        let range = at * length..(at + 1) * length;
        gain += f64::from(dot(&right[range.clone()], &x[range.clone()]))
            + f64::from(dot(&residual[range.clone()], &x[range]));
    }
    gain
}

/// The products of eight rows with 16 columns of a matrix, from `column` on; its lines have `stride` numbers. The loops over lanes
/// have this form because the compiler keeps the sums of others in memory instead of registers.
#[inline(always)]
pub(super) fn products_of_group(
    rows: &[f32],
    width: usize,
    matrix: &[f32],
    (stride, column): (usize, usize),
) -> [[f32; LANES]; GROUP] {
    let mut sums = [[0.0f32; LANES]; GROUP];
    for i in 0..width {
        let line: &[f32; LANES] = matrix[i * stride + column..][..LANES].try_into().expect("16 lanes");
        for (row, sums) in sums.iter_mut().enumerate() {
            let factor = rows[row * width + i];
            for lane in 0..LANES {
                sums[lane] += factor * line[lane];
            }
        }
    }
    sums
}

/// Sets `out` to the products of eight rows `p` with a symmetric matrix.
#[inline(always)]
fn multiply_group(matrix: &[f32], p: &[f32], out: &mut [f32], length: usize) {
    for from in (0..length).step_by(LANES) {
        let sums = products_of_group(p, length, matrix, (length, from));
        for (row, sums) in sums.iter().enumerate() {
            out[row * length + from..][..LANES].copy_from_slice(sums);
        }
    }
}

/// The products of four vectors with p.
#[inline(always)]
fn dots(v: [&[f32]; 4], p: &[f32]) -> [f32; 4] {
    let mut sums = [[0.0f32; LANES]; 4];
    let chunks = v.map(|v| v.as_chunks::<LANES>().0);
    for (at, p) in p.as_chunks::<LANES>().0.iter().enumerate() {
        for (sums, chunks) in sums.iter_mut().zip(&chunks) {
            for lane in 0..LANES {
                sums[lane] += chunks[at][lane] * p[lane];
            }
        }
    }
    sums.map(fold)
}

/// Adds multiples of four vectors. Lanes are added in an array of their own: in place, the compiler takes one after the other.
#[inline(always)]
fn add_scaled(v: [&[f32]; 4], factors: [f32; 4], out: &mut [f32]) {
    let out = out.as_chunks_mut::<LANES>().0;
    let [a, b, c, d] = v.map(|v| &v.as_chunks::<LANES>().0[..out.len()]);
    for at in 0..out.len() {
        let (a, b, c, d) = (&a[at], &b[at], &c[at], &d[at]);
        let mut sums = out[at];
        for lane in 0..LANES {
            let first = factors[0] * a[lane] + factors[1] * b[lane];
            sums[lane] += first + (factors[2] * c[lane] + factors[3] * d[lane]);
        }
        out[at] = sums;
    }
}

/// The product of two padded rows, for callers that are compiled for all processors.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2", "aarch64+neon"))]
pub(super) fn product(p: &[f32], q: &[f32]) -> f32 {
    dot(p, q)
}

/// By how much a user prefers the item of row `q` to that of row `n`.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2", "aarch64+neon"))]
pub(super) fn preference(p: &[f32], q: &[f32], n: &[f32]) -> f32 {
    dot(p, q) - dot(p, n)
}

/// The product of two padded rows.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; LANES];
    for (a, b) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    fold(sums)
}

#[inline(always)]
fn fold(mut sums: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use math::random::{Purpose, stream};

    const WIDTH: usize = 5;

    /// Vectors, starts and positions of pairs, weights, targets, and a base.
    type Problem = (Vec<f32>, Vec<usize>, Vec<u32>, Vec<f32>, Vec<f32>, Vec<f32>);

    fn problem() -> Problem {
        let (length, rows, others) = (padded(WIDTH), 19, 30);
        let mut random = stream(1, Purpose::Test, 0, 0);
        let mut vectors = vec![0.0; others * length];
        for row in vectors.chunks_exact_mut(length) {
            row[..WIDTH].iter_mut().for_each(|x| *x = random.normal() as f32);
        }
        let starts: Vec<usize> = (0..=rows).map(|row| row * (row + 1) / 2).collect();
        let count = starts[rows];
        let positions: Vec<u32> = (0..count).map(|_| random.below(others as u64) as u32).collect();
        let mut numbers = || (0..count).map(|_| random.uniform() as f32 + 0.5).collect::<Vec<f32>>();
        let (weights, targets) = (numbers(), numbers());
        let mut base = vec![0.0; length * length];
        for i in 0..WIDTH {
            base[i * length + i] = 2.0;
            if i > 0 {
                (base[i * length + i - 1], base[(i - 1) * length + i]) = (0.5, 0.5);
            }
        }
        (vectors, starts, positions, weights, targets, base)
    }

    #[test]
    fn conjugate_gradients_and_cholesky_reach_the_same_solution() {
        let (others, starts, positions, weights, targets, base) = problem();
        let ridges = vec![0.3; starts.len() - 1];
        let equations = Equations {
            width: WIDTH,
            base: Some(&base),
            right: None,
            others: &others,
            starts: &starts,
            positions: &positions,
            weights: Some(&weights),
            targets: Some(&targets),
            ridges: &ridges,
        };
        let length = padded(WIDTH);
        let (mut near, mut exact) = (vec![0.0; ridges.len() * length], vec![0.0; ridges.len() * length]);
        let gain = equations.approach(&mut near, 3 * WIDTH);
        let mut work = ExactWork::default();
        for (row, x) in exact.chunks_exact_mut(length).enumerate() {
            equations.solve(row, x, &mut work).unwrap();
        }
        for (a, b) in near.iter().zip(&exact) {
            assert!((a - b).abs() < 1e-4, "{a} {b}");
        }
        // At the solution the objective is that at 0 less b . x.
        let mut expected = 0.0;
        for (row, x) in exact.chunks_exact(length).enumerate() {
            let pairs = starts[row]..starts[row + 1];
            for (pair, target) in pairs.clone().zip(&targets[pairs]) {
                expected += f64::from(target * dot(equations.vector(pair, length), x));
            }
        }
        assert!((gain - expected).abs() < 1e-3 * expected, "{gain} {expected}");
    }

    #[test]
    fn a_row_does_not_depend_on_those_beside_it() {
        let (others, starts, positions, weights, _, base) = problem();
        let length = padded(WIDTH);
        let ridges = vec![0.3; starts.len() - 1];
        let whole = |starts: &[usize]| {
            let equations = Equations {
                width: WIDTH,
                base: Some(&base),
                right: None,
                others: &others,
                starts,
                positions: &positions,
                weights: Some(&weights),
                targets: None,
                ridges: &ridges[..starts.len() - 1],
            };
            let mut rows = vec![0.1; (starts.len() - 1) * length];
            rows.chunks_exact_mut(length).for_each(|row| row[WIDTH..].fill(0.0));
            equations.approach(&mut rows, 3);
            rows
        };
        let all = whole(&starts);
        let part = whole(&starts[11..]);
        assert_eq!(part, all[11 * length..]);
    }

    #[test]
    fn a_row_without_a_unique_solution_is_an_error() {
        let (others, starts, positions, ..) = problem();
        let ridges = vec![0.0; starts.len() - 1];
        let equations = Equations {
            width: WIDTH,
            base: None,
            right: None,
            others: &others,
            starts: &starts,
            positions: &positions,
            weights: None,
            targets: None,
            ridges: &ridges,
        };
        let mut x = vec![0.0; padded(WIDTH)];
        assert!(equations.solve(1, &mut x, &mut ExactWork::default()).is_err(), "two pairs, five numbers");
        assert!(equations.solve(18, &mut x, &mut ExactWork::default()).is_ok());
    }
}
