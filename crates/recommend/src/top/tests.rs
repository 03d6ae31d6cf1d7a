use math::random::{Purpose, stream};

use super::tiles::dot_plain;
use super::*;
use crate::Objective;

const USERS: u64 = 130;
const ITEMS: u64 = 700;
const FACTORS: usize = 7;

fn model() -> FactorModel {
    FactorModel { factors: FACTORS, are_ratings: false, has_biases: false, objective: None }
}

fn rows(count: u64, seed: u64) -> KeyedRows {
    let mut random = stream(seed, Purpose::Test, 0, 0);
    let keys: Vec<u64> = (0..count).map(|key| 3 * key + 1).collect();
    let scale = |row: u64| (1 + row % 5) as f32;
    let values = (0..count)
        .flat_map(|row| (0..FACTORS).map(|_| scale(row) * random.normal() as f32).collect::<Vec<_>>());
    KeyedRows { values: values.collect(), keys }
}

fn recommender(is_allowed: &dyn Fn(u64) -> bool) -> Recommender {
    let objective = Some(Objective::Choices { unobserved: 0.1, lambda: 0.01, nu: 1.0 });
    let items = rows(ITEMS, 2);
    let described = Items::new(items.keys, |key| (key % 11) as i64, is_allowed);
    Recommender::of_factors(&model(), rows(USERS, 1), &items.values, (described, [0.0; 3]), objective)
}

/// Every item, best first, by a plain product.
fn sorted(user: &[f32], items: &KeyedRows) -> Vec<(f64, u64)> {
    let score = |row: &[f32]| row.iter().zip(user).fold(0.0f32, |sum, (q, p)| sum + p * q);
    let rows = items.values.chunks_exact(FACTORS).map(score).map(f64::from);
    let mut all: Vec<(f64, u64)> = rows.zip(items.keys.iter().copied()).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    all
}

#[test]
fn the_best_items_are_those_of_a_sort_without_the_seen_ones() {
    let (engine, users, items) = (recommender(&|_| true), rows(USERS, 1), rows(ITEMS, 2));
    let request = |at: usize| {
        let best = sorted(&users.values[at * FACTORS..][..FACTORS], &items);
        let mut seen: Vec<u64> = best.iter().step_by(2).take(at).map(|(_, item)| *item).collect();
        seen.push(5);
        seen.sort_unstable();
        Request { user: users.keys[at], seen, choices: Vec::new() }
    };
    let requests: Vec<Request> = (0..USERS as usize).map(request).collect();
    let found = engine.recommend(&requests, 10, 3).unwrap();
    assert_eq!(found, engine.recommend(&requests, 10, 1).unwrap());
    for (at, (basis, list)) in found.iter().enumerate() {
        let expected: Vec<Recommendation> = sorted(&users.values[at * FACTORS..][..FACTORS], &items)
            .into_iter()
            .filter(|(_, item)| requests[at].seen.binary_search(item).is_err())
            .take(10)
            .map(|(score, item)| Recommendation { item, score })
            .collect();
        assert_eq!((*basis, list), (Basis::Trained, &expected), "user {at}");
    }
}

#[test]
fn only_allowed_items_are_recommended_and_all_of_them_if_there_are_few() {
    let engine = recommender(&|key| key % 100 == 1);
    let request = Request { user: 1, seen: vec![301], choices: Vec::new() };
    let (_, list) = engine.recommend(&[request], 50, 1).unwrap().remove(0);
    let mut items: Vec<u64> = list.iter().map(|one| one.item).collect();
    items.sort_unstable();
    let allowed: Vec<u64> =
        rows(ITEMS, 2).keys.into_iter().filter(|key| key % 100 == 1 && *key != 301).collect();
    assert_eq!(items, allowed);
    assert!(engine.popular(&[], 3).iter().all(|one| one.item % 100 == 1));
}

#[test]
fn a_user_without_items_gets_the_most_popular_and_a_new_one_is_folded_in() {
    let engine = recommender(&|_| true);
    let nobody = Request { user: 2, ..Request::default() };
    let item = engine.items()[17];
    let new = Request { user: 2, seen: vec![item], choices: vec![(item, 1.0), (999_999, 1.0)] };
    let lost = Request { user: 2, seen: Vec::new(), choices: vec![(999_999, 1.0)] };
    let found = engine.recommend(&[nobody, new, lost], 5, 1).unwrap();
    assert_eq!((found[0].0, found[2].0), (Basis::Popularity, Basis::Popularity));
    assert!(found[0].1.iter().all(|one| one.score == 10.0), "{found:?}");
    assert_eq!(found[1].0, Basis::FoldedIn);
    assert!(found[1].1.len() == 5 && found[1].1.iter().all(|one| one.item != item), "{found:?}");
}

#[test]
fn similar_items_are_those_of_the_largest_cosine() {
    let (engine, items) = (recommender(&|_| true), rows(ITEMS, 2));
    let row = |at: usize| &items.values[at * FACTORS..][..FACTORS];
    let cosine = |a: &[f32], b: &[f32]| dot_plain(a, b) / (dot_plain(a, a) * dot_plain(b, b)).sqrt();
    let found = engine.similar(&[items.keys[3], 2], 4);
    assert!(found[1].is_empty(), "it is not in the model");
    let mut expected: Vec<(f32, u64)> = (0..ITEMS as usize)
        .filter(|&at| at != 3)
        .map(|at| (cosine(row(3), row(at)), items.keys[at]))
        .collect();
    expected.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (one, (score, item)) in found[0].iter().zip(&expected) {
        assert!(one.item == *item && (one.score - f64::from(*score)).abs() < 1e-5, "{found:?}");
    }
}
