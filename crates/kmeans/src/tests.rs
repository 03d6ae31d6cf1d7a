//! Tests of KMeans on `LocalStore`.

use std::sync::Arc;

use data::{Batch, BatchSize, Shuffle};
use math::random::{Purpose, RandomStream, stream};
use matrix::{Consistency, LocalConfig, LocalStore, MatrixId};

use super::model::accumulator;
use super::params::Seeding;
use super::points::{Nearest, Points, SparsePoint, nearest};
use super::score::add_to_metrics;
use super::{Distance, FAMILY, Model, seeding};
use algo::error::Error;
use algo::family::{Families, SavedModel};
use algo::job::Epochs;
use algo::metric::{MetricAccumulator, Metrics};
use algo::test_harness::{Harness, Record, Run, WAIT_LIMIT, build, f32s};

const HARNESS: Harness = Harness(&[&FAMILY]);

/// Records around `centres` centres in `width` dimensions; dense, or with a third of the values.
fn blobs(seed: u64, count: usize, (centres, width): (usize, u64), dense: bool) -> Vec<Record> {
    let mut random = stream(seed, Purpose::Test, 0, 0);
    let place = |random: &mut RandomStream| (0..width).map(|_| random.uniform() as f32 * 10.0).collect();
    let means: Vec<Vec<f32>> = (0..centres).map(|_| place(&mut random)).collect();
    let record = |i: usize| {
        let mean = &means[i % centres];
        let value = |f: u64, random: &mut RandomStream| mean[f as usize] + random.uniform() as f32;
        let entries = (0..width).filter_map(|f| {
            let value = value(f, &mut random);
            (dense || random.below(3) == 0).then_some((f * 1_000_003, value))
        });
        (0.0, entries.collect())
    };
    (0..count).map(record).collect()
}

fn tasks(records: &[Record], count: usize) -> Vec<Vec<Batch>> {
    records.chunks(records.len().div_ceil(count)).map(|share| build(share, 50)).collect()
}

fn run(settings: &str, tasks: Vec<Vec<Batch>>) -> Result<Run, Error> {
    HARNESS.train("kmeans", settings, tasks, None, Consistency::Bsp)
}

fn inertia(metrics: &Metrics) -> f64 {
    metrics["inertia"]
}

/// Clusters and distances of the records of `batches`.
fn assigned(run: &Run, batches: &[Batch]) -> (Vec<usize>, Vec<f64>) {
    let (numbers, _) = run.saved_and_loaded(batches);
    (
        numbers.chunks_exact(2).map(|pair| pair[0] as usize).collect(),
        numbers.chunks_exact(2).map(|pair| pair[1]).collect(),
    )
}

fn dense_rows(records: &[Record], width: u64) -> Vec<Vec<f64>> {
    let row = |(_, entries): &Record| {
        let mut row = vec![0.0; width as usize];
        for (key, value) in entries {
            row[(key / 1_000_003) as usize] = f64::from(*value);
        }
        row
    };
    records.iter().map(row).collect()
}

fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// Lloyd's iterations written out: doubles, no bounds, one thread. Returns the clusters and the inertia.
fn plain_lloyd(rows: &[Vec<f64>], mut centres: Vec<Vec<f64>>) -> (Vec<usize>, f64) {
    let mut clusters = vec![usize::MAX; rows.len()];
    loop {
        let nearest = |row: &Vec<f64>| {
            let distance = |c: &usize| squared(row, &centres[*c]);
            (0..centres.len()).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap()
        };
        let new: Vec<usize> = rows.iter().map(nearest).collect();
        for (c, centre) in centres.iter_mut().enumerate() {
            let own: Vec<_> = rows.iter().zip(&new).filter(|(_, cluster)| **cluster == c).collect();
            for (f, value) in centre.iter_mut().enumerate() {
                *value = own.iter().map(|(row, _)| row[f]).sum::<f64>() / own.len() as f64;
            }
        }
        if new == clusters {
            let inertia = rows.iter().zip(&new).map(|(row, &c)| squared(row, &centres[c])).sum();
            return (new, inertia);
        }
        clusters = new;
    }
}

fn first_centres(batches: &[Batch], k: usize, method: Seeding, seed: u64) -> Vec<SparsePoint> {
    let points = Points::of_batches(batches.to_vec(), Distance::Euclidean).unwrap();
    let config = LocalConfig { task_count: 1, wait_limit: WAIT_LIMIT };
    let mut agent = Arc::new(LocalStore::new(config)).agent(0);
    seeding::choose(&mut agent, &points, (k, method, seed)).unwrap()
}

