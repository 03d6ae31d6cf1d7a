//! The policy for lines that do not follow their grammar.

use crate::{BadLine, Error};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whether a bad line ends the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum BadLinePolicy {
    /// The first bad line is an error.
    #[default]
    Fail,
    /// Bad lines are skipped, counted and reported; more than `limit` of them, over all tasks, are an error.
    Skip { limit: u64 },
}

/// Number of bad lines whose text is stored.
pub const MESSAGE_LIMIT: usize = 10;

/// The bad lines of several readers.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BadLineTotal {
    pub count: u64,
    /// The first of them, with its position; it comes from the first reader that has one.
    pub first: Option<String>,
}

impl BadLineTotal {
    /// Adds the bad lines of readers that come later.
    pub fn add(&mut self, later: &Self) {
        self.count += later.count;
        if self.first.is_none() {
            self.first.clone_from(&later.first);
        }
    }
}

impl BadLinePolicy {
    /// Fails when all tasks together have more bad lines than allowed.
    pub fn check(self, total: &BadLineTotal) -> Result<(), Error> {
        match self {
            Self::Skip { limit } if total.count > limit => {
                let first = total.first.clone().unwrap_or_default();
                Err(Error::TooManyBadLines { count: total.count, limit, first })
            }
            Self::Skip { .. } | Self::Fail => Ok(()),
        }
    }
}

/// The policy of a source, and the bad lines of its readers so far, in the order in which the readers were made.
#[derive(Clone, Debug)]
pub(crate) struct BadLineTally {
    pub(crate) policy: BadLinePolicy,
    readers: Arc<Mutex<Vec<BadLineTotal>>>,
}

impl BadLineTally {
    pub(crate) fn new(rule: BadLinePolicy) -> Self {
        Self { policy: rule, readers: Arc::default() }
    }

    /// Returns the bad lines of all readers together. After all readers have ended, the result depends only on the
    /// data.
    pub(crate) fn total(&self) -> BadLineTotal {
        let mut total = BadLineTotal::default();
        self.lock().iter().for_each(|reader| total.add(reader));
        total
    }

    fn lock(&self) -> MutexGuard<'_, Vec<BadLineTotal>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bad lines of one reader. It checks the limit for this reader alone, so that it always fails at the same line.
/// The limit over all readers of a source is checked after all of them have ended.
#[derive(Debug)]
pub(crate) struct BadLineCounter {
    tally: BadLineTally,
    /// Position of the reader in the tally.
    reader: usize,
    pub(crate) count: u64,
    pub(crate) first: Vec<String>,
}

impl BadLineCounter {
    pub(crate) fn new(tally: BadLineTally) -> Self {
        let mut readers = tally.lock();
        let reader = readers.len();
        readers.push(BadLineTotal::default());
        drop(readers);
        Self { tally, reader, count: 0, first: Vec::new() }
    }

    pub(crate) fn add(&mut self, line: BadLine) -> Result<(), Error> {
        if self.tally.policy == BadLinePolicy::Fail {
            return Err(Error::BadLine(line));
        }
        self.count += 1;
        if self.first.len() < MESSAGE_LIMIT {
            self.first.push(line.to_string());
        }
        let own = BadLineTotal { count: self.count, first: self.first.first().cloned() };
        let checked = self.tally.policy.check(&own);
        self.tally.lock()[self.reader] = own;
        checked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u64) -> BadLine {
        BadLine { file: "f".into(), line: number, column: 1, expected: "a".into(), actual: "b".into() }
    }

    fn counter(tally: &BadLineTally) -> BadLineCounter {
        BadLineCounter::new(tally.clone())
    }

    #[test]
    fn the_total_is_of_all_readers_and_its_first_line_that_of_the_first_reader() {
        let rule = BadLinePolicy::Skip { limit: 2 };
        let tally = BadLineTally::new(rule);
        let (_none, mut one, mut two) = (counter(&tally), counter(&tally), counter(&tally));
        two.add(line(9)).unwrap();
        one.add(line(3)).unwrap();
        rule.check(&tally.total()).unwrap();
        two.add(line(10)).unwrap();
        let error = rule.check(&tally.total()).unwrap_err().to_string();
        assert!(error.contains("3 bad lines, 2 allowed") && error.contains("the first: f:3:1"), "{error}");
    }

    #[test]
    fn totals_add_up_in_their_order() {
        let total = |count, first: Option<&str>| BadLineTotal { count, first: first.map(str::to_owned) };
        let mut sum = total(0, None);
        sum.add(&total(2, Some("a")));
        sum.add(&total(0, None));
        sum.add(&total(3, Some("b")));
        assert_eq!(sum, total(5, Some("a")));
    }

    #[test]
    fn the_first_bad_line_fails_by_default() {
        let tally = BadLineTally::new(BadLinePolicy::Fail);
        assert!(matches!(counter(&tally).add(line(3)), Err(Error::BadLine(l)) if l.line == 3));
        BadLinePolicy::Fail.check(&tally.total()).unwrap();
    }

    #[test]
    fn one_reader_ends_at_the_line_that_is_one_too_many() {
        let mut counter = counter(&BadLineTally::new(BadLinePolicy::Skip { limit: 12 }));
        for number in 0..12 {
            counter.add(line(number)).unwrap();
        }
        assert_eq!((counter.count, counter.first.len()), (12, MESSAGE_LIMIT));
        let error = counter.add(line(12)).unwrap_err().to_string();
        assert!(error.contains("13 bad lines, 12 allowed") && error.contains("f:0:1"), "{error}");
    }
}
