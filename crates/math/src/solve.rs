//! Small systems of linear equations with a symmetric positive definite matrix, as each row of a factorization has one.

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
