//! What happens at a line that does not follow its grammar.

use crate::{BadLine, Error};

/// Whether a bad line ends the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadLines {
    /// The first bad line is an error.
    #[default]
    Fail,
    /// Bad lines are left out, counted and shown; more than `limit` of them (in one task) are an error.
    Skip {
        /// How many may be left out.
        limit: u64,
    },
}

/// Bad lines whose text is kept.
pub const KEPT_MESSAGES: usize = 10;

#[derive(Debug)]
pub(crate) struct BadLineCounter {
    rule: BadLines,
    pub(crate) count: u64,
    pub(crate) first: Vec<String>,
}

impl BadLineCounter {
    pub(crate) fn new(rule: BadLines) -> Self {
        Self { rule, count: 0, first: Vec::new() }
    }

    pub(crate) fn add(&mut self, line: BadLine) -> Result<(), Error> {
        let BadLines::Skip { limit } = self.rule else {
            return Err(Error::BadLine(line));
        };
        self.count += 1;
        if self.first.len() < KEPT_MESSAGES {
            self.first.push(line.to_string());
        }
        if self.count > limit {
            return Err(Error::TooManyBadLines { count: self.count, limit, last: line });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u64) -> BadLine {
        BadLine { file: "f".into(), line: number, column: 1, expected: "a".into(), found: "b".into() }
    }

    #[test]
    fn the_first_bad_line_fails_by_default() {
        assert!(
            matches!(BadLineCounter::new(BadLines::Fail).add(line(3)), Err(Error::BadLine(l)) if l.line == 3)
        );
    }

    #[test]
    fn skipped_lines_are_counted_up_to_the_limit() {
        let mut counter = BadLineCounter::new(BadLines::Skip { limit: 12 });
        for number in 0..12 {
            counter.add(line(number)).unwrap();
        }
        assert_eq!((counter.count, counter.first.len()), (12, KEPT_MESSAGES));
        let error = counter.add(line(12)).unwrap_err().to_string();
        assert!(error.contains("13 bad lines, 12 allowed") && error.contains("f:12:1"), "{error}");
    }
}
