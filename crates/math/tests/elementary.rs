//! The elementary functions against exact values, and their bits against those of every other machine.

use math::elementary::{digamma, exp, exp_m1, ln, ln_1p, ln_gamma, sigmoid};
use math::hash::combine;
use math::random::{Purpose, stream};

/// Name, function, error in units in the last place, absolute error.
type Row = (&'static str, fn(f64) -> f64, f64, f64);

const FUNCTIONS: [Row; 7] = [
    ("exp", exp, 1.0, 0.0),
    ("exp_m1", exp_m1, 2.0, 0.0),
    ("ln", ln, 1.0, 0.0),
    ("ln_1p", ln_1p, 1.0, 0.0),
    ("sigmoid", sigmoid, 2.0, 0.0),
    ("ln_gamma", ln_gamma, 4.0, 4e-16),
    ("digamma", digamma, 4.0, 1e-15),
];

#[test]
fn errors_are_within_their_bounds() {
    let mut worst = [0f64; FUNCTIONS.len()];
    let mut count = 0;
    for line in include_str!("exact_values.txt").lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |i: usize| f64::from_bits(u64::from_str_radix(words[i], 16).expect("bits of a double"));
        let (x, high, low) = (number(1), number(2), number(3));
        let row = FUNCTIONS.iter().position(|row| row.0 == words[0]).expect("a function");
        let (name, function, bound, absolute) = FUNCTIONS[row];
        let error = ((function(x) - high) - low).abs();
        let ulp = high.abs().next_up() - high.abs();
        if error > absolute {
            worst[row] = worst[row].max(error / ulp);
        }
        assert!(
            error <= absolute || error < bound * ulp,
            "{name}({x:e}) = {:e} not {high:e}: {} units",
            function(x),
            error / ulp
        );
        count += 1;
    }
    assert_eq!(count, 980);
    println!("largest errors: {:?}", FUNCTIONS.iter().map(|row| row.0).zip(worst).collect::<Vec<_>>());
}

/// The same on every machine: this test runs on the instructions of SSE2, AVX2 and AVX-512 and on aarch64.
#[test]
fn the_bits_are_those_of_every_machine() {
    let arguments: Vec<f64> = {
        let mut random = stream(1, Purpose::Test, 0, 0);
        (0..50_000)
            .map(|i| match i % 3 {
                0 => random.normal(),
                1 => random.normal() * 100.0,
                _ => f64::from_bits(random.next_u64()),
            })
            .collect()
    };
    let hashes = FUNCTIONS.map(|(_, function, ..)| {
        arguments.iter().fold(0, |hash, &x| {
            let value = function(x);
            combine(hash, if value.is_nan() { 1 } else { value.to_bits() })
        })
    });
    let expected = [
        "bd9ddff1d4541839",
        "2fd04fa3ba730fb6",
        "2d20e991faf173ac",
        "1de80d2a1ffb87f1",
        "ec4536e8610f2e73",
        "4409b38f31c5db27",
        "068af802f7a2172b",
    ];
    assert_eq!(hashes.map(|hash| format!("{hash:016x}")), expected);
}
