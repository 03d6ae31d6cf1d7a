//! The result of `predict`: how many records were scored, and what the user should know of them.

use job::PredictJob;
use serde::{Deserialize, Serialize};

use crate::coverage::KnownFeatures;
use crate::totals::Totals;

/// The result of `predict`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Prediction {
    /// Number of scored records.
    pub records: u64,
    /// Path of the scores.
    pub output: String,
    /// Names of the output columns.
    pub columns: Vec<String>,
    /// The label whose probability or distance the score is; none for models without such a label.
    pub positive_label: Option<String>,
    /// Number of bad lines that were skipped.
    pub bad_lines: u64,
    /// Notices for the user.
    pub notices: Vec<String>,
}

/// What is known of a prediction before its first record.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PredictionFacts {
    pub columns: Vec<String>,
    pub positive_label: Option<String>,
    /// Notices about the input.
    pub notices: Vec<String>,
    pub known: KnownFeatures,
}

impl PredictionFacts {
    /// The result of the command.
    pub fn prediction(self, job: &PredictJob, totals: &Totals) -> Prediction {
        Prediction {
            records: totals.records,
            output: job.output.display().to_string(),
            columns: self.columns,
            positive_label: self.positive_label,
            bad_lines: totals.bad_lines,
            notices: self.notices.into_iter().chain(totals.notices_of_scores(&self.known)).collect(),
        }
    }
}
