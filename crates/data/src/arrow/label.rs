//! Labels that are strings: numbers, or names of classes.

use std::collections::BTreeSet;

use arrow_array::ArrayRef;

use super::column::TextColumn;
use crate::Error;
use crate::format::missing::is_missing;
use crate::format::roles::{is_label_name, refuse_guess};
use crate::label::{CLASS_LIMIT, LabelRule};
use crate::number::parse_f64;

/// Fails when the label was guessed and its first values are not those of classes.
pub(crate) fn check_guess(file: &str, column: &str, first: &ArrayRef) -> Result<(), Error> {
    let texts = TextColumn::of(first);
    let values = (0..first.len()).filter_map(|r| texts.get(r)).collect();
    refuse_guess(file, column, is_label_name(column), &values, first.len())
}

/// Collects the values of a label column of strings.
#[derive(Default)]
pub(crate) struct LabelScan {
    /// Distinct values; at most [`CLASS_LIMIT`] + 1 of them are stored.
    names: BTreeSet<String>,
    /// The first file that has a value other than a number.
    file_of_names: Option<String>,
}

impl LabelScan {
    /// Adds some of the column of a file.
    pub(crate) fn add(&mut self, file: &str, column: &ArrayRef) {
        let texts = TextColumn::of(column);
        // A missing label is an error of its record.
        for text in (0..column.len()).filter_map(|r| texts.get(r)).filter(|text| !is_missing(text)) {
            if self.file_of_names.is_none() && parse_f64(text).is_none() {
                self.file_of_names = Some(file.to_owned());
            }
            let name = String::from_utf8_lossy(text);
            if self.names.len() <= CLASS_LIMIT && !self.names.contains(name.as_ref()) {
                self.names.insert(name.into_owned());
            }
        }
    }

    /// Returns the sorted names of the classes. The result is empty when all labels are numbers, unless
    /// `said_to_be_names`.
    pub(crate) fn finish(
        self,
        column: &str,
        rule: LabelRule,
        said_to_be_names: bool,
    ) -> Result<Vec<String>, Error> {
        if self.file_of_names.is_none() && !said_to_be_names {
            return Ok(Vec::new());
        }
        let reason = if rule == LabelRule::Real {
            let of = self.file_of_names.map_or_else(String::new, |file| format!(" of {file}"));
            format!(
                "column '{column}'{of} has names, but this algorithm needs numbers; choose another label column, or \
                 an algorithm for classes"
            )
        } else if self.names.len() > CLASS_LIMIT {
            format!("column '{column}' has more than {CLASS_LIMIT} different names; is it the label?")
        } else {
            return Ok(self.names.into_iter().collect());
        };
        Err(Error::BadOption { option: "label", reason })
    }
}
