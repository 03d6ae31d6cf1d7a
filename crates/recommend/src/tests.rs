use std::collections::BTreeMap;

use data::{Batch, BatchBuilder};
use matrix::MatrixId;

use super::*;
use algo::error::Error;
use algo::test_harness::{Harness, Run, f32s};

const HARNESS: Harness = Harness(&[&FAMILY]);

/// Users 0 to 39 and items 100 to 129 in two groups: a user likes the items of its group. Rating 5 or 1, with a bias of users.
fn ratings() -> Vec<Batch> {
    records(
        |user, item| Some(if user % 2 == item % 2 { 5.0 } else { 1.0 } + (user % 3) as f64 * 0.1),
        |_, _| 1.0,
    )
}

fn records(rating: impl Fn(u64, u64) -> Option<f64>, weight: impl Fn(u64, u64) -> f32) -> Vec<Batch> {
    let mut builder = BatchBuilder::new();
    for user in 0..40u64 {
        for item in 100..130u64 {
            let Some(rating) = rating(user, item) else { continue };
            builder.push_with_field(0, user, 1.0);
            builder.push_with_field(1, item, 1.0);
            builder.end_record(rating, weight(user, item), None);
        }
    }
    let mut batch = Batch::default();
    builder.finish(&mut batch);
    vec![batch]
}

/// The ratings of which one in five is missing.
fn most() -> Vec<Batch> {
    records(
        |user, item| ((user * 7 + item) % 5 > 0).then_some(if user % 2 == item % 2 { 5.0 } else { 1.0 }),
        |_, _| 1.0,
    )
}

fn rmse(run: &Run) -> f64 {
    run.training.last().unwrap()["rmse"]
}

#[test]
fn ratings_are_learned_by_either_solver() {
    let near = HARNESS.train_on(3, "als", "factors=4 lambda=0.01", vec![most()]).unwrap();
    let exact = HARNESS.train_on(3, "als", "factors=4 lambda=0.01 solver=cholesky", vec![most()]).unwrap();
    assert!(rmse(&near) < 0.1 && rmse(&exact) < 0.1, "{} {}", rmse(&near), rmse(&exact));
    assert!(rmse(&near) < near.training[0]["rmse"]);
}

#[test]
fn the_loss_of_choices_falls_and_the_bytes_do_not_depend_on_partitions() {
    let fixed = "factors=4 unobserved=0.02 lambda=0.002";
    for settings in [fixed, "factors=4 loss=confidence lambda=1", &format!("{fixed} solver=cholesky nu=0.5")]
    {
        let choices = || records(|user, item| (user % 2 == item % 2).then_some(0.0), |_, _| 1.0);
        let runs = [1, 5].map(|count| HARNESS.train_on(count, "ials", settings, vec![choices()]).unwrap());
        for matrix in [FactorModel::USERS, FactorModel::ITEMS] {
            assert_eq!(f32s(&runs[0].store, matrix), f32s(&runs[1].store, matrix));
        }
        let losses: Vec<f64> = runs[0].training.iter().map(|metrics| metrics["loss"]).collect();
        if !settings.contains("cholesky") {
            assert!(losses.last().unwrap() < &losses[0], "{settings}: {losses:?}");
        }
        let score = |user: usize, item: usize| {
            let (users, items) =
                (f32s(&runs[0].store, FactorModel::USERS), f32s(&runs[0].store, FactorModel::ITEMS));
            (0..4).map(|f| users[user * 4 + f] * items[item * 4 + f]).sum::<f32>()
        };
        assert!(score(2, 4) > 0.8 && score(2, 5).abs() < 0.2, "{settings}: {} {}", score(2, 4), score(2, 5));
    }
}

#[test]
fn gradient_descent_learns_ratings_and_may_keep_factors_at_0_or_above() {
    for more in ["", " nonnegative=true"] {
        let settings = format!("factors=4 epochs=200 lambda=0.01 learning_rate=0.05{more}");
        let run = HARNESS.train_on(3, "mf", &settings, vec![most()]).unwrap();
        assert!(rmse(&run) < 0.3, "{more}: {}", rmse(&run));
        let rows = f32s(&run.store, FactorModel::USERS);
        let lowest = rows.chunks_exact(5).flat_map(|row| &row[..4]).fold(0.0f32, |low, &x| low.min(x));
        assert_eq!(lowest < 0.0, more.is_empty());
    }
}

