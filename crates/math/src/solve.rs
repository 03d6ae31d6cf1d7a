//! Systems of linear equations with a symmetric positive definite matrix, as each row of a factorization has one, and inverses.

use multiversion::multiversion;

/// A matrix that has no Cholesky factor: the pivot of this column is not above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NotPositive {
    pub column: usize,
    pub pivot: f64,
}

/// Replaces the lower triangle of `matrix` (n x n, row by row) by its Cholesky factor L. The upper triangle is not read.
///
/// # Panics
/// If the length of `matrix` is not n^2.
pub fn cholesky(matrix: &mut [f64], n: usize) -> Result<(), NotPositive> {
    assert_eq!(matrix.len(), n * n, "the shape of a matrix");
    for i in 0..n {
        let (above, rest) = matrix.split_at_mut(i * n);
        let row = &mut rest[..n];
        for j in 0..i {
            let upper = &above[j * n..=j * n + j];
            row[j] = (row[j] - dot(&row[..j], &upper[..j])) / upper[j];
        }
        let pivot = row[i] - dot(&row[..i], &row[..i]);
        if pivot.is_nan() || pivot <= 0.0 {
            return Err(NotPositive { column: i, pivot });
        }
        row[i] = pivot.sqrt();
    }
    Ok(())
}

/// Solves `L L' x = b` for the factor of [`cholesky`]; `x` holds b before.
///
/// # Panics
/// If the shapes do not fit.
pub fn solve_cholesky(factor: &[f64], x: &mut [f64]) {
    let n = x.len();
    assert_eq!(factor.len(), n * n, "the shape of a factor");
    for i in 0..n {
        x[i] = (x[i] - dot(&factor[i * n..i * n + i], &x[..i])) / factor[i * n + i];
    }
    for i in (0..n).rev() {
        x[i] /= factor[i * n + i];
        let value = x[i];
        for (x, l) in x[..i].iter_mut().zip(&factor[i * n..i * n + i]) {
            *x -= l * value;
        }
    }
}

/// Takes up to `steps` steps of conjugate gradients (Hestenes and Stiefel, 1952) towards the solutions of `A_r x_r = b_r`
/// for many right sides at once, from the `x` given; n numbers each. `multiply(p, out)` sets `out` to the products `A_r
/// p_r`, so that what all matrices have in common is one product of matrices. A side is left alone when its residual is
/// 1e-20 of the first one, in squares.
///
/// # Panics
/// If the shapes do not fit.
pub fn conjugate_gradients(
    n: usize,
    steps: usize,
    b: &[f64],
    x: &mut [f64],
    mut multiply: impl FnMut(&[f64], &mut [f64]),
) {
    /// The share of the first squared residual at which a side is solved.
    const SOLVED: f64 = 1e-20;
    assert!(b.len() == x.len() && b.len().is_multiple_of(n), "the shape of the right sides");
    let mut products = vec![0.0; b.len()];
    multiply(x, &mut products);
    let mut residual: Vec<f64> = b.iter().zip(&products).map(|(b, product)| b - product).collect();
    let mut direction = residual.clone();
    let mut squares: Vec<f64> = residual.chunks_exact(n).map(|r| dot(r, r)).collect();
    let ends: Vec<f64> = squares.iter().map(|square| square * SOLVED).collect();
    for _ in 0..steps {
        multiply(&direction, &mut products);
        for (side, end) in ends.iter().enumerate() {
            let range = side * n..(side + 1) * n;
            let (r, p) = (&mut residual[range.clone()], &mut direction[range.clone()]);
            let curvature = dot(p, &products[range.clone()]);
            if squares[side] <= *end || curvature <= 0.0 {
                continue;
            }
            let step = squares[side] / curvature;
            x[range.clone()].iter_mut().zip(&*p).for_each(|(x, p)| *x += step * p);
            r.iter_mut().zip(&products[range]).for_each(|(r, product)| *r -= step * product);
            let square = dot(r, r);
            let factor = square / std::mem::replace(&mut squares[side], square);
            p.iter_mut().zip(&*r).for_each(|(p, r)| *p = r + factor * *p);
        }
    }
}

/// The sum of products, in eight lanes.
#[inline]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (rows, rest) = a.as_chunks::<8>();
    let (columns, more) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in rows.iter().zip(columns) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    for (lane, (a, b)) in rest.iter().zip(more).enumerate() {
        sums[lane] += a * b;
    }
    ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))
}

/// Columns that [`invert`] takes out together.
const PANEL: usize = 64;
/// Rows and columns of a product in registers.
const TILE: (usize, usize) = (4, 8);

