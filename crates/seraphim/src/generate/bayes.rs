//! The quality of the true model on a generated split: no other model can be better.

use engine::math::elementary::ln;
use serde::Serialize;

/// Metrics of the true probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bayes {
    /// Area under the ROC curve.
    pub auc: f64,
    /// Mean log loss.
    pub log_loss: f64,
    /// Share of label 1.
    pub positives: f64,
}

/// Computes the metrics from the true probability and the label of each record.
pub fn bayes(records: &mut [(f64, u8)]) -> Bayes {
    let n = records.len() as f64;
    let loss = |&(p, y): &(f64, u8)| if y == 1 { -ln(p) } else { -ln(1.0 - p) };
    let log_loss = records.iter().map(loss).sum::<f64>() / n;
    let positive_count = records.iter().filter(|r| r.1 == 1).count() as f64;
    // Probabilities of hashed weights are equal only by chance, so ranks without midranks are exact enough; the stable
    // order makes them reproducible.
    records.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ranks: f64 =
        (1u64..).zip(records.iter()).filter(|(_, r)| r.1 == 1).map(|(rank, _)| rank as f64).sum();
    let pairs = positive_count * (n - positive_count);
    let auc = (ranks - positive_count * (positive_count + 1.0) / 2.0) / pairs;
    Bayes { auc, log_loss, positives: positive_count / n }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_in_the_right_order_and_the_loss_are_counted() {
        let b = bayes(&mut [(0.9, 1), (0.1, 0), (0.8, 1)]);
        assert_eq!(b.auc, 1.0);
        assert!((b.positives - 2.0 / 3.0).abs() < 1e-15, "two of three, rounded once");
        let loss = -(0.9f64.ln() + 0.9f64.ln() + 0.8f64.ln()) / 3.0;
        assert!((b.log_loss - loss).abs() < 1e-15, "{} {loss}", b.log_loss);
        // Of the six pairs of a 1 and a 0, (.3, .6) and (.3, .4) are in the wrong order.
        let b = bayes(&mut [(0.3, 1), (0.6, 0), (0.2, 0), (0.4, 0), (0.7, 1)]);
        assert!((b.auc - 4.0 / 6.0).abs() < 1e-15, "{}", b.auc);
        assert_eq!(b.positives, 0.4);
    }
}
