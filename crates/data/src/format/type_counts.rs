//! What the first values of a column are.

use super::missing::is_missing;
use crate::number::parse_f64;

/// Numbers of values of a column that are numbers and that are not. Missing values do not count.
#[derive(Clone, Debug, Default)]
pub(super) struct TypeCounts {
    numbers: u32,
    others: u32,
    /// The first value that is not a number.
    first_other: Option<String>,
}

impl TypeCounts {
    pub(super) fn add(&mut self, field: &[u8]) {
        if is_missing(field) {
            return;
        }
        if parse_f64(field).is_some() {
            self.numbers += 1;
        } else {
            self.others += 1;
            self.first_other.get_or_insert_with(|| String::from_utf8_lossy(field).into_owned());
        }
    }

    /// Whether the column is read as numbers: most values are numbers, or all are missing.
    pub(super) fn is_numeric(&self) -> bool {
        self.others == 0 || self.has_mostly_numbers()
    }

    /// Whether there are more numbers than other values.
    pub(super) fn has_mostly_numbers(&self) -> bool {
        self.numbers > self.others
    }

    /// Makes a notice about how a column with both types is read.
    pub(super) fn notice(&self, column: &str) -> Option<String> {
        let all = self.numbers + self.others;
        let other = self.first_other.as_ref().filter(|_| self.numbers > 0)?;
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
mod tests {
    use super::*;

    fn counts(fields: &[&str]) -> TypeCounts {
        let mut counts = TypeCounts::default();
        for field in fields {
            counts.add(field.as_bytes());
        }
        counts
    }

    #[test]
    fn most_values_decide_the_type_of_a_column() {
        for (fields, is_numeric, has_numbers, notice) in [
            (&[][..], true, false, None),
            (&["", "NA"], true, false, None),
            (&["1", "", "2.5"], true, true, None),
            (&["a", "b"], false, false, None),
            (
                &["1", "2", "x"],
                true,
                true,
                Some("'c' as numbers (2 of the first 3 values are numbers, 'x' is not)"),
            ),
            (
                &["1", "x", "y"],
                false,
                false,
                Some("'c' as names (2 of the first 3 values are not numbers, for example 'x')"),
            ),
            (
                &["1", "x"],
                false,
                false,
                Some("'c' as names (1 of the first 2 values are not numbers, for example 'x')"),
            ),
        ] {
            let found = counts(fields);
            assert_eq!(
                (found.is_numeric(), found.has_mostly_numbers()),
                (is_numeric, has_numbers),
                "{fields:?}"
            );
            assert_eq!(found.notice("c").as_deref(), notice, "{fields:?}");
        }
    }
}
