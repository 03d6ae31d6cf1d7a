//! Records of the training data that are held out for validation.

use data::Schema;

use super::TrainJob;
use crate::error::Error;

/// A time from a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeLimit {
    /// As in the records of the data.
    pub(crate) time: f64,
    /// As it was written.
    text: String,
}

impl TimeLimit {
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(Self { time: data::parse_time(text.as_bytes())?, text: text.to_owned() })
    }
}

/// Which records are held out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Holdout<'a> {
    None,
    /// A share of them, drawn at random.
    Share(f64),
    /// Those of this time or later.
    From(&'a TimeLimit),
}

impl Holdout<'_> {
    pub(crate) fn is_some(self) -> bool {
        self != Self::None
    }

    /// The setting, for messages.
    pub(crate) fn setting(self) -> String {
        match self {
            Self::None => "validation_share=0".into(),
            Self::Share(share) => format!("validation_share={share}"),
            Self::From(limit) => format!("validate_from={}", limit.text),
        }
    }

    /// What to do when it holds out all records, or none of them.
    pub(crate) fn advice(self, all: bool) -> &'static str {
        match (self, all) {
            (Self::From(_), true) => "take a later time, or give --validate FILES",
            (Self::From(_), false) => "take an earlier time, or give --validate FILES",
            (_, true) => "take a smaller share, or give --validate FILES",
            (_, false) => "take a larger share, or give --validate FILES",
        }
    }
}

/// Fails when the data have columns, and none of them has the times that a hold-out needs. In other data each record has
/// to have one.
pub(crate) fn check_times(job: &TrainJob, schema: &Schema) -> Result<(), Error> {
    let needs_column = matches!(job.holdout(), Holdout::From(_)) && schema.time.is_none();
    if needs_column && !schema.columns.is_empty() {
        return Err(Error::InvalidRequest {
            what: "--validate-from needs the times of the records".into(),
            advice: "name their column with --time".into(),
        });
    }
    Ok(())
}

/// Fails when the settings of a job contradict each other.
pub(super) fn check(job: &TrainJob) -> Result<(), Error> {
    let options = &job.input.options;
    let refused =
        |what: &str, advice: &str| Err(Error::InvalidRequest { what: what.into(), advice: advice.into() });
    let needs = job.parameters.data_needs();
    match job.validate_from {
        Some(_) if !job.validate.is_empty() => {
            refused("--validate and --validate-from both name validation data", "leave one of them out")
        }
        Some(_) if needs.validation_share > 0.0 => {
            refused("validation_share and --validate-from both hold out records", "leave one of them out")
        }
        None if options.time.is_some() && !needs.uses_times => refused(
            "--time names a column, and nothing uses the times",
            "hold out the latest records with --validate-from TIME, or leave the column out with --skip-columns",
        ),
        _ => Ok(()),
    }
}