#[test]
fn lloyd_gives_what_plain_iterations_from_the_same_records_give() {
    for (dense, width) in [(true, 7), (false, 40)] {
        let records = blobs(3, 600, (9, width), dense);
        let batches = build(&records, 50);
        // More clusters than the data have, so that many iterations are needed.
        let chosen = first_centres(&batches, 14, Seeding::PlusPlus, 1);
        let of_point = |point: &SparsePoint| {
            let mut row = vec![0.0; width as usize];
            for (key, value) in point.keys.iter().zip(&point.values) {
                row[(key / 1_000_003) as usize] = f64::from(*value);
            }
            row
        };
        let rows = dense_rows(&records, width);
        let (clusters, expected) = plain_lloyd(&rows, chosen.iter().map(of_point).collect());
        let run = run("k=14 tolerance=0", vec![batches.clone()]).unwrap();
        let actual = inertia(run.training.last().unwrap());
        assert!((actual / expected - 1.0).abs() < 1e-5, "{actual} against {expected}");
        assert!(run.training.len() > 3, "{} iterations", run.training.len());
        assert_eq!(assigned(&run, &batches).0, clusters);
    }
}

#[test]
fn sparse_and_dense_records_have_the_same_sums() {
    let dense = Points::of_batches(build(&blobs(4, 20, (2, 5), true), 7), Distance::Euclidean).unwrap();
    let records: Vec<SparsePoint> = (0..dense.count()).map(|i| dense.get(i)).collect();
    let sparse = Points::of_points(&records, Vec::new());
    for (i, record) in records.iter().enumerate() {
        let sum_of = |points: &Points| {
            let mut sums = vec![1.0; points.width()];
            points.add_to(i, 2.5, &mut sums);
            sums
        };
        let expected: Vec<f64> = record.values.iter().map(|value| 1.0 + 2.5 * f64::from(*value)).collect();
        assert_eq!((sum_of(&dense), sum_of(&sparse)), (expected.clone(), expected), "record {i}");
    }
}

#[test]
fn a_saved_model_is_loaded_by_its_family() {
    let model = run("k=3", tasks(&blobs(5, 90, (3, 4), true), 1)).unwrap().model;
    let saved = SavedModel::new(&*model);
    assert_eq!(saved.family, FAMILY.name);
    assert_eq!(Families::new(&[&FAMILY]).unwrap().load(&saved).unwrap().save(), model.save());
}

#[test]
fn every_number_of_tasks_finds_clusters_and_gives_the_same_bytes_again() {
    let records = blobs(5, 900, (6, 8), true);
    let mut found = Vec::new();
    for count in [1, 2, 3] {
        for settings in ["k=6", "k=6 init=kmeans||", "k=6 method=mini_batch batch_size=50 epochs=3"] {
            let bytes = || {
                let run = run(settings, tasks(&records, count)).unwrap();
                (f32s(&run.store, MatrixId(0)), run.training)
            };
            let first = bytes();
            assert_eq!(bytes(), first, "{count} tasks, {settings}");
            let (_, metrics) =
                run(settings, tasks(&records, count)).unwrap().saved_and_loaded(&build(&records, 64));
            found.push((count, settings, inertia(&metrics)));
        }
    }
    let best = found.iter().map(|(_, _, inertia)| *inertia).fold(f64::INFINITY, f64::min);
    for (count, settings, inertia) in found {
        assert!(inertia < 1.1 * best, "{count} tasks, {settings}: {inertia} against {best}");
    }
}

#[test]
fn the_inertia_of_a_run_is_that_of_an_evaluation_and_never_rises() {
    for settings in ["k=5 tolerance=0", "k=5 tolerance=0 distance=cosine"] {
        let records = blobs(7, 400, (9, 5), true);
        let run = run(settings, tasks(&records, 2)).unwrap();
        let seen: Vec<f64> = run.training.iter().map(inertia).collect();
        assert!(seen.windows(2).all(|pair| pair[1] <= pair[0] * (1.0 + 1e-9)), "{settings}: {seen:?}");
        let (_, metrics) = run.saved_and_loaded(&build(&records, 64));
        let (training, evaluated) = (*seen.last().unwrap(), inertia(&metrics));
        assert!((training / evaluated - 1.0).abs() < 1e-4, "{settings}: {training} against {evaluated}");
        assert!(metrics["simplified_silhouette"] > 0.0);
    }
}

