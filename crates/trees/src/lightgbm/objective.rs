//! The objectives of LightGBM: how scores become predictions.

use super::super::objective::Objective;
use algo::error::Error;

/// Names of objectives that are read.
const KNOWN: &str = "binary, cross_entropy, multiclass, regression, regression_l1, huber, fair, mape, quantile, poisson, gamma, \
                     tweedie, lambdarank, rank_xendcg, custom";

/// The value of the key `objective`.
pub(super) fn line(objective: Objective, class_count: usize) -> String {
    match objective {
        Objective::Logistic { .. } => "binary sigmoid:1".to_owned(),
        Objective::Softmax => format!("multiclass num_class:{class_count}"),
        Objective::Squared => "regression".to_owned(),
        Objective::Absolute => "regression_l1".to_owned(),
        Objective::Huber { .. } => "huber".to_owned(),
        Objective::Quantile { alpha } => format!("quantile alpha:{alpha}"),
        Objective::Poisson { .. } => "poisson".to_owned(),
        Objective::Gamma => "gamma".to_owned(),
        Objective::Tweedie { .. } => "tweedie".to_owned(),
        Objective::LambdaRank { .. } => "lambdarank".to_owned(),
    }
}

/// The objective of this text, and the factor of its scores.
pub(super) fn parse(line: &str) -> Result<(Objective, f64), Error> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or("custom");
    let (mut factor, mut alpha) = (1.0, 0.9);
    for word in words {
        let (key, text) = word.split_once(':').unwrap_or((word, ""));
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        match (name, key, number) {
            ("binary", "sigmoid", Some(number)) => factor = number,
            ("quantile", "alpha", Some(number)) => alpha = number,
            ("multiclass", "num_class", Some(_)) => {}
            _ => return Err(unknown(line)),
        }
    }
    let objective = match name {
        "binary" | "cross_entropy" => Objective::Logistic { positive_weight: 1.0 },
        "multiclass" => Objective::Softmax,
        // What else is known of them matters to training only.
        "regression" | "huber" | "fair" | "mape" | "custom" => Objective::Squared,
        "regression_l1" => Objective::Absolute,
        "quantile" => Objective::Quantile { alpha },
        "poisson" => Objective::Poisson { max_delta_step: 0.7 },
        "gamma" => Objective::Gamma,
        "tweedie" => Objective::Tweedie { power: 1.5 },
        "lambdarank" | "rank_xendcg" => Objective::LambdaRank { truncation: 30 },
        _ => return Err(unknown(line)),
    };
    Ok((objective, factor))
}

fn unknown(line: &str) -> Error {
    let reason = format!("objective={line}: this objective is not supported; known ones are {KNOWN}");
    Error::UnsuitableData { reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_read_as_they_are_written() {
        for objective in [
            Objective::Logistic { positive_weight: 1.0 },
            Objective::Softmax,
            Objective::Squared,
            Objective::Absolute,
            Objective::Quantile { alpha: 0.25 },
            Objective::Poisson { max_delta_step: 0.7 },
            Objective::Gamma,
            Objective::Tweedie { power: 1.5 },
            Objective::LambdaRank { truncation: 30 },
        ] {
            assert_eq!(parse(&line(objective, 3)).unwrap(), (objective, 1.0));
        }
        assert_eq!(parse(&line(Objective::Huber { delta: 2.0 }, 1)).unwrap().0, Objective::Squared);
    }
}
