//! The sum over the pairs of features of a record, and its gradient in the factors. Sums of products are in single
//! precision, element by element, so that they do not depend on the instructions of the machine.

use multiversion::multiversion;

/// The shape of the factors of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FactorShape {
    /// Factors of a feature, for each field if there are fields.
    pub(super) factors: usize,
    /// Number of fields.
    pub(super) fields: Option<usize>,
}

impl FactorShape {
    /// Numbers in a row of factors.
    pub(super) fn width(self) -> usize {
        self.factors * self.fields.unwrap_or(1)
    }
}

/// The entries of a record. Shapes: one number each; `columns` are below the number of rows of the factors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entries<'a> {
    /// Row of the factors of each entry.
    pub(super) columns: &'a [u32],
    pub(super) values: &'a [f32],
    /// Field of each entry, below the number of fields; empty without fields.
    pub(super) fields: &'a [u32],
}

/// Returns the sum over pairs, from `factors` (columns x width). Without fields, `sums` (k) is set to `sum_i x_i v_i`,
/// which [`add_gradient`] uses.
pub(super) fn pair_sum(shape: FactorShape, record: Entries<'_>, factors: &[f32], sums: &mut [f32]) -> f64 {
    match shape.fields {
        None => plain_sum(record.columns, record.values, factors, sums),
        Some(fields) => field_aware_sum(fields, shape.factors, record, factors),
    }
}

/// Adds `slope` x the derivative of the sum over pairs in the factors to `gradient` (columns x width).
pub(super) fn add_gradient(
    shape: FactorShape,
    record: Entries<'_>,
    factors: &[f32],
    sums: &[f32],
    slope: f32,
    gradient: &mut [f32],
) {
    match shape.fields {
        None => add_plain_gradient(record.columns, record.values, factors, sums, slope, gradient),
        Some(fields) => add_field_aware_gradient(fields, shape.factors, record, factors, slope, gradient),
    }
}

/// `sum_{i<j} <v_i, v_j> x_i x_j = (|sum_i x_i v_i|^2 - sum_i |x_i v_i|^2) / 2`.
#[multiversion(targets("x86_64+avx2"))]
fn plain_sum(columns: &[u32], values: &[f32], factors: &[f32], sums: &mut [f32]) -> f64 {
    let k = sums.len();
    sums.fill(0.0);
    let mut squares = 0.0;
    for (&column, &value) in columns.iter().zip(values) {
        let row = &factors[column as usize * k..][..k];
        let mut square = 0.0;
        for (sum, &factor) in sums.iter_mut().zip(row) {
            let product = factor * value;
            *sum += product;
            square += product * product;
        }
        squares += f64::from(square);
    }
    let whole: f64 = sums.iter().map(|&sum| f64::from(sum) * f64::from(sum)).sum();
    0.5 * (whole - squares)
}

/// The derivative in `v_i` is `x_i (sum_j x_j v_j - x_i v_i)`.
#[multiversion(targets("x86_64+avx2"))]
fn add_plain_gradient(
    columns: &[u32],
    values: &[f32],
    factors: &[f32],
    sums: &[f32],
    slope: f32,
    gradient: &mut [f32],
) {
    let k = sums.len();
    for (&column, &value) in columns.iter().zip(values) {
        let start = column as usize * k;
        let row = &factors[start..][..k];
        let scale = slope * value;
        for ((out, &factor), &sum) in gradient[start..][..k].iter_mut().zip(row).zip(sums) {
            *out += scale * (sum - value * factor);
        }
    }
}

/// `sum_{i<j} <v_i,field(j), v_j,field(i)> x_i x_j`.
fn field_aware_sum(fields: usize, k: usize, record: Entries<'_>, factors: &[f32]) -> f64 {
    match k {
        4 => field_aware_sum_of::<4>(fields, k, record, factors),
        8 => field_aware_sum_of::<8>(fields, k, record, factors),
        _ => field_aware_sum_of::<1>(fields, k, record, factors),
    }
}

fn add_field_aware_gradient(
    fields: usize,
    k: usize,
    record: Entries<'_>,
    factors: &[f32],
    slope: f32,
    gradient: &mut [f32],
) {
    match k {
        4 => add_field_aware_gradient_of::<4>(fields, k, record, factors, slope, gradient),
        8 => add_field_aware_gradient_of::<8>(fields, k, record, factors, slope, gradient),
        _ => add_field_aware_gradient_of::<1>(fields, k, record, factors, slope, gradient),
    }
}