#[test]
fn chosen_items_come_before_others() {
    let choices =
        records(|user, item| (user % 2 == item % 2 && (user + item) % 7 > 0).then_some(0.0), |_, _| 1.0);
    let run = HARNESS.train_on(3, "bpr", "factors=4 epochs=100 learning_rate=0.1", vec![choices]).unwrap();
    let loss = |at: usize| run.training[at]["loss"];
    assert!(loss(99) < 0.3 * loss(0), "{} {}", loss(0), loss(99));
}

#[test]
fn steps_that_are_too_large_are_an_error_with_the_step_and_the_setting() {
    let error =
        HARNESS.train_on(1, "mf", "factors=3 learning_rate=100", vec![ratings()]).err().unwrap().to_string();
    assert!(error.contains("epoch 1, step") && error.contains("learning_rate (now 100)"), "{error}");
}

/// The records of the batches dealt to two tasks, and to three.
fn dealt(data: &[Batch], count: usize) -> Vec<Vec<Batch>> {
    let batch = &data[0];
    let records = |task: usize| {
        let mut builder = BatchBuilder::new();
        for r in (0..batch.record_count()).filter(|r| r * 7 % count == task) {
            batch.entries(r).for_each(|i| {
                builder.push_with_field(batch.fields[i], batch.columns[batch.indices[i] as usize], 1.0);
            });
            builder.end_record(batch.labels[r], batch.weight(r), None);
        }
        let mut out = Batch::default();
        builder.finish(&mut out);
        vec![out]
    };
    (0..count).map(records).collect()
}

#[test]
fn the_bytes_do_not_depend_on_tasks() {
    for (name, settings) in [
        ("als", "factors=3 iterations=3"),
        ("als", "factors=3 iterations=3 implicit_weight=0.5"),
        ("ials", "factors=3 iterations=3"),
        ("mf", "factors=3 epochs=3"),
        ("bpr", "factors=3 epochs=3 negatives=2"),
    ] {
        let runs = [1, 2, 3].map(|count| HARNESS.train_on(4, name, settings, dealt(&most(), count)).unwrap());
        for run in &runs[1..] {
            for matrix in [FactorModel::USERS, FactorModel::ITEMS] {
                assert_eq!(f32s(&run.store, matrix), f32s(&runs[0].store, matrix), "{name}");
            }
        }
    }
}

#[test]
fn the_same_pair_twice_is_added_up_or_replaced_or_an_error() {
    let once = |rating: f64| {
        let mut data = records(|_, item| (item < 120).then_some(1.0 + (item % 4) as f64), |_, _| 1.0);
        data.extend(records(|user, item| (user == 3 && item == 105).then_some(rating), |_, _| 1.0));
        vec![data]
    };
    let mean = |settings: &str, rating| {
        let run = HARNESS.train_on(1, "als", settings, once(rating)).unwrap();
        match run.store.export(FactorModel::SCALE).unwrap().values {
            matrix::OwnedValues::F64(values) => values[0],
            other => panic!("{other:?}"),
        }
    };
    let base = mean("duplicates=last", 2.0);
    assert!((mean("", 802.0) - base - 1.0).abs() < 1e-9, "one of 800 ratings is replaced");
    assert!((mean("duplicates=sum", 800.0) - base - 1.0).abs() < 1e-9);
    let error = HARNESS.train_on(1, "als", "duplicates=error", once(2.0)).err().unwrap().to_string();
    assert!(error.contains("twice") && error.contains("duplicates=last"), "{error}");
}

#[test]
fn a_record_of_weight_0_is_not_there() {
    let some = records(|user, item| (user % 2 == item % 2).then_some(0.0), |_, _| 1.0);
    let all = records(|_, _| Some(0.0), |user, item| f32::from(user % 2 == item % 2));
    let [some, all] = [some, all].map(|data| HARNESS.train_on(1, "ials", "factors=3", vec![data]).unwrap());
    assert_eq!(f32s(&some.store, FactorModel::USERS), f32s(&all.store, FactorModel::USERS));
}

#[test]
fn equal_ratings_leave_only_the_mean() {
    let run = HARNESS.train_on(1, "als", "factors=3", vec![records(|_, _| Some(4.0), |_, _| 1.0)]).unwrap();
    // The first factors are random and small, and shrink.
    assert!(rmse(&run) < 1e-3, "{}", rmse(&run));
}

#[test]
fn without_penalty_conjugate_gradients_go_on_and_cholesky_says_what_to_do() {
    let few = || records(|user, item| (item == 100 + user % 30).then_some(3.0), |_, _| 1.0);
    HARNESS.train_on(1, "als", "factors=3 lambda=0", vec![few()]).unwrap();
    let error = HARNESS
        .train_on(1, "als", "factors=3 lambda=0 solver=cholesky", vec![few()])
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("no unique solution") && error.contains("raise lambda"), "{error}");
}

