//! The two hashes of Seraphim. They decide where keys lie and which key stands for a name, so they are frozen: a change
//! would move every parameter of every saved model.

use xxhash_rust::xxh3::xxh3_64;

/// Mixes a key so that every bit of the result depends on every bit of the key.
///
/// The finalizer of splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014),
/// after adding its increment, so that 0 does not map to 0. It is a bijection of `u64`.
#[inline]
pub fn mix64(key: u64) -> u64 {
    let mut x = key.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Combines a running hash with one more number. The order of the numbers matters.
#[inline]
pub fn combine(hash: u64, next: u64) -> u64 {
    mix64(hash ^ mix64(next))
}

/// Keys that stand for strings have this bit set and bit 63 clear, so that they never collide with a column number.
pub const NAMED_KEY_BIT: u64 = 1 << 62;

/// The feature key of `value` in the namespace (column) `space`: XXH3-64 of `space`, a zero byte and `value`,
/// cut to 62 bits, with [`NAMED_KEY_BIT`] set.
pub fn named_key(space: &[u8], value: &[u8]) -> u64 {
    let mut bytes = Vec::with_capacity(space.len() + value.len() + 1);
    bytes.extend_from_slice(space);
    bytes.push(0);
    bytes.extend_from_slice(value);
    (xxh3_64(&bytes) >> 2) | NAMED_KEY_BIT
}

/// The key of the product of the features with these keys, independent of their order. It has the form of a key made by
/// [`named_key`].
///
/// # Panics
/// With more than three keys.
pub fn product_key(keys: &[u64]) -> u64 {
    let mut sorted = [0; 3];
    let sorted = &mut sorted[..keys.len()];
    sorted.copy_from_slice(keys);
    sorted.sort_unstable();
    let hash = sorted.iter().fold(keys.len() as u64, |hash, key| combine(hash, *key));
    (hash >> 2) | NAMED_KEY_BIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_placement_hash_is_frozen() {
        // Published splitmix64 outputs for seed 0: the first two numbers of the stream.
        assert_eq!(mix64(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(mix64(0x9E37_79B9_7F4A_7C15), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn keys_of_products_are_frozen_and_know_no_order() {
        assert_eq!(product_key(&[7, 9]), product_key(&[9, 7]));
        assert_ne!(product_key(&[7, 9]), product_key(&[7, 9, 9]));
        assert_ne!(product_key(&[7, 7]), product_key(&[7]));
        // The expected value was computed in Python from the published constants of splitmix64.
        assert_eq!(product_key(&[7, 9]), 7_540_417_325_701_284_047);
    }

    #[test]
    fn named_keys_have_their_bit_and_tell_space_from_value() {
        let key = named_key(b"city", b"Rome");
        assert_eq!(key >> 62, 1);
        assert_ne!(key, named_key(b"cityRome", b""));
        assert_ne!(key, named_key(b"", b"cityRome"));
    }
}