/// The factors of a feature for a field are `k / LANES` blocks.
#[inline]
fn field_aware_sum_of<const LANES: usize>(
    fields: usize,
    k: usize,
    record: Entries<'_>,
    factors: &[f32],
) -> f64 {
    let (blocks, count) = (factors.as_chunks::<LANES>().0, k / LANES);
    let mut sum = 0.0;
    for a in 0..record.columns.len() {
        // The sum over the partners of an entry, so that single precision is enough.
        let mut sums = [0f32; LANES];
        for b in a + 1..record.columns.len() {
            let (own, other, product) = pair(fields, count, record, a, b);
            for (own, other) in blocks[own..][..count].iter().zip(&blocks[other..][..count]) {
                for lane in 0..LANES {
                    sums[lane] += own[lane] * other[lane] * product;
                }
            }
        }
        sum += sums.iter().map(|&sum| f64::from(sum)).sum::<f64>();
    }
    sum
}

#[inline]
fn add_field_aware_gradient_of<const LANES: usize>(
    fields: usize,
    k: usize,
    record: Entries<'_>,
    factors: &[f32],
    slope: f32,
    gradient: &mut [f32],
) {
    let (blocks, count) = (factors.as_chunks::<LANES>().0, k / LANES);
    let out = gradient.as_chunks_mut::<LANES>().0;
    for a in 0..record.columns.len() {
        for b in a + 1..record.columns.len() {
            let (own, other, product) = pair(fields, count, record, a, b);
            let scale = slope * product;
            for block in 0..count {
                add_scaled(&mut out[own + block], scale, blocks[other + block]);
                add_scaled(&mut out[other + block], scale, blocks[own + block]);
            }
        }
    }
}

#[inline]
fn add_scaled<const LANES: usize>(out: &mut [f32; LANES], scale: f32, values: [f32; LANES]) {
    for lane in 0..LANES {
        out[lane] += scale * values[lane];
    }
}

/// The first blocks of the factors that two entries have for each other, and the product of their values.
#[inline]
fn pair(fields: usize, count: usize, record: Entries<'_>, a: usize, b: usize) -> (usize, usize, f32) {
    let Entries { columns, values, fields: field_of } = record;
    let own = (columns[a] as usize * fields + field_of[b] as usize) * count;
    let other = (columns[b] as usize * fields + field_of[a] as usize) * count;
    (own, other, values[a] * values[b])
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [u32; 4] = [2, 0, 3, 1];
    const VALUES: [f32; 4] = [1.0, -0.5, 2.0, 1.5];
    const FIELDS: [u32; 4] = [1, 0, 2, 1];

    fn factors(width: usize) -> Vec<f32> {
        (0..4 * width).map(|i| ((i * 37 % 19) as f32 - 9.0) / 10.0).collect()
    }

    /// The definition, in doubles.
    fn plain(shape: FactorShape, factors: &[f64]) -> f64 {
        let (k, width) = (shape.factors, shape.width());
        let at = |entry: usize, field: u32| {
            let offset = if shape.fields.is_some() { field as usize * k } else { 0 };
            COLUMNS[entry] as usize * width + offset
        };
        let mut sum = 0.0;
        for a in 0..4 {
            for b in a + 1..4 {
                let (own, other) = (at(a, FIELDS[b]), at(b, FIELDS[a]));
                let dot: f64 = (0..k).map(|f| factors[own + f] * factors[other + f]).sum();
                sum += dot * f64::from(VALUES[a]) * f64::from(VALUES[b]);
            }
        }
        sum
    }

    #[test]
    fn sums_are_those_of_the_definition_and_gradients_their_derivatives() {
        for shape in [
            FactorShape { factors: 5, fields: None },
            FactorShape { factors: 8, fields: None },
            FactorShape { factors: 2, fields: Some(3) },
            FactorShape { factors: 4, fields: Some(3) },
            FactorShape { factors: 8, fields: Some(3) },
        ] {
            let values = factors(shape.width());
            let exact: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
            let record = Entries { columns: &COLUMNS, values: &VALUES, fields: &FIELDS };
            let mut sums = vec![0.0; shape.factors];
            let sum = pair_sum(shape, record, &values, &mut sums);
            assert!((sum - plain(shape, &exact)).abs() < 1e-5, "{shape:?}");
            let mut gradient = vec![0.0; values.len()];
            add_gradient(shape, record, &values, &sums, -1.5, &mut gradient);
            for i in 0..values.len() {
                let moved = |step: f64| {
                    let mut moved = exact.clone();
                    moved[i] += step;
                    plain(shape, &moved)
                };
                let expected = -1.5 * (moved(1e-4) - moved(-1e-4)) / 2e-4;
                assert!((f64::from(gradient[i]) - expected).abs() < 1e-5, "{shape:?}, factor {i}");
            }
        }
    }
}
