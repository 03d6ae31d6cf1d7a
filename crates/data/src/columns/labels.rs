//! Labels that are strings: numbers, or names of classes.

use std::collections::BTreeSet;

use super::missing::is_missing;
use crate::Error;
use crate::label::{CLASS_LIMIT, LabelRule};
use crate::number::parse_f64;
use crate::options::FormatOptions;

/// Collects the values of a label column of strings. Where there are names, words for missing values are
/// names, too. Among numbers they are errors of their records, as an empty label is everywhere.
pub(crate) struct LabelScan<'a> {
    column: &'a str,
    rule: LabelRule,
    /// Distinct values.
    names: BTreeSet<Vec<u8>>,
    /// Whether one of them is not a number, or the settings say that all are names.
    has_names: bool,
}

impl<'a> LabelScan<'a> {
    /// Begins to collect. `file_of_names` is a file that is known to have names.
    pub(crate) fn new(
        column: &'a str,
        options: &FormatOptions,
        file_of_names: Option<&str>,
    ) -> Result<Self, Error> {
        let mut scan = Self {
            column,
            rule: options.label_rule,
            names: BTreeSet::new(),
            has_names: options.text_columns.iter().any(|name| name == column),
        };
        file_of_names.map_or(Ok(()), |file| scan.set_names(file))?;
        Ok(scan)
    }

    fn set_names(&mut self, file: &str) -> Result<(), Error> {
        self.has_names = true;
        if !self.rule.is_real() {
            return Ok(());
        }
        let reason = format!(
            "column '{}' of {file} has names, but this algorithm needs numbers; choose another label column, or an \
             algorithm for classes",
            self.column
        );
        Err(Error::BadOption { option: "label", reason })
    }

    /// Adds a label of a file.
    pub(crate) fn add(&mut self, file: &str, label: &[u8]) -> Result<(), Error> {
        let label = label.trim_ascii();
        if label.is_empty() || self.names.contains(label) {
            return Ok(());
        }
        if !self.has_names && parse_f64(label).is_none() && !is_missing(label) {
            self.set_names(file)?;
        }
        // Numbers may be as many as they like.
        if self.names.len() <= CLASS_LIMIT {
            self.names.insert(label.to_owned());
        }
        self.check_count()
    }

    fn check_count(&self) -> Result<(), Error> {
        if !self.has_names || self.names.len() <= CLASS_LIMIT {
            return Ok(());
        }
        let reason =
            format!("column '{}' has more than {CLASS_LIMIT} different names; is it the label?", self.column);
        Err(Error::BadOption { option: "label", reason })
    }

    /// Returns the sorted names of the classes; none when all labels are numbers.
    pub(crate) fn finish(self) -> Result<Vec<String>, Error> {
        if !self.has_names {
            return Ok(Vec::new());
        }
        if self.rule.is_real() {
            let reason = format!(
                "column '{}' has names, but this algorithm needs numbers; choose another label column, or an algorithm \
                 for classes",
                self.column
            );
            return Err(Error::BadOption { option: "label", reason });
        }
        Ok(self.names.into_iter().map(|name| String::from_utf8_lossy(&name).into_owned()).collect())
    }
}
