//! The raw keys of the entries of a batch: 32 bits each while all of them are small, as column numbers are.
//!
//! The width matters because the keys of a batch are written and then read again to find their ranks. With 64 bits the
//! keys and the bitmap of the distinct keys do not fit the second-level cache together.

use math::hash::mix64;

/// Keys below this are small: [`DistinctKeys`](crate::distinct_keys::DistinctKeys) has a bit for each.
pub(crate) const SMALL_KEY_END: u64 = 1 << 27;

/// Keys in the order in which they were pushed.
#[derive(Debug, Default)]
pub(crate) struct KeyVec {
    /// All keys, as long as all of them are small.
    small: Vec<u32>,
    /// All keys, once one of them is not small.
    wide: Vec<u64>,
    is_wide: bool,
}

impl KeyVec {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        if self.is_wide { self.wide.len() } else { self.small.len() }
    }

    #[inline]
    pub(crate) fn push(&mut self, key: u64) {
        if !self.is_wide && key < SMALL_KEY_END {
            self.small.push(key as u32);
        } else {
            self.widen();
            self.wide.push(key);
        }
    }

    #[inline]
    pub(crate) fn extend(&mut self, keys: &[u64]) {
        if !self.is_wide && keys.iter().fold(0, |bits, key| bits | key) < SMALL_KEY_END {
            self.small.extend(keys.iter().map(|&key| key as u32));
        } else {
            self.widen();
            self.wide.extend_from_slice(keys);
        }
    }

    #[cfg(any(feature = "parquet", test))]
    #[inline]
    pub(crate) fn extend_u32(&mut self, keys: &[u32]) {
        if u64::from(keys.iter().fold(0, |bits, key| bits | key)) >= SMALL_KEY_END {
            self.widen();
        }
        self.extend_small(keys);
    }

    /// Adds keys that are below [`SMALL_KEY_END`].
    #[inline]
    pub(crate) fn extend_small(&mut self, keys: &[u32]) {
        if self.is_wide {
            self.wide.extend(keys.iter().copied().map(u64::from));
        } else {
            self.small.extend_from_slice(keys);
        }
    }

    #[inline]
    fn widen(&mut self) {
        if !self.is_wide {
            self.wide.extend(self.small.drain(..).map(u64::from));
            self.is_wide = true;
        }
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        self.small.truncate(count);
        self.wide.truncate(count);
    }

    pub(crate) fn clear(&mut self) {
        self.truncate(0);
        self.is_wide = false;
    }

    /// All keys, if all of them are small.
    #[inline]
    pub(crate) fn small(&self) -> Option<&[u32]> {
        (!self.is_wide).then_some(&self.small)
    }

    /// All keys, if one of them is not small, or a discarded one was not.
    #[inline]
    pub(crate) fn wide(&self) -> &[u64] {
        &self.wide
    }

    /// Returns a copy of the keys from `start` on.
    pub(crate) fn copy_from(&self, start: usize) -> Vec<u64> {
        match self.small() {
            Some(small) => small[start..].iter().copied().map(u64::from).collect(),
            None => self.wide[start..].to_vec(),
        }
    }

    /// Returns a key that occurs twice from `start` on. Ascending keys cost one comparison each.
    #[inline]
    pub(crate) fn duplicate_from(&self, start: usize) -> Option<u64> {
        match self.small() {
            Some(small) => duplicate(&small[start..]),
            None => duplicate(&self.wide[start..]),
        }
    }
}

#[inline]
fn duplicate<K: Copy + Ord + Into<u64>>(keys: &[K]) -> Option<u64> {
    // The loop does not stop at the first hit, so that the processor compares several pairs at once.
    let next = keys.get(1..).unwrap_or_default();
    let ascending = keys.iter().zip(next).fold(0, |any, (key, next)| any | u32::from(key >= next)) == 0;
    if ascending || surely_distinct(keys) {
        return None;
    }
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].into())
}

/// Whether a small bitmap already shows that all keys are distinct, as in most records with unsorted keys.
fn surely_distinct<K: Copy + Into<u64>>(keys: &[K]) -> bool {
    /// With 16,384 bits, 40 distinct keys are recognized in 95 of 100 cases.
    const WORD_COUNT: usize = 256;
    if keys.len() > WORD_COUNT {
        return false;
    }
    let mut bits = [0u64; WORD_COUNT];
    keys.iter().all(|&key| {
        let hash = mix64(key.into());
        let (word, bit) = (hash as usize % WORD_COUNT, 1 << (hash >> 58));
        let seen = bits[word] & bit != 0;
        bits[word] |= bit;
        !seen
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> impl Strategy<Value = u64> {
        prop_oneof![9 => 0..SMALL_KEY_END, 1 => 0..1u64 << 63, 1 => SMALL_KEY_END - 2..SMALL_KEY_END + 2]
    }

    proptest! {
        #[test]
        fn keys_are_what_was_pushed_however_wide(
            parts in prop::collection::vec((0..5u8, prop::collection::vec(key(), 0..9)), 0..9),
        ) {
            let (mut keys, mut expected) = (KeyVec::default(), vec![]);
            for (way, part) in parts {
                let small: Vec<u32> = part.iter().map(|&key| (key % SMALL_KEY_END) as u32).collect();
                let short: Vec<u32> = part.iter().map(|&key| key as u32).collect();
                match way {
                    0 => part.iter().for_each(|&key| keys.push(key)),
                    1 => keys.extend(&part),
                    2 => keys.extend_small(&small),
                    3 => keys.extend_u32(&short),
                    _ => keys.truncate(expected.len() / 2),
                }
                match way {
                    0 | 1 => expected.extend(part),
                    2 => expected.extend(small.iter().copied().map(u64::from)),
                    3 => expected.extend(short.iter().copied().map(u64::from)),
                    _ => expected.truncate(expected.len() / 2),
                }
                prop_assert_eq!(keys.len(), expected.len());
                prop_assert_eq!(keys.copy_from(0), expected.clone());
                let small = keys.small().unwrap_or_default();
                prop_assert!(small.iter().all(|&key| u64::from(key) < SMALL_KEY_END), "{:?}", small);
                let distinct: std::collections::BTreeSet<u64> = expected.iter().copied().collect();
                prop_assert_eq!(keys.duplicate_from(0).is_some(), distinct.len() < expected.len());
            }
            keys.clear();
            prop_assert!(keys.small().is_some_and(<[u32]>::is_empty));
        }
    }

    /// Sorting every record with unsorted keys would give the same, and take longer.
    #[test]
    fn most_lists_without_duplicates_are_recognized_without_sorting() {
        let list = |number: u64| (0..40).map(|k| mix64(number << 8 | k)).collect::<Vec<u64>>();
        let recognized = (0..1000).filter(|&number| surely_distinct(&list(number))).count();
        assert!((900..1000).contains(&recognized), "{recognized} of 1000");
        for number in 0..1000 {
            let mut keys = list(number);
            keys[39] = keys[number as usize % 39];
            assert!(!surely_distinct(&keys), "{keys:?}");
        }
        assert!(!surely_distinct(&(0..257u64).collect::<Vec<_>>()), "more than the bitmap is made for");
    }
}