#[test]
fn factors_that_are_no_longer_finite_are_an_error_with_the_step_and_the_setting() {
    let huge = records(|user, item| Some(if user % 2 == item % 2 { 3e38 } else { -3e38 }), |_, _| 1.0);
    let error = HARNESS.train_on(1, "als", "factors=3", vec![huge]).err().unwrap().to_string();
    assert!(error.contains("epoch 1, step") && error.contains("lambda"), "{error}");
}

#[test]
fn a_user_with_all_items_and_data_without_pairs() {
    HARNESS
        .train_on(1, "ials", "factors=3", vec![records(|user, _| (user == 1).then_some(0.0), |_, _| 1.0)])
        .unwrap();
    let error =
        HARNESS.train_on(1, "ials", "factors=3", vec![records(|_, _| None, |_, _| 1.0)]).err().unwrap();
    assert!(matches!(error, Error::NoRecords), "{error}");
}

#[test]
fn ratings_with_weights_are_refused() {
    let error = HARNESS
        .train_on(1, "als", "", vec![records(|_, _| Some(1.0), |_, _| 2.0)])
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("--weight"), "{error}");
}

#[test]
fn a_training_goes_on_from_every_epoch_with_the_same_bytes() {
    for (name, settings) in [
        ("als", "factors=3 iterations=4"),
        ("als", "factors=3 iterations=4 implicit_weight=0.5"),
        ("ials", "factors=3 iterations=4"),
        ("mf", "factors=3 epochs=4"),
        ("bpr", "factors=3 epochs=4"),
    ] {
        let data = ratings();
        let run = HARNESS.train_on(2, name, settings, vec![data.clone()]).unwrap();
        let last = f32s(&run.store, MatrixId(0));
        assert_eq!(run.moments.len(), 3);
        for moment in &run.moments {
            let again = HARNESS.train_from(moment, name, settings, vec![data.clone()], None).unwrap();
            assert_eq!(f32s(&again.store, MatrixId(0)), last, "{name}");
        }
    }
}

/// The lists of neighbors of a training, item by item.
fn neighbors(run: &Run) -> BTreeMap<u64, BTreeMap<u64, f32>> {
    let block = run.store.export(NeighborModel::NEIGHBORS).unwrap();
    let matrix::OwnedValues::F32(values) = &block.values else { panic!("weights") };
    let list = |range: std::ops::Range<usize>| {
        block.entries()[range.clone()].iter().copied().zip(values[range].iter().copied()).collect()
    };
    block.rows().map(|(key, range)| (key, list(range))).collect()
}

/// Choices with a strength for some users and items.
fn strengths() -> Vec<Batch> {
    records(
        |user, item| ((user * 3 + item * item) % 7 < 3).then_some(0.0),
        |user, item| (1 + (user + item) % 3) as f32,
    )
}

/// For each item its users and their strengths.
fn by_item() -> BTreeMap<u64, BTreeMap<u64, f64>> {
    let mut all: BTreeMap<u64, BTreeMap<u64, f64>> = BTreeMap::new();
    for batch in strengths() {
        for r in 0..batch.record_count() {
            for (user, item) in interactions_of(&batch, r).unwrap() {
                all.entry(item).or_default().insert(user, f64::from(batch.weight(r)));
            }
        }
    }
    all
}

#[test]
fn similarities_are_those_of_their_definitions() {
    let items = by_item();
    let total: f64 = items.values().flat_map(BTreeMap::values).sum();
    let mean = total / items.len() as f64;
    let user_items = |user: &u64| items.values().filter(|users| users.contains_key(user)).count() as f64;
    let bm25 = |users: &BTreeMap<u64, f64>, user: &u64| {
        let (x, size): (f64, f64) = (users[user], users.values().sum());
        let rarity = ((1.0 + items.len() as f64) / (1.0 + user_items(user))).ln();
        x * 2.2 / (1.2 * (0.25 + 0.75 * size / mean) + x) * rarity
    };
    let length = |users: &BTreeMap<u64, f64>| users.values().map(|x| x * x).sum::<f64>().sqrt();
    for name in ["cosine", "cooccurrence", "jaccard", "bm25"] {
        let settings = format!("similarity={name}");
        let found = neighbors(&HARNESS.train_on(3, "itemknn", &settings, vec![strengths()]).unwrap());
        assert_eq!(found.len(), items.len());
        for (a, users) in &items {
            for (b, others) in items.iter().filter(|(b, _)| *b != a) {
                let both: Vec<&u64> = users.keys().filter(|user| others.contains_key(user)).collect();
                let count = both.len() as f64;
                let expected: f64 = match name {
                    "cosine" => {
                        let sum: f64 = both.iter().map(|u| users[u] * others[u] / user_items(u)).sum();
                        sum / (length(users) * length(others)).sqrt()
                    }
                    "cooccurrence" => count,
                    "jaccard" => count / (users.len() as f64 + others.len() as f64 - count),
                    _ => both.iter().map(|u| bm25(users, u) * bm25(others, u)).sum(),
                };
                let found = found[a].get(b).copied().unwrap_or(0.0);
                assert!(
                    (f64::from(found) - expected).abs() < 1e-4 * (1.0 + expected),
                    "{name} {found} {expected}"
                );
            }
        }
    }
    let few = neighbors(
        &HARNESS.train_on(3, "itemknn", "neighbors=2 similarity=jaccard", vec![strengths()]).unwrap(),
    );
    assert!(few.values().all(|list| list.len() == 2));
}

