//! Weights of records: in training, together with weights of classes, and in every metric.

use data::{Batch, BatchBuilder};
use matrix::{Consistency, MatrixId};

use super::HARNESS;
use super::harness::{clicks, f32s};
use crate::FAMILY;

/// The records of `batch` in groups and with labels from `label`; `times` gives how often each is repeated, and its
/// weight.
fn grouped(batch: &Batch, label: impl Fn(usize) -> f64, times: impl Fn(usize) -> (usize, f32)) -> Batch {
    let mut builder = BatchBuilder::new();
    for r in 0..batch.record_count() {
        let (count, weight) = times(r);
        for _ in 0..count {
            for i in batch.entries(r) {
                builder.push(batch.columns[batch.indices[i] as usize], 1.0);
            }
            builder.end_record(label(r), weight, Some(r as u64 / 10));
        }
    }
    let mut out = Batch::default();
    builder.finish(&mut out);
    out
}

#[test]
fn in_every_metric_a_record_of_weight_two_counts_as_two_and_one_of_weight_zero_not_at_all() {
    // Sums of 200 terms in f64, in another order.
    const TOLERANCE: f64 = 1e-12;
    let batch = clicks(3, 1, 200).remove(0);
    for row in FAMILY.algorithms {
        let label = |r: usize| match row.name {
            "softmax" => (r % 3) as f64,
            "linear" | "huber" => (r % 7) as f64 - 3.0,
            _ => batch.labels[r],
        };
        // The weights differ between labels and among features, so that no mean hides a missing weight.
        let weight = |r: usize| (r * r + 2 * usize::from(batch.labels[r] > 0.0)) % 4;
        let plain = grouped(&batch, label, |_| (1, 1.0));
        let run =
            HARNESS.train(row.name, "epochs=2", vec![vec![plain.clone()]], None, Consistency::Bsp).unwrap();
        let metrics = |data: Batch| run.saved_and_loaded(&[data]).1;
        let weighted = metrics(grouped(&batch, label, |r| (1, weight(r) as f32)));
        let repeated = metrics(grouped(&batch, label, |r| (weight(r), 1.0)));
        assert_eq!(weighted.keys().collect::<Vec<_>>(), repeated.keys().collect::<Vec<_>>(), "{}", row.name);
        let unweighted = metrics(plain);
        for (name, value) in &weighted {
            let (expected, other) = (repeated[name], unweighted[name]);
            assert!((value - expected).abs() < TOLERANCE, "{} {name}: {value}, not {expected}", row.name);
            assert!((value - other).abs() > 1e-6, "{} {name}: weights change nothing: {value}", row.name);
        }
    }
}

#[test]
fn weights_of_classes_multiply_those_of_records() {
    let with_weights = |positive: f32| {
        let mut batches = clicks(1, 6, 10);
        for batch in &mut batches {
            let weight =
                |(r, &label): (usize, &f64)| (1 + r % 3) as f32 * if label == 1.0 { positive } else { 1.0 };
            batch.weights = batch.labels.iter().enumerate().map(weight).collect();
        }
        batches
    };
    for optimizer in ["optimizer=sgd", "optimizer=lbfgs l2=1"] {
        let weights = |data: Vec<Batch>, settings: &str| {
            let run = HARNESS
                .train("lr", &format!("{optimizer} {settings}"), vec![data], None, Consistency::Bsp)
                .unwrap();
            f32s(&run.store, MatrixId(0))
        };
        assert_eq!(
            weights(with_weights(1.0), "class_weights=1:5"),
            weights(with_weights(5.0), ""),
            "{optimizer}"
        );
    }
}
