//! The losses of batches, which are vector instructions, have the bits of every other machine: `cargo xtask bits` runs
//! this test on the instructions of several.

use algo::loss::{Loss, sigmoid_all, softmax};
use math::hash::combine;
use math::random::{Purpose, stream};

fn hash(values: &[f64]) -> String {
    format!("{:016x}", values.iter().fold(0, |hash, value| combine(hash, value.to_bits())))
}

#[test]
fn losses_and_slopes_have_the_bits_of_every_machine() {
    let mut random = stream(1, Purpose::Test, 0, 0);
    let scores: Vec<f64> = (0..50_003).map(|i| random.normal() * f64::from(1 + i % 40)).collect();
    let labels: Vec<f64> = scores.iter().map(|_| random.below(2) as f64).collect();
    let (mut values, mut slopes) = (vec![0.0; scores.len()], vec![0.0; scores.len()]);
    Loss::Logistic.values_and_slopes(&scores, &labels, &mut values, &mut slopes);
    for (r, (&score, &label)) in scores.iter().zip(&labels).enumerate() {
        assert_eq!((values[r], slopes[r]), Loss::Logistic.value_and_slope(score, label), "one by one");
    }
    let mut probabilities = scores.clone();
    sigmoid_all(&mut probabilities);
    let mut classes = scores.clone();
    let losses: Vec<f64> = classes.chunks_exact_mut(3).map(|scores| softmax(scores, 1)).collect();
    let found = [&values, &slopes, &probabilities, &classes, &losses].map(|values| hash(values));
    let expected =
        ["0a403fc0f7c85b9d", "c0aec9f29423667a", "d0456b98744454d7", "7f8ae039d52166f3", "694f99fd8bff89ea"];
    assert_eq!(found, expected);
}
