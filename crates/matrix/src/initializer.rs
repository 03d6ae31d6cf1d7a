//! The initial values of rows.

use math::hash::named_key;
use math::random::{Purpose, stream};
use serde::{Deserialize, Serialize};

use crate::element::Element;

/// The initial values of rows. They are a function of the seed, the matrix and the row alone, so they do not depend on
/// where and when a row is created.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Initializer {
    /// 0.
    Zero,
    /// One value for all elements.
    Constant {
        /// A finite number.
        value: f64,
    },
    /// Uniform in `[low, high)`.
    Uniform {
        /// Lower bound, inclusive.
        low: f64,
        /// Upper bound, exclusive.
        high: f64,
    },
    /// Normal with mean 0.
    Normal {
        /// Standard deviation.
        deviation: f64,
    },
    /// Normal with mean 0 for the rows that were pushed; all others read as 0, so that a model does not learn from, and
    /// does not score with, random values of features that it has never seen. For sparse storage.
    NormalOnFirstPush {
        /// Standard deviation.
        deviation: f64,
    },
}

impl Initializer {
    /// Returns what is wrong with the settings: the actual and the expected value.
    pub(crate) fn fault(&self) -> Option<(String, &'static str)> {
        match *self {
            Initializer::Zero => None,
            Initializer::Constant { value } => {
                (!value.is_finite()).then(|| (format!("constant {value}"), "a finite value"))
            }
            Initializer::Uniform { low, high } => (!(low.is_finite() && high.is_finite() && low < high))
                .then(|| (format!("uniform from {low} to {high}"), "finite bounds, low < high")),
            Initializer::Normal { deviation } | Initializer::NormalOnFirstPush { deviation } => {
                (!(deviation >= 0.0 && deviation.is_finite()))
                    .then(|| (format!("normal with deviation {deviation}"), "a finite deviation >= 0"))
            }
        }
    }
}

/// An initializer with the seed and the hash of the name of its matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InitialValues {
    initializer: Initializer,
    seed: u64,
    matrix: u64,
}

impl InitialValues {
    pub(crate) fn new(initializer: Initializer, seed: u64, matrix: &str) -> Self {
        Self { initializer, seed, matrix: named_key(b"matrix", matrix.as_bytes()) }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.initializer == Initializer::Zero
    }

    /// Whether rows that were never pushed read as 0.
    pub(crate) fn reads_zero(&self) -> bool {
        matches!(self.initializer, Initializer::Zero | Initializer::NormalOnFirstPush { .. })
    }

    /// Writes the initial values of row `row`. By column, each element counts as a row with the number
    /// `row * columns + column`.
    pub(crate) fn fill<E: Element>(&self, row: u64, out: &mut [E]) {
        let mut random = stream(self.seed, Purpose::Initialize, self.matrix, row);
        for out in out {
            *out = E::from_f64(match self.initializer {
                Initializer::Zero => 0.0,
                Initializer::Constant { value } => value,
                Initializer::Uniform { low, high } => low + (high - low) * random.uniform(),
                Initializer::Normal { deviation } | Initializer::NormalOnFirstPush { deviation } => {
                    deviation * random.normal()
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_values_hang_on_seed_matrix_and_row_alone() {
        let fill = |seed, name, row| {
            let mut out = [0f32; 3];
            InitialValues::new(Initializer::Normal { deviation: 0.1 }, seed, name).fill(row, &mut out);
            out
        };
        assert_eq!(fill(1, "w", 5), fill(1, "w", 5));
        assert_ne!(fill(1, "w", 5), fill(2, "w", 5));
        assert_ne!(fill(1, "w", 5), fill(1, "v", 5));
        assert_ne!(fill(1, "w", 5), fill(1, "w", 6));
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        assert!(Initializer::Uniform { low: 1.0, high: 1.0 }.fault().is_some());
        assert!(Initializer::Normal { deviation: f64::NAN }.fault().is_some());
        assert!(Initializer::Normal { deviation: 0.0 }.fault().is_none());
    }
}