#[test]
fn a_job_says_what_it_needs_and_validates_after_every_iteration() {
    let needs = |settings| HARNESS.job("kmeans", settings).unwrap().needs();
    let lloyd = needs("");
    assert_eq!((lloyd.uses_labels, lloyd.epochs, lloyd.shuffle), (false, Epochs::Fixed(1), Shuffle::None));
    assert_eq!(lloyd.batch_size, BatchSize::Fixed(4096));
    let batches = needs("method=mini_batch epochs=3 batch_size=50");
    assert_eq!((batches.epochs, batches.shuffle), (Epochs::Fixed(3), Shuffle::Batches));
    assert_eq!(batches.batch_size, BatchSize::Fixed(50));
    let records = blobs(8, 300, (4, 6), true);
    let validation = build(&blobs(8, 60, (4, 6), true), 50);
    for settings in ["k=4", "k=4 method=mini_batch batch_size=50 epochs=3"] {
        let run = HARNESS
            .train("kmeans", settings, tasks(&records, 2), Some(&validation), Consistency::Bsp)
            .unwrap();
        assert_eq!(run.validation.len(), run.training.len(), "{settings}");
        let last = inertia(run.validation.last().unwrap());
        let evaluated = inertia(&run.saved_and_loaded(&validation).1);
        assert!((last - evaluated).abs() <= 1e-9 * evaluated, "{settings}: {last} {evaluated}");
    }
}

#[test]
fn cosine_ignores_the_lengths_of_records() {
    let record = |angle: f64, length: f64| {
        (0.0, vec![(1, (length * angle.cos()) as f32), (2, (length * angle.sin()) as f32)])
    };
    let records: Vec<Record> =
        (0..40).map(|i| record(if i % 2 == 0 { 0.1 } else { 1.4 }, f64::from(1 + i * i))).collect();
    let batches = build(&records, 10);
    let run = run("k=2 distance=cosine", vec![batches.clone()]).unwrap();
    let (clusters, distances) = assigned(&run, &batches);
    assert!(clusters.iter().enumerate().all(|(i, &cluster)| cluster == clusters[i % 2]), "{clusters:?}");
    assert_ne!(clusters[0], clusters[1]);
    assert!(distances.iter().all(|distance| *distance < 1e-5), "{distances:?}");
}

#[test]
fn a_task_without_records_changes_nothing() {
    let records = blobs(9, 300, (4, 6), true);
    for settings in ["k=4", "k=4 init=kmeans||", "k=4 method=mini_batch batch_size=50"] {
        let alone = run(settings, tasks(&records, 1)).unwrap();
        let [share] = tasks(&records, 1).try_into().unwrap();
        let beside = run(settings, vec![share, Vec::new()]).unwrap();
        assert_eq!(f32s(&beside.store, MatrixId(0)), f32s(&alone.store, MatrixId(0)), "{settings}");
    }
}

#[test]
fn groups_of_one_size_become_clusters_of_that_size() {
    let records = blobs(9, 300, (4, 6), true);
    let points = Points::of_batches(build(&records, 50), Distance::Euclidean).unwrap();
    assert_eq!((points.count(), points.width()), (300, 6));
    let run = run("k=4 tolerance=0", tasks(&records, 1)).unwrap();
    let (clusters, _) = assigned(&run, &build(&records, 50));
    let sizes = |c: usize| clusters.iter().filter(|cluster| **cluster == c).count();
    assert_eq!((0..4).map(sizes).sum::<usize>(), 300);
    assert!((0..4).all(|c| sizes(c) == 75), "each of the four groups is a cluster");
}

#[test]
fn an_empty_cluster_is_moved_to_a_record_that_is_far() {
    // The first centres of both tasks are chosen at random among records of which most are equal.
    let mut records: Vec<Record> = (0..200).map(|_| (0.0, vec![(1, 1.0)])).collect();
    records.extend([(0.0, vec![(2, 50.0)]), (0.0, vec![(3, 50.0)])]);
    let run = run("k=3 init=random tolerance=0", tasks(&records, 2)).unwrap();
    let (clusters, distances) = assigned(&run, &build(&records, 50));
    assert!(distances.iter().all(|distance| *distance < 1e-3), "{distances:?}");
    assert!(clusters[200] != clusters[0] && clusters[201] != clusters[0] && clusters[200] != clusters[201]);
    assert!(run.notices.is_empty(), "{:?}", run.notices);
}

#[test]
fn equal_records_leave_clusters_empty_with_a_notice() {
    let records: Vec<Record> = (0..30).map(|_| (0.0, vec![(1, 2.0), (5, 3.0)])).collect();
    for init in ["kmeans++", "kmeans||", "random"] {
        let run = run(&format!("k=3 init={init}"), tasks(&records, 2)).unwrap();
        assert_eq!(inertia(run.training.last().unwrap()), 0.0);
        assert!(
            run.notices.iter().any(|notice| notice.contains("2 of 3 clusters")),
            "{init}: {:?}",
            run.notices
        );
        assert!(assigned(&run, &build(&records, 50)).0.iter().all(|&cluster| cluster == 0));
    }
}