/// Replaces a symmetric positive definite matrix (n x n, row by row) by its inverse, by Gauss-Jordan elimination of blocks of
/// columns without pivots. Only the lower triangle is read; both are written. It costs n^3 multiply-adds, and the bits do not
/// depend on the number of threads.
///
/// # Errors
/// If the matrix is not positive definite.
///
/// # Panics
/// If the length of `matrix` is not n^2.
pub fn invert(matrix: &mut [f64], n: usize, threads: usize) -> Result<(), NotPositive> {
    assert_eq!(matrix.len(), n * n, "the shape of a matrix");
    for first in (0..n).step_by(PANEL) {
        let count = PANEL.min(n - first);
        // The columns of the block, of all rows, from the lower triangle.
        let at = |i: usize, j: usize| if i >= j { matrix[i * n + j] } else { matrix[j * n + i] };
        let columns: Vec<f64> =
            (0..n).flat_map(|i| (0..count).map(move |t| (i, first + t))).map(|(i, j)| at(i, j)).collect();
        let own = inverse_of_block(&columns[first * count..(first + count) * count], count)
            .map_err(|fault| NotPositive { column: first + fault.column, ..fault })?;
        let products: Vec<f64> = columns.chunks_exact(count).flat_map(|row| times(row, &own)).collect();
        let tiles = tiles_of(&columns, count);
        let bands: Vec<(usize, &mut [f64])> = matrix.chunks_mut(PANEL * n).enumerate().collect();
        // Later bands have more columns, so threads take turns.
        let mut shares: Vec<Vec<(usize, &mut [f64])>> = (0..threads.max(1)).map(|_| Vec::new()).collect();
        let share_count = shares.len();
        for band in bands {
            shares[band.0 % share_count].push(band);
        }
        let work = |share: Vec<(usize, &mut [f64])>| {
            for (band, rows) in share {
                let (start, end) = (band * PANEL, (band * PANEL + PANEL).min(n));
                subtract_products(&products[start * count..end * count], &tiles, (count, end), rows);
                for (i, row) in (start..end).zip(rows.chunks_exact_mut(n)) {
                    let is_own = (first..first + count).contains(&i);
                    if is_own {
                        row[..first].copy_from_slice(&turned(&products, (i - first, count), first));
                        let own = own[(i - first) * count..].iter().map(|x| -x);
                        row[first..first + count].iter_mut().zip(own).for_each(|(to, x)| *to = x);
                    } else if i > first {
                        row[first..first + count].copy_from_slice(&products[i * count..][..count]);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let own = shares.pop().expect("at least one thread");
            for share in shares {
                scope.spawn(|| work(share));
            }
            work(own);
        });
    }
    for i in 0..n {
        for j in 0..=i {
            let value = -matrix[i * n + j];
            (matrix[i * n + j], matrix[j * n + i]) = (value, value);
        }
    }
    Ok(())
}

/// The number at a column of the block, of the first rows.
fn turned(products: &[f64], (column, count): (usize, usize), rows: usize) -> Vec<f64> {
    products.chunks_exact(count).take(rows).map(|row| row[column]).collect()
}

/// The product of a row with a square matrix.
fn times(row: &[f64], matrix: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; row.len()];
    for (x, line) in row.iter().zip(matrix.chunks_exact(row.len())) {
        out.iter_mut().zip(line).for_each(|(out, y)| *out += x * y);
    }
    out
}

/// The inverse of a small matrix by its Cholesky factor.
fn inverse_of_block(block: &[f64], n: usize) -> Result<Vec<f64>, NotPositive> {
    let mut factor = block.to_vec();
    cholesky(&mut factor, n)?;
    let mut inverse = vec![0.0; n * n];
    for (at, column) in inverse.chunks_exact_mut(n).enumerate() {
        column[at] = 1.0;
        solve_cholesky(&factor, column);
    }
    // The two triangles differ by rounding; one of them counts.
    for i in 0..n {
        for j in 0..i {
            inverse[j * n + i] = inverse[i * n + j];
        }
    }
    Ok(inverse)
}

/// Rows in tiles of eight, each with its first numbers, then its second, and so on; the last one is filled with zeros.
fn tiles_of(rows: &[f64], width: usize) -> Vec<f64> {
    let count = (rows.len() / width).div_ceil(TILE.1);
    let mut tiles = vec![0.0; count * TILE.1 * width];
    for (i, row) in rows.chunks_exact(width).enumerate() {
        let tile = &mut tiles[i / TILE.1 * TILE.1 * width..][..TILE.1 * width];
        row.iter().enumerate().for_each(|(t, x)| tile[t * TILE.1 + i % TILE.1] = *x);
    }
    tiles
}

/// Subtracts the products of `left` rows with those in tiles from the first `end` columns of `out`.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2", "aarch64+neon"))]
fn subtract_products(left: &[f64], tiles: &[f64], (width, end): (usize, usize), out: &mut [f64]) {
    let n = out.len() / (left.len() / width);
    for (number, tile) in tiles.chunks_exact(TILE.1 * width).take(end.div_ceil(TILE.1)).enumerate() {
        let from = number * TILE.1;
        let columns = TILE.1.min(n - from);
        for (rows, out) in left.chunks(TILE.0 * width).zip(out.chunks_mut(TILE.0 * n)) {
            let mut sums = [[0.0f64; TILE.1]; TILE.0];
            let row = |at: usize| rows.get(at * width..(at + 1) * width).unwrap_or(&rows[..width]);
            let [a, b, c, d] = [row(0), row(1), row(2), row(3)];
            for (t, line) in tile.as_chunks::<{ TILE.1 }>().0.iter().enumerate() {
                let factors = [a[t], b[t], c[t], d[t]];
                for (sums, factor) in sums.iter_mut().zip(factors) {
                    for lane in 0..TILE.1 {
                        sums[lane] += factor * line[lane];
                    }
                }
            }
            for (row, sums) in out.chunks_exact_mut(n).zip(&sums) {
                row[from..from + columns].iter_mut().zip(sums).for_each(|(out, sum)| *out -= sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, stream};

    /// `B B' + I` for a random B, and a right side.
    fn system(n: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let mut random = stream(seed, Purpose::Test, n as u64, 0);
        let b: Vec<f64> = (0..n * n).map(|_| random.normal()).collect();
        let mut matrix = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                matrix[i * n + j] = dot(&b[i * n..][..n], &b[j * n..][..n]) + f64::from(u8::from(i == j));
            }
        }
        (matrix, (0..n).map(|_| random.normal()).collect())
    }

    fn product(matrix: &[f64], x: &[f64]) -> Vec<f64> {
        matrix.chunks_exact(x.len()).map(|row| dot(row, x)).collect()
    }

    #[test]
    fn a_solution_satisfies_its_equations() {
        for n in [1, 2, 7, 8, 33] {
            let (matrix, b) = system(n, 1);
            let (mut factor, mut x) = (matrix.clone(), b.clone());
            cholesky(&mut factor, n).expect("the matrix is positive definite");
            solve_cholesky(&factor, &mut x);
            for (found, b) in product(&matrix, &x).iter().zip(&b) {
                assert!((found - b).abs() < 1e-9 * (1.0 + b.abs()), "{n}: {found} {b}");
            }
        }
    }

    #[test]
    fn an_inverse_has_the_same_bits_for_any_threads() {
        for n in [1, 5, 64, 67, 150, 200] {
            let (matrix, b) = system(n, 2);
            let mut inverse = matrix.clone();
            invert(&mut inverse, n, 1).expect("the matrix is positive definite");
            for (found, b) in product(&matrix, &product(&inverse, &b)).iter().zip(&b) {
                assert!((found - b).abs() < 1e-6 * (1.0 + b.abs()), "{n}: {found} {b}");
            }
            let mut other = matrix;
            invert(&mut other, n, 3).expect("the matrix is positive definite");
            assert_eq!(inverse, other);
        }
    }

    #[test]
    fn a_matrix_without_an_inverse_is_refused() {
        let mut matrix = vec![0.0; 100 * 100];
        (0..100).filter(|&i| i != 70).for_each(|i| matrix[i * 100 + i] = 1.0);
        assert_eq!(invert(&mut matrix, 100, 2), Err(NotPositive { column: 70, pivot: 0.0 }));
    }

    #[test]
    fn a_matrix_without_a_factor_is_refused() {
        assert_eq!(cholesky(&mut [1.0, 2.0, 2.0, 4.0], 2), Err(NotPositive { column: 1, pivot: 0.0 }));
        assert!(cholesky(&mut [f64::NAN], 1).is_err());
    }

    #[test]
    fn conjugate_gradients_reach_the_solutions_of_all_sides_in_n_steps() {
        let n = 8;
        let systems: Vec<_> = (0..3).map(|seed| system(n, seed)).collect();
        let mut b: Vec<f64> = systems.iter().flat_map(|system| system.1.clone()).collect();
        // A side that is solved at the start.
        b[..n].fill(0.0);
        let mut x = vec![0.0; 3 * n];
        conjugate_gradients(n, 3 * n, &b, &mut x, |p, out| {
            for (side, (matrix, _)) in systems.iter().enumerate() {
                out[side * n..][..n].copy_from_slice(&product(matrix, &p[side * n..][..n]));
            }
        });
        assert!(x[..n].iter().all(|&x| x == 0.0));
        for (side, (matrix, _)) in systems.iter().enumerate() {
            for (found, b) in product(matrix, &x[side * n..][..n]).iter().zip(&b[side * n..]) {
                assert!((found - b).abs() < 1e-7, "{found} {b}");
            }
        }
    }
}
