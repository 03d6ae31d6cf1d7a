//! Factorization of ratings by users and items: `cargo run --example own_steps -- train ratings --data ratings.csv --label
//! rating --model tastes`. Koren, Bell, Volinsky, "Matrix factorization techniques for recommender systems", Computer 42, 2009.

use algo::algorithm::{Algorithm, BySteps, Changes, Record, Steps, Table, adagrad};
use algo::{DataFacts, Epochs, Error, Needs, Output};
use data::{BatchSize, Shuffle};
use serde::{Deserialize, Serialize};

algo::settings! {
    struct RatingSettings {
        /// Numbers of the taste of a user and of the character of an item
        factors: u64 = 16, 1 to 1000;
        /// Passes over the ratings
        epochs: u64 = 20, 1 to 100_000;
        /// Step size of AdaGrad
        learning_rate: f64 = 0.1, 1e-6 to 10.0;
        /// Penalty on the squares of all numbers, for each rating
        l2: f64 = 0.1, 0.0 to 1000.0;
    }
}

/// The tables of the factors and the biases of users and items.
const FACTORS: usize = 0;
const BIASES: usize = 1;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ratings {
    factors: usize,
    mean: f64,
}

impl Algorithm for Ratings {
    const NAME: &'static str = "ratings";
    const TITLE: &'static str = "Factorization of ratings by users and items";
    const OUTPUT: Output = Output::Value;
    type Settings = RatingSettings;
    type Loop = BySteps;

    fn needs(set: &RatingSettings) -> Needs {
        let (epochs, batch_size, shuffle) =
            (Epochs::Fixed(set.epochs), BatchSize::Fixed(256), Shuffle::Batches);
        Needs { ids: &["user", "item"], scan: true, epochs, batch_size, shuffle, ..Needs::default() }
    }

    fn new(set: &RatingSettings, facts: &DataFacts, before: Option<&Self>) -> Result<Self, Error> {
        let mean = before.map_or(facts.label_mean, |before| before.mean);
        Ok(Self { factors: set.factors as usize, mean })
    }

    fn tables(&self, set: Option<&RatingSettings>) -> Vec<Table> {
        let rule = adagrad(set.map_or(0.0, |set| set.learning_rate));
        let factors = Table::rows("factors", self.factors, rule).random(0.1);
        vec![factors, Table::rows("biases", 1, rule)]
    }

    fn predict(&self, record: &Record<'_>, out: &mut Vec<f64>) {
        let [user, item] = record.ids();
        let factors = record.row(FACTORS, user).iter().zip(record.row(FACTORS, item));
        let biases = record.row(BIASES, user)[0] + record.row(BIASES, item)[0];
        out.push(self.mean + biases + factors.map(|(user, item)| user * item).sum::<f64>());
    }
}

impl Steps for Ratings {
    fn step(&self, set: &RatingSettings, record: &Record<'_>, changes: &mut Changes<'_>) -> f64 {
        let ([user, item], error) = (record.ids(), record.scores[0] - record.label());
        for (own, other) in [(user, item), (item, user)] {
            for (table, slopes) in [(FACTORS, record.row(FACTORS, other)), (BIASES, &[1.0])] {
                changes.add(table, own, error, slopes);
                changes.add(table, own, set.l2, record.row(table, own));
            }
        }
        0.5 * error * error
    }
}

fn main() -> std::process::ExitCode {
    seraphim::cli::run_algorithm::<Ratings>()
}
