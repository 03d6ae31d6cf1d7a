//! The arithmetic of a step, on slices: scores, and gradients from slopes. `n` records, `e` entries, `d` columns of the
//! batch, `k` classes.
//!
//! Sums are f64 with explicit accumulators, so that the order of additions does not depend on the compiler.

/// Entries of records in compressed rows. Shapes: `offsets` n + 1; `indices` e, each below d; `values` e, or empty if
/// all are 1.
#[derive(Clone, Copy, Debug)]
pub struct CsrRows<'a> {
    /// Start of each record, and the end of the last one.
    pub offsets: &'a [u32],
    /// Column of each entry.
    pub indices: &'a [u32],
    /// Value of each entry; empty if all are 1.
    pub values: &'a [f32],
}

/// Number of accumulators of a dot product: enough to hide the latency of an addition.
const LANES: usize = 4;

impl<'a> CsrRows<'a> {
    /// Checks that the shapes fit.
    ///
    /// # Panics
    /// If `values` is neither empty nor as long as `indices`, or the last offset is not the number of entries.
    pub fn new(offsets: &'a [u32], indices: &'a [u32], values: &'a [f32]) -> Self {
        let entry_count = offsets.last().map_or(0, |&end| end as usize);
        assert_eq!(entry_count, indices.len(), "offsets end at {entry_count}, entries: {}", indices.len());
        assert!(values.is_empty() || values.len() == indices.len(), "{} values", values.len());
        Self { offsets, indices, values }
    }

    fn ranges(self) -> impl Iterator<Item = std::ops::Range<usize>> + 'a {
        self.offsets.windows(2).map(|pair| pair[0] as usize..pair[1] as usize)
    }

    /// `scores[r, c] = bias[c] + sum_i weights[index_i, c] * value_i`. `weights`: d x k; `bias`: k; `scores`: n x k,
    /// overwritten.
    pub fn forward<W: Copy + Into<f64>>(self, weights: &[W], bias: &[f64], scores: &mut Vec<f64>) {
        match bias {
            [bias] => self.forward_one(weights, *bias, scores),
            _ => self.forward_classes(weights, bias, scores),
        }
    }

    /// `gradient[index_i, c] += slopes[r, c] * value_i`. `slopes`: n x k; `gradient`: d x k, of zeros.
    pub fn backward(self, slopes: &[f64], width: usize, gradient: &mut [f64]) {
        match width {
            1 => self.backward_one(slopes, gradient),
            _ => self.backward_classes(slopes, width, gradient),
        }
    }

    fn forward_one<W: Copy + Into<f64>>(self, weights: &[W], bias: f64, scores: &mut Vec<f64>) {
        scores.clear();
        scores.reserve(self.offsets.len());
        if self.values.is_empty() {
            scores.extend(self.ranges().map(|range| bias + sum_at(&self.indices[range], weights)));
        } else {
            let dot = |range: std::ops::Range<usize>| {
                dot_at(&self.indices[range.clone()], &self.values[range], weights)
            };
            scores.extend(self.ranges().map(|range| bias + dot(range)));
        }
    }

    fn backward_one(self, slopes: &[f64], gradient: &mut [f64]) {
        for (range, &slope) in self.ranges().zip(slopes) {
            if slope == 0.0 {
                continue;
            }
            if self.values.is_empty() {
                for &index in &self.indices[range] {
                    gradient[index as usize] += slope;
                }
            } else {
                for (&index, &value) in self.indices[range.clone()].iter().zip(&self.values[range]) {
                    gradient[index as usize] += slope * f64::from(value);
                }
            }
        }
    }

    /// `sums[index_i] += weights[r] * value_i^2`. `weights`: n; `sums`: d.
    pub fn backward_squares(self, weights: &[f64], sums: &mut [f64]) {
        for (range, &weight) in self.ranges().zip(weights) {
            for i in range {
                let value = self.values.get(i).map_or(1.0, |&value| f64::from(value));
                sums[self.indices[i] as usize] += weight * value * value;
            }
        }
    }

    fn forward_classes<W: Copy + Into<f64>>(self, weights: &[W], bias: &[f64], scores: &mut Vec<f64>) {
        let width = bias.len();
        scores.clear();
        for range in self.ranges() {
            let start = scores.len();
            scores.extend_from_slice(bias);
            let sums = &mut scores[start..];
            for i in range {
                let value = self.values.get(i).map_or(1.0, |&value| f64::from(value));
                let row = self.indices[i] as usize * width;
                for (sum, &weight) in sums.iter_mut().zip(&weights[row..row + width]) {
                    *sum += value * weight.into();
                }
            }
        }
    }

    fn backward_classes(self, slopes: &[f64], width: usize, gradient: &mut [f64]) {
        for (range, slopes) in self.ranges().zip(slopes.chunks_exact(width)) {
            for i in range {
                let value = self.values.get(i).map_or(1.0, |&value| f64::from(value));
                let row = self.indices[i] as usize * width;
                for (sum, &slope) in gradient[row..row + width].iter_mut().zip(slopes) {
                    *sum += value * slope;
                }
            }
        }
    }
}

