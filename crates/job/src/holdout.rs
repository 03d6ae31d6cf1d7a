//! Records of the training data that are held out for validation.

use data::Schema;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// A time from a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeLimit {
    /// As in the records of the data.
    pub time: f64,
    /// As it was written.
    text: String,
}

impl TimeLimit {
    pub fn parse(text: &str) -> Option<Self> {
        Some(Self { time: data::parse_time(text.as_bytes())?, text: text.to_owned() })
    }

    /// Says in which unit it is compared with the times of the records.
    fn unit(&self) -> String {
        if self.text.trim().parse::<f64>().is_ok() {
            return "The setting is a number: it is compared with numbers as they are, and with dates in seconds since \
                    1970. For a column of dates, give a date"
                .into();
        }
        format!(
            "The setting is a date: it is compared as {} seconds since 1970. For a column of numbers in another unit, such \
             as years, days or milliseconds, give a number in this unit",
            self.time
        )
    }
}

/// Which records are held out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Holdout<'a> {
    None,
    /// A share of them, drawn at random.
    Share(f64),
    /// Those of this time or later.
    From(&'a TimeLimit),
}

impl Holdout<'_> {
    pub fn is_some(self) -> bool {
        self != Self::None
    }

    /// The setting, for messages.
    pub fn setting(self) -> String {
        match self {
            Self::None => "validation_share=0".into(),
            Self::Share(share) => format!("validation_share={share}"),
            Self::From(limit) => format!("validate_from={}", limit.text),
        }
    }

    /// What to do when it holds out all records, or none of them.
    pub fn advice(self, all: bool) -> String {
        match self {
            Self::From(limit) => {
                let direction = if all { "a later" } else { "an earlier" };
                format!("take {direction} time, or give --validate FILES. {}", limit.unit())
            }
            Self::None | Self::Share(_) => {
                format!("take a {} share, or give --validate FILES", if all { "smaller" } else { "larger" })
            }
        }
    }
}

/// Fails when the data have columns, and none of them has the times that a hold-out needs. In other data each record has
/// to have one.
pub fn check_times(holdout: Holdout<'_>, schema: &Schema) -> Result<(), Error> {
    let needs_column = matches!(holdout, Holdout::From(_)) && schema.time.is_none();
    if needs_column && !schema.columns.is_empty() {
        return Err(Error::InvalidRequest {
            what: "--validate-from needs the times of the records".into(),
            advice: "name their column with --time".into(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_divides_nothing_is_told_with_its_unit() {
        let advice = |text: &str| Holdout::From(&TimeLimit::parse(text).unwrap()).advice(false);
        let date = advice("2020-01-01");
        assert!(date.contains("an earlier time") && date.contains("1577836800 seconds since 1970"), "{date}");
        let number = advice("2020");
        assert!(number.contains("is a number") && number.contains("give a date"), "{number}");
        assert!(!Holdout::Share(0.5).advice(true).contains("1970"));
    }
}
