//! The objectives of LightGBM: how scores become predictions.

use crate::error::Error;
use crate::loss::Loss;

/// Objectives whose predictions are the scores.
const PLAIN: [&str; 9] = [
    "regression",
    "regression_l1",
    "huber",
    "fair",
    "quantile",
    "mape",
    "lambdarank",
    "rank_xendcg",
    "custom",
];

/// The value of the key `objective`.
pub(super) fn line(loss: Loss, class_count: usize) -> String {
    match loss {
        Loss::Logistic => "binary sigmoid:1".to_owned(),
        Loss::Softmax => format!("multiclass num_class:{class_count}"),
        _ => "regression".to_owned(),
    }
}

/// The loss of an objective, and the factor of its scores.
pub(super) fn parse(line: &str) -> Result<(Loss, f64), Error> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or("custom");
    let mut factor = 1.0;
    for word in words {
        match word.split_once(':') {
            Some(("sigmoid", number)) if name == "binary" => {
                factor = number
                    .parse()
                    .ok()
                    .filter(|factor: &f64| factor.is_finite())
                    .ok_or_else(|| unknown(line))?;
            }
            Some(("num_class", _)) if name == "multiclass" => {}
            _ if ["lambdarank", "rank_xendcg", "quantile", "huber", "fair"].contains(&name) => {}
            _ => return Err(unknown(line)),
        }
    }
    match name {
        "binary" | "cross_entropy" => Ok((Loss::Logistic, factor)),
        "multiclass" => Ok((Loss::Softmax, factor)),
        _ if PLAIN.contains(&name) => Ok((Loss::Squared, factor)),
        _ => Err(unknown(line)),
    }
}

fn unknown(line: &str) -> Error {
    let reason = format!(
        "objective={line}: this objective is not supported; known ones are binary, multiclass, cross_entropy, {}",
        PLAIN.join(", ")
    );
    Error::UnsuitableData { reason }
}