#[test]
fn more_clusters_than_records_and_records_without_direction_are_errors() {
    let records = blobs(2, 20, (2, 3), true);
    let error = run("k=21", tasks(&records, 2)).map(drop).unwrap_err();
    assert!(error.to_string().starts_with("k=21 is more than the 20 training records"), "{error}");
    let mut records = records;
    records.push((0.0, Vec::new()));
    let error = run("k=2 distance=cosine", vec![build(&records, 50)]).map(drop).unwrap_err();
    assert!(error.to_string().starts_with("record 21 of a task has only zeros"), "{error}");
    assert!(run("k=2", vec![build(&records, 50)]).is_ok(), "a record of zeros has a place");
    for method in ["k=2", "k=2 method=mini_batch"] {
        let error = run(method, vec![Vec::new()]).map(drop).unwrap_err();
        assert!(matches!(error, Error::NoRecords), "{method}: {error}");
        let mut share = build(&records, 50);
        for batch in &mut share {
            batch.weights = vec![0.0; batch.record_count()];
        }
        let error = run(method, vec![Vec::new(), share]).map(drop).unwrap_err();
        assert!(matches!(error, Error::NoWeight { .. }), "{method}: {error}");
    }
    let error = run("k=0", tasks(&records, 1)).map(drop).unwrap_err().to_string();
    assert!(error.contains("[1, 65536]"), "{error}");
}

#[test]
fn of_two_centres_at_the_same_distance_the_first_is_taken() {
    // |c|^2 - 2 x c + |x|^2 = 4, 2, 2, 3 with |x|^2 = 1.
    let found = nearest(&[0.5, 1.0, 1.5, 1.0], &[4.0, 3.0, 4.0, 4.0], 1.0);
    assert_eq!((found.centre, found.first, found.second), (1, 2.0, 2.0));
    let found = nearest(&[0.5, 1.5, 1.0], &[4.0, 4.0, 4.0], 1.0);
    assert_eq!((found.centre, found.first, found.second), (1, 2.0, 3.0));
    let alone = nearest(&[3.0], &[4.0], 1.0);
    assert_eq!((alone.centre, alone.first, alone.second), (0, 0.0, f64::INFINITY), "rounded below zero");
}

#[test]
fn records_are_kept_as_rows_if_a_fifth_of_their_values_is_there() {
    let of = |entries: u64| {
        // Ten records of ten features, of which the first has the others.
        let record = |i: u64| (0.0, (0..if i == 0 { 10 } else { entries }).map(|key| (key, 1.0)).collect());
        let records: Vec<Record> = (0..10).map(record).collect();
        Points::of_batches(build(&records, 4), Distance::Euclidean).unwrap().is_dense()
    };
    assert_eq!([of(10), of(2), of(1)], [true, true, false]);
}

#[test]
fn first_centres_are_records_that_count() {
    let weighted = |seed, weight: f32| {
        let mut batches = build(&blobs(seed, 400, (2, 3), true), 10);
        for batch in &mut batches {
            batch.weights = vec![weight; batch.record_count()];
        }
        batches
    };
    let (ignored, counted) = (weighted(1, 0.0), weighted(2, 1.0));
    let settings = "k=2 method=mini_batch batch_size=10 epochs=3";
    let alone = run(settings, vec![counted.clone()]).unwrap();
    let behind = run(settings, vec![[ignored, counted].concat()]).unwrap();
    let [alone, behind] = [alone, behind].map(|run| inertia(run.training.last().unwrap()));
    assert!((behind / alone - 1.0).abs() < 0.1, "{behind}, {alone} without the records of weight 0");
}

#[test]
fn a_silhouette_has_a_second_centre_at_some_distance() {
    let run = run("k=2", tasks(&blobs(1, 40, (2, 3), true), 1)).unwrap();
    let model = run.model.of::<Model>().unwrap();
    let silhouette = |first: f64, second: f64| {
        let MetricAccumulator::Named(mut parts) = accumulator() else { panic!("they have names") };
        add_to_metrics(model, &Nearest { centre: 0, first, second }, 2.0, &mut parts);
        assert_eq!(parts.metrics[0].sum, 2.0 * first, "the inertia");
        (parts.metrics[1].sum, parts.metrics[1].weight)
    };
    assert_eq!(silhouette(1.0, 16.0), (1.5, 2.0), "(4 - 1) / 4, twice");
    assert_eq!(silhouette(0.0, 0.0), (0.0, 0.0), "two equal centres");
    assert_eq!(silhouette(1.0, f64::INFINITY), (0.0, 0.0), "one centre");
}
