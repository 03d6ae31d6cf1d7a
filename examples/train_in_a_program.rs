//! A program that trains on its own data, follows the epochs, predicts, and saves the model for others.
//!
//! ```text
//! cargo run -p seraphim --example train_in_a_program
//! ```

#![allow(clippy::print_stdout, reason = "an example")]

use engine::{CsrArrays, Error, Flow, RecordAttributes, TrainedModel, Training};

/// Users (features 0 to 99) and items (features 100 to 149): everybody buys every third item, but another third than the
/// neighbours. No pair of a user and an item comes twice.
fn purchases(range: std::ops::Range<u64>) -> CsrArrays {
    let pairs = || range.clone().map(|i| (i % 100, (i / 100 + i) % 50));
    let labels = pairs().map(|(user, item)| f64::from((user + item) % 3 == 0));
    CsrArrays {
        offsets: (0..=range.end - range.start).map(|record| 2 * record).collect(),
        features: pairs().flat_map(|(user, item)| [user, 100 + item]).collect(),
        attributes: RecordAttributes { labels: labels.collect(), ..RecordAttributes::default() },
        ..CsrArrays::default()
    }
}

fn main() -> Result<(), Error> {
    let (training, test) = (purchases(0..4000).into(), purchases(4000..5000).into());
    let model = Training::new("fm")
        .set("k", 4)
        .set("epochs", 40)
        .set("learning_rate", 0.5)
        .set("init_deviation", 0.1)
        .option("seed", 7)
        .validate(&test)
        .on_epoch(|line| {
            let auc = line.validation.as_ref().and_then(|metrics| metrics.get("auc")).copied().unwrap_or(0.0);
            println!("epoch {}: validation AUC {auc:.4}", line.epoch + 1);
            if auc > 0.999 { Flow::Stop } else { Flow::Continue }
        })
        .run(&training)?;
    let scores = model.predict(&test)?;
    println!(
        "{} records, the first has the {} {:.4}",
        scores.values.len(),
        scores.columns[0],
        scores.values[0]
    );
    println!("accuracy {:.4}", model.evaluate(&test)?.metrics["accuracy"]);
    model.save("target/train_in_a_program", true)?;
    let loaded = TrainedModel::load("target/train_in_a_program")?;
    assert_eq!(loaded.predict(&test)?, scores, "the saved model predicts the same");
    Ok(())
}
