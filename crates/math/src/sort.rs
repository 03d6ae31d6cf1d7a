//! Radix sorts: linear in the number of items, and in the number of bytes in which keys differ.

/// Bits of a digit: 2,048 counters stay in the first-level cache.
const DIGIT_BITS: u32 = 11;
const BUCKET_COUNT: usize = 1 << DIGIT_BITS;
/// Below this many items a comparison sort is faster than clearing the counters.
const SMALL: usize = 256;

/// Sorts `(key, payload)` pairs by key; equal keys keep their order. `scratch` is reused between calls.
///
/// Cost: one pass over the items for each 11 bits of the largest key.
pub fn sort_pairs(items: &mut Vec<(u64, u32)>, scratch: &mut Vec<(u64, u32)>) {
    if items.len() < SMALL {
        items.sort_by_key(|item| item.0);
        return;
    }
    let bits = u64::BITS - items.iter().fold(0, |or, item| or | item.0).leading_zeros();
    scratch.clear();
    scratch.resize(items.len(), (0, 0));
    let mut shift = 0;
    while shift < bits {
        let mut starts = [0u32; BUCKET_COUNT];
        for item in items.iter() {
            starts[digit(item.0, shift)] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += std::mem::replace(start, sum);
        }
        for item in items.iter() {
            let start = &mut starts[digit(item.0, shift)];
            scratch[*start as usize] = *item;
            *start += 1;
        }
        std::mem::swap(items, scratch);
        shift += DIGIT_BITS;
    }
}

#[inline]
fn digit(key: u64, shift: u32) -> usize {
    (key >> shift) as usize & (BUCKET_COUNT - 1)
}

/// A `u32` that sorts as the float does: negative floats are flipped, positive ones moved above them.
/// Not for NaN.
#[inline]
pub fn ordered_bits(x: f32) -> u32 {
    let bits = x.to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, stream};

    #[test]
    fn pairs_come_out_sorted_and_stable() {
        let mut random = stream(1, Purpose::Test, 0, 0);
        for (count, bound) in [(0, 1), (10, 5), (1000, 100), (5000, u64::MAX)] {
            let mut items: Vec<(u64, u32)> = (0..count).map(|i| (random.below(bound), i)).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            sort_pairs(&mut items, &mut Vec::new());
            assert_eq!(items, expected);
        }
    }

    #[test]
    fn ordered_bits_keep_the_order_of_floats() {
        let floats = [f32::NEG_INFINITY, -2.5, -1e-30, 0.0, 1e-30, 1.0, f32::MAX];
        assert!(floats.windows(2).all(|w| ordered_bits(w[0]) < ordered_bits(w[1])));
    }
}