#[test]
fn weights_of_ease_are_at_the_minimum() {
    let items = by_item();
    let found = neighbors(&HARNESS.train_on(3, "ease", "lambda=3", vec![strengths()]).unwrap());
    let product = |a: &BTreeMap<u64, f64>, b: &BTreeMap<u64, f64>| {
        a.iter().filter_map(|(user, x)| Some(x * b.get(user)?)).sum::<f64>()
    };
    for i in items.keys() {
        for (k, users) in items.iter().filter(|(k, _)| *k != i) {
            // The derivative by B_ki: (X'X B)_ki - (X'X)_ki + lambda B_ki = 0, but on the diagonal.
            let fitted: f64 = items
                .iter()
                .filter(|(j, _)| *j != i)
                .map(|(j, others)| product(users, others) * f64::from(found[i][j]))
                .sum();
            let slope = fitted - product(users, &items[i]) + 3.0 * f64::from(found[i][k]);
            assert!(slope.abs() < 1e-3, "{k} {i}: {slope}");
        }
    }
}

#[test]
fn neighbors_do_not_depend_on_tasks() {
    for settings in ["itemknn similarity=bm25 neighbors=5", "itemknn", "ease neighbors=5"] {
        let (name, settings) = settings.split_once(' ').unwrap_or((settings, ""));
        let runs = [1, 2, 3].map(|count| {
            neighbors(&HARNESS.train_on(4, name, settings, dealt(&strengths(), count)).unwrap())
        });
        assert!(runs[0] == runs[1] && runs[0] == runs[2], "{name} {settings}");
    }
}

#[test]
fn items_that_were_held_out_are_found_again_and_belong_to_no_training() {
    let some = || records(|user, item| (user % 2 == item % 2).then_some(0.0), |_, _| 1.0);
    for name in ["ials factors=4", "bpr factors=4 learning_rate=0.1", "itemknn", "ease"] {
        let (name, settings) = name.split_once(' ').unwrap_or((name, ""));
        let settings = format!("{settings} validation_share=0.34");
        let seen = MatrixId(if matches!(name, "ials" | "bpr") { 3 } else { 2 });
        let lists = |run: &Run| run.store.export(seen).unwrap();
        let runs = [1, 3].map(|count| HARNESS.train_on(4, name, &settings, dealt(&some(), count)).unwrap());
        for run in &runs {
            let last = run.validation.last().unwrap();
            // Of its 15 items five are held out; they come before the 15 items of the other group.
            assert!(last["ndcg@20"] > 0.9, "{name}: {last:?}");
            assert!(lists(run).rows().all(|(_, range)| range.len() == 10), "{name}");
        }
        assert_eq!(lists(&runs[0]), lists(&runs[1]));
    }
}

#[test]
fn what_is_not_set_follows_from_the_share_of_pairs() {
    let objective = ObjectiveSettings::Choices { unobserved: None, lambda: Some(0.5), nu: 1.0 };
    let found = objective.resolve(80, 100, 20);
    assert_eq!(found, Objective::Choices { unobserved: 0.04f64.sqrt(), lambda: 0.5, nu: 1.0 });
    let confidence = ObjectiveSettings::Confidence { alpha: 10.0, lambda: None };
    // 27 of 1,000 pairs: a third root of 0.3; a user has 2.7 items of 10.
    let Objective::Confidence { lambda, .. } = confidence.resolve(27, 10, 100) else { panic!("its kind") };
    assert!((lambda - 0.3 / 25.0 * (27.0 + 100.0)).abs() < 1e-9, "{lambda}");
}
