//! Training on one task equals a plain loop, to the bit: from batches over gradients to the push rule.

use data::Batch;
use math::elementary::sigmoid;
use matrix::{Consistency, MatrixId, OwnedValues};

use super::HARNESS;
use super::harness::{Run, clicks};

const DIMENSIONS: usize = 64;
/// A weight and the optimizer slots of its rule.
type Row = [f32; 4];

/// Trains on dense arrays with plain sums; the gradients of a batch are merged. `rule(row, g, is_intercept)` changes a
/// row. Returns the weights, then the intercept.
fn serial_twin(data: &[Batch], epochs: usize, rule: impl Fn(&mut Row, f32, bool)) -> Vec<f32> {
    let mut rows = [Row::default(); DIMENSIONS + 1];
    for batch in (0..epochs).flat_map(|_| data) {
        let mut gradient = [0f64; DIMENSIONS + 1];
        let mut touched = [false; DIMENSIONS + 1];
        for r in 0..batch.record_count() {
            let keys = || batch.entries(r).map(|i| batch.columns[batch.indices[i] as usize] as usize);
            let score = keys().map(|j| f64::from(rows[j][0])).sum::<f64>() + f64::from(rows[DIMENSIONS][0]);
            let slope = sigmoid(score) - batch.labels[r];
            for j in keys().chain([DIMENSIONS]) {
                gradient[j] += slope;
                touched[j] = true;
            }
        }
        for j in (0..=DIMENSIONS).filter(|&j| touched[j]) {
            rule(&mut rows[j], gradient[j] as f32, j == DIMENSIONS);
        }
    }
    rows.map(|row| row[0]).to_vec()
}

/// `McMahan` et al. 2013, algorithm 1.
fn ftrl([w, z, n, _]: &mut Row, g: f32, alpha: f32, beta: f32, l1: f32, l2: f32) {
    let sigma = ((*n + g * g).sqrt() - n.sqrt()) / alpha;
    *z += g - sigma * *w;
    *n += g * g;
    let shrunk = *z - z.signum() * l1;
    let denominator = (beta + n.sqrt()) / alpha + l2;
    *w = if z.abs() <= l1 { 0.0 } else { -shrunk / denominator };
}

/// Tieleman and Hinton 2012, lecture 6.5.
fn rmsprop([w, n, ..]: &mut Row, g: f32, rate: f32, decay: f32) {
    *n = decay * *n + (1.0 - decay) * g * g;
    *w -= rate / (n.sqrt() + 1e-6) * g;
}

/// Kingma and Ba 2015, algorithm 1, with one count of steps per row.
fn adam([w, m, v, t]: &mut Row, g: f32, rate: f32, beta1: f32, beta2: f32) {
    *t += 1.0;
    // The powers are products in f64; only the correction is rounded to f32.
    let correction = |beta: f64| (1.0 - (0..*t as u32).map(|_| beta).product::<f64>()) as f32;
    *m = beta1 * *m + (1.0 - beta1) * g;
    *v = beta2 * *v + (1.0 - beta2) * g * g;
    *w -= rate / ((*v / correction(0.8)).sqrt() + 1e-6) * (*m / correction(0.5));
}

/// Zeiler 2012, algorithm 1.
fn adadelta([w, a, d, _]: &mut Row, g: f32, decay: f32, epsilon: f32) {
    *a = decay * *a + (1.0 - decay) * g * g;
    let change = (*d + epsilon).sqrt() / (*a + epsilon).sqrt() * g;
    *d = decay * *d + (1.0 - decay) * change * change;
    *w -= change;
}

/// Checks that every weight and the intercept of a run equal those of the twin.
fn assert_equal(run: &Run, twin: &[f32], what: &str) {
    let exported = run.store.export(MatrixId(0)).unwrap();
    let OwnedValues::F32(values) = exported.values else { panic!("weights are f32") };
    for (&key, value) in exported.keys.iter().zip(values) {
        assert_eq!(value.to_bits(), twin[key as usize].to_bits(), "weight {key}, {what}");
    }
    let OwnedValues::F32(bias) = run.store.export(MatrixId(1)).unwrap().values else { panic!() };
    assert_eq!(bias, [twin[DIMENSIONS]], "{what}");
}

#[test]
fn training_equals_the_serial_twin_to_the_bit() {
    let data = clicks(1, 40, 25);
    for settings in ["epochs=1 shuffle=none", "epochs=3 shuffle=none l1=0.5 l2=2 learning_rate=0.3 beta=0.5"]
    {
        let (epochs, [alpha, beta, l1, l2]) =
            if settings.contains("l1") { (3, [0.3, 0.5, 0.5, 2.0]) } else { (1, [0.1, 1.0, 0.0, 0.0]) };
        let run = HARNESS.train("lr", settings, vec![data.clone()], None, Consistency::Bsp).unwrap();
        let twin = serial_twin(&data, epochs, |row, g, is_intercept| {
            let (l1, l2) = if is_intercept { (0.0, 0.0) } else { (l1, l2) };
            ftrl(row, g, alpha, beta, l1, l2);
        });
        assert_equal(&run, &twin, settings);
    }
}

/// Compares after every number of steps from 1 on, and after more passes.
fn every_step_equals(settings: &str, rule: impl Fn(&mut Row, f32, bool)) {
    let data = clicks(1, 20, 25);
    for (step_count, epochs) in (1..=data.len()).map(|count| (count, 1)).chain([(data.len(), 3)]) {
        let settings = format!("{settings} epochs={epochs} shuffle=none");
        let steps = &data[..step_count];
        let run = HARNESS.train("lr", &settings, vec![steps.to_vec()], None, Consistency::Bsp).unwrap();
        assert_equal(&run, &serial_twin(steps, epochs, &rule), &format!("{step_count} steps, {settings}"));
    }
}

#[test]
fn every_step_of_rmsprop_equals_the_serial_twin() {
    let settings = "optimizer=rmsprop learning_rate=0.03 decay=0.7";
    every_step_equals(settings, |row, g, _| rmsprop(row, g, 0.03, 0.7));
}

#[test]
fn every_step_of_adam_equals_the_serial_twin() {
    let settings = "optimizer=adam learning_rate=0.03 beta1=0.5 beta2=0.8";
    every_step_equals(settings, |row, g, _| adam(row, g, 0.03, 0.5, 0.8));
}

#[test]
fn every_step_of_adadelta_equals_the_serial_twin() {
    let settings = "optimizer=adadelta decay=0.7 epsilon=1e-4";
    every_step_equals(settings, |row, g, _| adadelta(row, g, 0.7, 1e-4));
}