#[inline]
fn sum_at<W: Copy + Into<f64>>(indices: &[u32], weights: &[W]) -> f64 {
    let (chunks, rest) = indices.as_chunks::<LANES>();
    let mut sums = [0f64; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            sums[lane] += weights[chunk[lane] as usize].into();
        }
    }
    for (lane, &index) in rest.iter().enumerate() {
        sums[lane] += weights[index as usize].into();
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

#[inline]
fn dot_at<W: Copy + Into<f64>>(indices: &[u32], values: &[f32], weights: &[W]) -> f64 {
    let (chunks, rest) = indices.as_chunks::<LANES>();
    let (value_chunks, value_rest) = values.as_chunks::<LANES>();
    let mut sums = [0f64; LANES];
    for (chunk, value) in chunks.iter().zip(value_chunks) {
        for lane in 0..LANES {
            sums[lane] += weights[chunk[lane] as usize].into() * f64::from(value[lane]);
        }
    }
    for (lane, (&index, &value)) in rest.iter().zip(value_rest).enumerate() {
        sums[lane] += weights[index as usize].into() * f64::from(value);
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// Scales the slopes of a record by its weight.
pub fn scale(slopes: &mut [f64], factor: f64) {
    if factor != 1.0 {
        for slope in slopes {
            *slope *= factor;
        }
    }
}

/// Scales every record to length 1; records of zeros stay as they are.
pub fn normalize(offsets: &[u32], values: &mut [f32]) {
    for pair in offsets.windows(2) {
        let record = &mut values[pair[0] as usize..pair[1] as usize];
        let square: f64 = record.iter().map(|&value| f64::from(value) * f64::from(value)).sum();
        if square > 0.0 {
            let factor = 1.0 / square.sqrt();
            for value in record {
                *value = (f64::from(*value) * factor) as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFSETS: [u32; 4] = [0, 5, 5, 8];
    const INDICES: [u32; 8] = [0, 2, 1, 3, 4, 2, 4, 0];
    const VALUES: [f32; 8] = [1.0, 2.0, -1.0, 0.5, 4.0, 3.0, 1.0, 1.0];

    #[test]
    fn scores_are_bias_plus_the_weights_of_the_entries() {
        let weights = [1.0, 2.0, 4.0, 8.0, 16.0];
        let mut scores = Vec::new();
        CsrRows::new(&OFFSETS, &INDICES, &[]).forward(&weights, &[0.5], &mut scores);
        assert_eq!(scores, [31.5, 0.5, 21.5]);
        CsrRows::new(&OFFSETS, &INDICES, &VALUES).forward(&weights, &[0.5], &mut scores);
        assert_eq!(scores, [75.5, 0.5, 29.5]);
    }

    #[test]
    fn one_class_scores_as_one_score() {
        let weights = [1.0, 2.0, 4.0, 8.0, 16.0];
        let (mut one, mut many) = (Vec::new(), Vec::new());
        for values in [&[][..], &VALUES] {
            let entries = CsrRows::new(&OFFSETS, &INDICES, values);
            entries.forward(&weights, &[0.5], &mut one);
            entries.forward_classes(&weights, &[0.5], &mut many);
            assert_eq!(one, many);
            let (mut one, mut many) = ([0.0; 5], [0.0; 5]);
            entries.backward(&[1.0, 5.0, -2.0], 1, &mut one);
            entries.backward_classes(&[1.0, 5.0, -2.0], 1, &mut many);
            assert_eq!(one, many);
        }
    }

    #[test]
    fn gradients_are_slopes_times_values() {
        let mut gradient = [0.0; 5];
        CsrRows::new(&OFFSETS, &INDICES, &VALUES).backward(&[1.0, 5.0, -2.0], 1, &mut gradient);
        assert_eq!(gradient, [-1.0, -1.0, -4.0, 0.5, 2.0]);
    }

    #[test]
    fn records_are_scaled_to_length_one() {
        let mut values = [3.0, -4.0, 0.0, 0.0, 5.0, 12.0];
        normalize(&[0, 2, 2, 4, 6], &mut values);
        assert_eq!(values, [0.6, -0.8, 0.0, 0.0, (5.0f64 / 13.0) as f32, (12.0f64 / 13.0) as f32]);
    }
}
