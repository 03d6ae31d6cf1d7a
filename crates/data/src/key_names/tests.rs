//! Tests of `key_names.rs`.

use super::*;

fn names(count: u64) -> Vec<(u64, String)> {
    (0..count).map(|i| (math::hash::mix64(i), format!("color={i}"))).collect()
}

#[test]
fn names_in_any_order_and_repeated_are_found_by_their_keys() {
    let count = 500_000;
    let mut collector = NameCollector::default();
    for (key, name) in names(count).iter().chain(names(count / 2).iter().rev()) {
        collector.add(*key, name);
    }
    let (collected, is_over_limit) = collector.finish();
    assert!(!is_over_limit);
    assert_eq!(collected.len(), count as usize);
    assert!(collected.iter().is_sorted_by(|a, b| a.0 < b.0));
    assert_eq!(collected.text.len(), names(count).iter().map(|(_, name)| name.len()).sum::<usize>());
    for (key, name) in names(count).iter().step_by(997) {
        assert_eq!(collected.get(*key), Some(name.as_str()));
        assert_eq!(
            collected.position(*key),
            collected.position(key - 1) + usize::from(collected.get(key - 1).is_some())
        );
    }
    assert_eq!(collected.get(1), None);
}

#[test]
fn above_the_limit_the_smallest_keys_stay_whatever_the_order() {
    let limit = 10 * name_bytes("color=1234567".len());
    let of = |names: &mut dyn Iterator<Item = (u64, String)>| {
        let mut collector = NameCollector::with_limit(limit);
        names.for_each(|(key, name)| collector.add(key, &name));
        collector.finish()
    };
    let named = |i: u64| (i % 1000, format!("color={:07}", i % 1000));
    let (ascending, is_over_limit) = of(&mut (0..1000).map(named));
    assert!(is_over_limit);
    assert_eq!(ascending.iter().map(|(key, _)| key).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    let (others, is_over_limit) = of(&mut (0..3000).rev().map(named));
    assert!(is_over_limit && others == ascending);
    let (exact, is_over_limit) = of(&mut (0..10).map(named));
    assert!(!is_over_limit && exact == ascending);
    let long = (1, "x".repeat(limit));
    assert!(matches!(of(&mut std::iter::once(long)), (names, true) if names.is_empty()));
}

#[test]
fn sorting_in_between_keeps_the_text_within_twice_the_limit() {
    let limit = 1 << 20;
    let mut collector = NameCollector::with_limit(limit);
    let name = "x".repeat(1000);
    for i in 0..100_000 {
        collector.add(math::hash::mix64(i), &name);
        assert!(collector.names.text.len() <= 2 * limit + UNSORTED_BYTES);
    }
    collector.sort();
    let size: usize = collector.names.iter().map(|(_, name)| name_bytes(name.len())).sum();
    assert_eq!((collector.size_bytes, collector.sorted_bytes), (size, size));
    assert!((limit - 2 * name_bytes(1000)..=limit).contains(&size), "{size}");
    assert!(collector.finish().1);
}

#[test]
fn pieces_are_limited_in_number_and_text_and_together_are_all() {
    let many: KeyNames = names(3 * PIECE_NAMES as u64).into_iter().collect();
    let long: KeyNames = (0..40).map(|i| (i, "y".repeat(PIECE_TEXT_BYTES / 10 * 3))).collect();
    let longer: KeyNames = (0..3).map(|i| (i, "z".repeat(2 * PIECE_TEXT_BYTES))).collect();
    for (whole, count) in [(many, 3), (long, 14), (longer, 3), (KeyNames::default(), 0)] {
        let pieces: Vec<KeyNames> = whole.pieces().collect();
        assert_eq!(pieces.len(), count);
        let mut collector = NameCollector::default();
        for piece in &pieces {
            collector.add_all(piece);
        }
        assert!(collector.finish().0 == whole);
    }
}

#[test]
fn names_are_stored_as_pairs_in_the_order_of_their_keys() {
    let all: KeyNames = [(2, "b"), (7, ""), (u64::MAX, "ä")].into_iter().collect();
    let text = serde_json::to_string(&all).unwrap();
    assert_eq!(text, r#"[[2,"b"],[7,""],[18446744073709551615,"ä"]]"#);
    assert_eq!(serde_json::from_str::<KeyNames>(&text).unwrap(), all);
    assert!(serde_json::from_str::<KeyNames>(r#"[["b",2]]"#).is_err());
    assert!(!all.is_empty() && KeyNames::default().is_empty());
}
