//! Tests of `distinct_keys.rs`.

use super::*;
use crate::key_vec::SMALL_KEY_END;
use proptest::prelude::*;

/// The definition: sort, remove repetitions, find each key by search.
fn reference(keys: &[u64]) -> (Vec<u64>, Vec<u32>) {
    let mut columns = keys.to_vec();
    columns.sort_unstable();
    columns.dedup();
    let rank = |key| columns.binary_search(key).expect("every key is a column") as u32;
    let indices = keys.iter().map(rank).collect();
    (columns, indices)
}

fn keys() -> impl Strategy<Value = Vec<u64>> {
    let key = prop_oneof![0..200u64, 0..SMALL_KEY_END, 0..1u64 << 63];
    prop_oneof![
        proptest::collection::vec(0..5000u64, 0..2000),
        proptest::collection::vec(0..SMALL_KEY_END, 0..300),
        proptest::collection::vec(key, 0..300),
    ]
}

proptest! {
    #[test]
    fn columns_and_ranks_equal_their_definition(batches in proptest::collection::vec(keys(), 1..4)) {
        let mut distinct = DistinctKeys::default();
        let (mut columns, mut indices) = (vec![7], vec![9]);
        for keys in batches {
            let mut pushed = KeyVec::default();
            for record in keys.chunks(7) {
                let start = pushed.len();
                pushed.extend(record);
                if let Some(small) = pushed.small() {
                    distinct.add(&small[start..]);
                }
            }
            distinct.index(&pushed, &mut columns, &mut indices);
            prop_assert_eq!((columns.clone(), indices.clone()), reference(&keys));
        }
    }
}
