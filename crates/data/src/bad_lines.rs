//! What happens at a line that does not follow its grammar.

use crate::{BadLine, Error};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether a bad line ends the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadLines {
    /// The first bad line is an error.
    #[default]
    Fail,
    /// Bad lines are left out, counted and shown; more than `limit` of them, over all tasks, are an error.
    Skip {
        /// How many may be left out.
        limit: u64,
    },
}

/// Bad lines whose text is kept.
pub const KEPT_MESSAGES: usize = 10;

/// The rule, and how many bad lines all readers of one source have met.
#[derive(Clone, Debug)]
pub(crate) struct BadLineLimit {
    rule: BadLines,
    met: Arc<AtomicU64>,
}

impl BadLineLimit {
    pub(crate) fn new(rule: BadLines) -> Self {
        Self { rule, met: Arc::default() }
    }
}

/// The bad lines of one reader.
#[derive(Debug)]
pub(crate) struct BadLineCounter {
    limit: BadLineLimit,
    pub(crate) count: u64,
    pub(crate) first: Vec<String>,
}

impl BadLineCounter {
    pub(crate) fn new(limit: BadLineLimit) -> Self {
        Self { limit, count: 0, first: Vec::new() }
    }

    pub(crate) fn add(&mut self, line: BadLine) -> Result<(), Error> {
        let BadLines::Skip { limit } = self.limit.rule else {
            return Err(Error::BadLine(line));
        };
        let met = self.limit.met.fetch_add(1, Ordering::Relaxed) + 1;
        self.count += 1;
        if self.first.len() < KEPT_MESSAGES {
            self.first.push(line.to_string());
        }
        if met > limit {
            return Err(Error::TooManyBadLines { count: met, limit, last: line });
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

    fn counter(limit: &BadLineLimit) -> BadLineCounter {
        BadLineCounter::new(limit.clone())
    }

    #[test]
    fn the_limit_holds_for_all_readers_together() {
        let limit = BadLineLimit::new(BadLines::Skip { limit: 2 });
        let (mut one, mut two) = (counter(&limit), counter(&limit));
        one.add(line(1)).unwrap();
        two.add(line(2)).unwrap();
        let error = one.add(line(3)).unwrap_err().to_string();
        assert!(error.contains("3 bad lines, 2 allowed"), "{error}");
        assert_eq!((one.count, two.count), (2, 1));
    }

    #[test]
    fn the_first_bad_line_fails_by_default() {
        assert!(
            matches!(counter(&BadLineLimit::new(BadLines::Fail)).add(line(3)), Err(Error::BadLine(l)) if l.line == 3)
        );
    }

    #[test]
    fn skipped_lines_are_counted_up_to_the_limit() {
        let mut counter = counter(&BadLineLimit::new(BadLines::Skip { limit: 12 }));
        for number in 0..12 {
            counter.add(line(number)).unwrap();
        }
        assert_eq!((counter.count, counter.first.len()), (12, KEPT_MESSAGES));
        let error = counter.add(line(12)).unwrap_err().to_string();
        assert!(error.contains("13 bad lines, 12 allowed") && error.contains("f:12:1"), "{error}");
    }
}
