//! Factorization of ratings by users and items: `cargo run --example own_steps -- train ratings --data ratings.csv --label
//! rating --model tastes`. Koren, Bell, Volinsky, "Matrix factorization techniques for recommender systems", Computer 42, 2009.

use algo::algorithm::{Algorithm, BySteps, Changes, Rows, Steps, Table, adagrad};
use algo::{DataFacts, DataNeeds, Epochs, Error, Output};
use data::{Batch, BatchSize, Shuffle};
use matrix::Initializer;
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

/// For each user and item its factors, and then its bias.
const FACTORS: usize = 0;

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

    fn needs(set: &RatingSettings) -> DataNeeds {
        let (epochs, batch_size) = (Epochs::Fixed(set.epochs), BatchSize::Fixed(256));
        let shuffle = Shuffle::Batches;
        DataNeeds { ids: &["user", "item"], scan: true, epochs, batch_size, shuffle, ..DataNeeds::default() }
    }

    fn new(set: &RatingSettings, facts: &DataFacts, before: Option<&Self>) -> Result<Self, Error> {
        let mean = before.map_or(facts.label_mean, |before| before.mean);
        Ok(Self { factors: set.factors as usize, mean })
    }

    fn tables(&self, set: Option<&RatingSettings>) -> Vec<Table> {
        let rate = set.map_or(0.0, |set| set.learning_rate);
        let first = Initializer::NormalOnFirstPush { deviation: 0.1 };
        vec![Table::rows("factors", self.factors + 1, adagrad(rate)).first(first)]
    }

    fn predict(&self, rows: &Rows<'_>, batch: &Batch, out: &mut Vec<f64>) {
        let last = self.factors;
        out.extend((0..batch.record_count()).map(|r| {
            let [user, item] = rows.ids(batch, r).map(|column| rows.row(FACTORS, column));
            let product: f64 = user[..last].iter().zip(item).map(|(user, item)| user * item).sum();
            self.mean + user[last] + item[last] + product
        }));
    }
}

impl Steps for Ratings {
    fn step(&self, set: &RatingSettings, rows: &Rows<'_>, batch: &Batch, changes: &mut Changes<'_>) -> f64 {
        let mut loss = 0.0;
        for (r, label) in batch.labels.iter().enumerate() {
            let (error, weight) = (changes.scores[r] - label, f64::from(batch.weight(r)));
            let [user, item] = rows.ids(batch, r);
            for (own, other) in [(user, item), (item, user)] {
                let slopes = rows.row(FACTORS, other)[..self.factors].iter().chain([&1.0]);
                let values = rows.row(FACTORS, own).iter().zip(slopes);
                for (change, (own, slope)) in changes.row(FACTORS, own).iter_mut().zip(values) {
                    *change += weight * (error * slope + set.l2 * own);
                }
            }
            loss += 0.5 * weight * error * error;
        }
        loss
    }
}

fn main() -> std::process::ExitCode {
    seraphim::cli::run_algorithm::<Ratings>()
}
