//! Seeded random streams. Every random number in Seraphim comes from a named stream, so that the same seed gives the
//! same bytes.

use crate::elementary::{cos, ln};
use crate::hash::{combine, mix64};

/// What a stream is for. The number is part of the stream's identity and is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Order of batches and records in an epoch.
    Shuffle = 1,
    /// Initial values of sparse and dense rows.
    Initialize = 2,
    /// Choice of the validation records.
    Validation = 3,
    /// Generation of synthetic data.
    Generate = 4,
    Test = 5,
    /// Choice of the first centres of clusters.
    Seeding = 6,
    /// The records and the columns that a tree sees.
    Sample = 7,
    /// Rounding of gradients to few bits.
    Rounding = 8,
    /// The topics of tokens.
    Topics = 11,
}

/// A stream of random numbers: splitmix64 (OOPSLA 2014) from a mixed start. It has 8 bytes of state, so that a
/// checkpoint can store it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RandomStream {
    state: u64,
}

/// Returns the stream of `purpose` for `task` in `epoch`, under `seed`.
pub fn stream(seed: u64, purpose: Purpose, task: u64, epoch: u64) -> RandomStream {
    let mut state = mix64(seed);
    for part in [purpose as u64, task, epoch] {
        state = combine(state, part);
    }
    RandomStream { state }
}

/// Draws with a name: the same for a record, a node or a token wherever it is, and whatever was drawn before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedDraws {
    state: u64,
}

impl NamedDraws {
    /// The draws of `purpose` in `round` (an epoch, a sweep, a tree), under `seed`.
    pub fn new(seed: u64, purpose: Purpose, round: u64) -> Self {
        Self { state: stream(seed, purpose, u64::MAX, round).state }
    }

    /// The stream of this name.
    #[inline]
    pub fn of(self, name: u64) -> RandomStream {
        RandomStream { state: combine(self.state, name) }
    }
}

impl RandomStream {
    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let out = mix64(self.state);
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        out
    }

    /// Uniform in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `0..bound` without bias (Lemire, "Fast random integer generation in an interval", 2019).
    ///
    /// # Panics
    /// When `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "an empty range has no member");
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(bound);
            if wide as u64 >= threshold {
                return (wide >> 64) as u64;
            }
        }
    }

    /// Standard normal (Box and Muller, 1958). The sine half is not used, so that every draw takes exactly two numbers.
    pub fn normal(&mut self) -> f64 {
        let u = self.uniform();
        let v = self.uniform();
        (-2.0 * ln(1.0 - u)).sqrt() * cos(std::f64::consts::TAU * v)
    }

    /// Permutes `items` (Fisher and Yates, Durstenfeld's form).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_in_every_part_of_their_name_and_repeat() {
        let first = |mut s: RandomStream| s.next_u64();
        let base = first(stream(1, Purpose::Test, 0, 0));
        assert_eq!(base, first(stream(1, Purpose::Test, 0, 0)));
        for other in [
            stream(2, Purpose::Test, 0, 0),
            stream(1, Purpose::Shuffle, 0, 0),
            stream(1, Purpose::Test, 1, 0),
            stream(1, Purpose::Test, 0, 1),
        ] {
            assert_ne!(base, first(other));
        }
    }

    #[test]
    fn draws_depend_on_their_name_alone() {
        let draws = NamedDraws::new(1, Purpose::Test, 3);
        let all: Vec<u64> = (0..1000).map(|name| draws.of(name).next_u64()).collect();
        assert_eq!(draws.of(500).next_u64(), all[500]);
        assert_ne!(NamedDraws::new(1, Purpose::Test, 4).of(500).next_u64(), all[500]);
        let mean = all.iter().map(|&bits| bits as f64 / 2f64.powi(64)).sum::<f64>() / 1000.0;
        // Five standard errors.
        assert!((mean - 0.5).abs() < 5.0 * (1.0 / 12_000f64).sqrt(), "{mean}");
    }

    #[test]
    fn normal_has_mean_zero_and_variance_one() {
        let mut s = stream(7, Purpose::Test, 0, 0);
        let n = 100_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n {
            let x = s.normal();
            sum += x;
            squares += x * x;
        }
        // Five standard errors: 1/sqrt(n) for the mean, sqrt(2/n) for the variance.
        assert!((sum / n as f64).abs() < 5.0 / (n as f64).sqrt());
        assert!((squares / n as f64 - 1.0).abs() < 5.0 * (2.0 / n as f64).sqrt());
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut s = stream(3, Purpose::Test, 0, 0);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[s.below(6) as usize] += 1;
        }
        // The expected count is 10,000 and its standard deviation about 91; the bounds are five deviations away.
        assert!(counts.iter().all(|&c| (9_540..10_460).contains(&c)), "{counts:?}");
    }

    #[test]
    fn a_shuffle_is_a_permutation() {
        let mut items: Vec<u32> = (0..1000).collect();
        stream(9, Purpose::Test, 0, 0).shuffle(&mut items);
        assert!(items.iter().enumerate().any(|(i, &x)| i as u32 != x));
        items.sort_unstable();
        assert_eq!(items, (0..1000).collect::<Vec<_>>());
    }
}
