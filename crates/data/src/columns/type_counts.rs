//! What the first values of a column are.

use std::collections::HashSet;

use super::missing::is_missing;
use super::number_form::{FORMS, NumberForm};
use super::{ColumnDescription, NumberSample, ValueKind};
use crate::number::parse_f64;

/// Whether a field can be a value of a numeric column.
pub(crate) fn is_number(field: &[u8]) -> bool {
    is_missing(field) || parse_f64(field).is_some()
}

/// Values from which on a column can be seen to have one of its own for each record.
const IDENTIFIER_VALUES: u32 = 50;
/// The share of distinct values of such a column, in percent.
const IDENTIFIER_PERCENT: usize = 98;

/// Number of values that decide whether a column holds numbers, names or identifiers.
pub(crate) const SAMPLE_ROWS: usize = 1000;

/// Numbers of values of a column that are numbers and that are not. Missing values do not count.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypeCounts {
    numbers: u32,
    others: u32,
    /// The plain numbers, and with them the others as each of [`FORMS`] reads them.
    plain: NumberSample,
    formed: [NumberSample; FORMS.len()],
    /// The first value that is not a number.
    first_other: Option<String>,
    /// Which of the forms all other values have, by their positions in [`FORMS`].
    forms: Option<u16>,
    /// Whether all values are digits alone, and the first of several digits that begins with 0.
    has_only_digits: Option<bool>,
    first_code: Option<String>,
    /// How many other values begin with a digit.
    digit_led: u32,
    distinct_others: HashSet<Vec<u8>>,
}

impl TypeCounts {
    pub(crate) fn add(&mut self, field: &[u8]) {
        if is_missing(field) {
            return;
        }
        let has_only_digits = field.iter().all(u8::is_ascii_digit);
        self.has_only_digits = Some(self.has_only_digits.unwrap_or(true) && has_only_digits);
        if let Some(number) = parse_f64(field) {
            self.numbers += 1;
            self.plain.add(number);
            self.formed.iter_mut().for_each(|sample| sample.add(number));
            if has_only_digits && field.len() > 1 && field[0] == b'0' {
                self.first_code.get_or_insert_with(|| String::from_utf8_lossy(field).into_owned());
            }
            return;
        }
        self.others += 1;
        self.first_other.get_or_insert_with(|| String::from_utf8_lossy(field).into_owned());
        self.distinct_others.insert(field.to_vec());
        let digits = field.iter().position(u8::is_ascii_digit);
        self.digit_led += u32::from(digits.is_some_and(|at| at <= 1));
        // A form that one value does not have is not looked at again.
        let mut forms = self.forms.unwrap_or(u16::MAX);
        for (at, form) in FORMS.iter().enumerate() {
            if forms & (1 << at) == 0 {
                continue;
            }
            match form.parse(field) {
                Some(number) => self.formed[at].add(number),
                None => forms &= !(1 << at),
            }
        }
        self.forms = Some(forms & ((1 << FORMS.len()) - 1));
    }

    /// Whether all values are missing.
    pub(crate) fn is_empty(&self) -> bool {
        self.numbers + self.others == 0
    }

    /// Whether the column is read as numbers: most values are numbers, or all are missing.
    fn is_numeric(&self) -> bool {
        self.others == 0 || self.has_mostly_numbers()
    }

    /// Whether there are more numbers than other values.
    pub(crate) fn has_mostly_numbers(&self) -> bool {
        self.numbers > self.others
    }

    /// Returns the form of the numbers of a column that has other values than plain numbers. `delimiter` is that of the
    /// fields: `1,200` is 1.2 where the comma does not separate fields because it is the decimal mark, as in files of
    /// spreadsheets with semicolons.
    fn form(&self, delimiter: u8) -> Option<NumberForm> {
        let forms = self.forms.filter(|_| self.others > 0)?;
        let is_possible = |form: &NumberForm| {
            let at = FORMS.iter().position(|other| other == form).unwrap_or(0);
            forms & (1 << at) != 0 && (self.numbers == 0 || form.has_plain_numbers())
        };
        let mut possible = FORMS.into_iter().filter(is_possible);
        match (possible.next()?, possible.next()) {
            (NumberForm::Thousands, Some(NumberForm::DecimalComma)) if delimiter == b';' => {
                Some(NumberForm::DecimalComma)
            }
            (NumberForm::Thousands, Some(NumberForm::DecimalComma)) if delimiter != b',' => None,
            (form, _) => Some(form),
        }
    }

    /// Describes the column of these values.
    pub(crate) fn describe(&self, name: String, delimiter: u8) -> ColumnDescription {
        let form = self.form(delimiter);
        let code = self.first_code.as_ref().filter(|_| self.has_only_digits == Some(true));
        let is_number = code.is_none() && (form.is_some() || self.is_numeric());
        let kind = if is_number { ValueKind::Number } else { ValueKind::Text };
        let other = self.first_other.as_deref().unwrap_or_default();
        let told = match (form, code) {
            (Some(form), _) => Some(format!("'{name}' as {} (for example '{other}')", form.description())),
            (None, Some(code)) => Some(format!(
                "'{name}' as names, as zeros before numbers are those of codes (for example '{code}')"
            )),
            (None, None) => self.notice(&name),
        };
        let formed = form.and_then(|form| FORMS.iter().position(|other| *other == form));
        ColumnDescription {
            form: form.unwrap_or_default(),
            origin: formed.map_or(self.plain, |at| self.formed[at]).origin(),
            told,
            is_identifier: !is_number && self.is_identifier(),
            ..ColumnDescription::new(name, kind)
        }
    }

    /// Whether nearly every value is a word of its own.
    pub(crate) fn is_identifier(&self) -> bool {
        self.numbers == 0
            && self.others >= IDENTIFIER_VALUES
            && 100 * self.distinct_others.len() >= IDENTIFIER_PERCENT * self.others as usize
    }

    /// Makes a notice about how a column with both types, or with values that may be numbers, is read.
    fn notice(&self, column: &str) -> Option<String> {
        let all = self.numbers + self.others;
        let other = self.first_other.as_ref()?;
        if self.numbers == 0 {
            let is_told =
                self.digit_led == self.others && 2 * self.distinct_others.len() > self.others as usize;
            return is_told.then(|| {
                format!("'{column}' as names, though they begin with digits (for example '{other}'; write plain numbers if they are numbers)")
            });
        }
        Some(if self.is_numeric() {
            format!(
                "'{column}' as numbers ({} of the first {all} values are numbers, '{other}' is not)",
                self.numbers
            )
        } else {
            format!(
                "'{column}' as names ({} of the first {all} values are not numbers, for example '{other}')",
                self.others
            )
        })
    }
}

#[cfg(test)]
mod tests;
