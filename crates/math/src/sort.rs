//! Radix sorts: the cost is linear in the number of items and in the number of digits of the largest key.

/// Bits of a digit: 2,048 counters stay in the first-level cache.
const DIGIT_BITS: u32 = 11;
const BUCKET_COUNT: usize = 1 << DIGIT_BITS;
/// Below this many items a comparison sort is faster than clearing the counters.
const COMPARISON_SORT_LIMIT: usize = 256;

/// Sorts `(key, payload)` pairs by key; equal keys keep their order. `scratch` is reused between calls.
pub fn sort_pairs(items: &mut Vec<(u64, u32)>, scratch: &mut Vec<(u64, u32)>) {
    sort_by_key(items, scratch, |item| item.0);
}

/// Sorts items by `key`; equal keys keep their order. `scratch` is reused between calls.
///
/// Cost: one pass over the items for each 11 bits of the largest key.
///
/// # Panics
/// When there are 2^32 items or more.
pub fn sort_by_key<T: Copy + Default>(items: &mut Vec<T>, scratch: &mut Vec<T>, key: impl Fn(T) -> u64) {
    assert!(u32::try_from(items.len()).is_ok(), "{} items are too many to count in 32 bits", items.len());
    if items.len() < COMPARISON_SORT_LIMIT {
        items.sort_by_key(|&item| key(item));
        return;
    }
    let bits = u64::BITS - items.iter().fold(0, |or, &item| or | key(item)).leading_zeros();
    scratch.clear();
    scratch.resize(items.len(), T::default());
    let mut shift = 0;
    while shift < bits {
        let mut starts = [0u32; BUCKET_COUNT];
        for &item in items.iter() {
            starts[digit(key(item), shift)] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += std::mem::replace(start, sum);
        }
        for &item in items.iter() {
            let start = &mut starts[digit(key(item), shift)];
            scratch[*start as usize] = item;
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

/// Returns a `u32` that sorts as the float does: all bits of negative floats are flipped, and positive floats get the
/// top bit. NaN has no defined order.
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
    fn keys_of_32_bits_come_out_sorted() {
        let mut random = stream(2, Purpose::Test, 0, 0);
        for count in [0, 1, 255, 256, 5000] {
            let mut items: Vec<u32> = (0..count).map(|_| random.next_u64() as u32).collect();
            let mut expected = items.clone();
            expected.sort_unstable();
            sort_by_key(&mut items, &mut Vec::new(), u64::from);
            assert_eq!(items, expected);
        }
    }

    #[test]
    fn ordered_bits_keep_the_order_of_floats() {
        let floats = [f32::NEG_INFINITY, -2.5, -1e-30, 0.0, 1e-30, 1.0, f32::MAX];
        assert!(floats.windows(2).all(|w| ordered_bits(w[0]) < ordered_bits(w[1])));
    }
}
