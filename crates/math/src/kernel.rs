//! Dense kernels on slices. The accumulators are written out, so the order of additions, and with it the last bit,
//! does not hang on the CPU or the compiler.
//!
//! No fused multiply-add is used: it would give other bits on CPUs that have it.

use multiversion::multiversion;

/// Accumulators of a sum: enough to fill the pipeline of two vector units of 16 floats.
const LANES: usize = 32;

/// `sum(a[i] * b[i])` in f32 lanes, folded in f64. `a` and `b`: n.
///
/// # Panics
/// When the lengths differ.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2", "aarch64+neon"))]
pub fn dot(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len(), "dot: a has {} elements, b {}", a.len(), b.len());
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0f32; LANES];
    for (x, y) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let mut total = 0f64;
    for lane in sums {
        total += f64::from(lane);
    }
    for (x, y) in a_rest.iter().zip(b_rest) {
        total += f64::from(*x) * f64::from(*y);
    }
    total
}

/// `y += alpha * x`. `x` and `y`: n.
///
/// # Panics
/// When the lengths differ.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2", "aarch64+neon"))]
pub fn axpy(alpha: f32, x: &[f32], y: &mut [f32]) {
    assert_eq!(x.len(), y.len(), "axpy: x has {} elements, y {}", x.len(), y.len());
    for (y, x) in y.iter_mut().zip(x) {
        *y += alpha * x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_equals_the_plain_sum() {
        for n in [0, 1, 31, 32, 33, 1000] {
            let a: Vec<f32> = (0..n).map(|i| (i % 7) as f32 - 3.0).collect();
            let b: Vec<f32> = (0..n).map(|i| (i % 5) as f32 - 2.0).collect();
            let plain: f64 = a.iter().zip(&b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
            assert_eq!(dot(&a, &b), plain, "small integers are exact, n = {n}");
        }
    }

    #[test]
    fn axpy_adds_in_place() {
        let mut y = vec![1.0, 2.0, 3.0];
        axpy(2.0, &[1.0, 0.0, -1.0], &mut y);
        assert_eq!(y, [3.0, 2.0, 1.0]);
    }
}
