//! The pulls of a step, learnt from the step before. An algorithm does not declare its pulls, but repeats them in every
//! step.

use matrix::{Keys, MatrixId, Selection};

use crate::prefetch::AHEAD_LIMIT;

/// The keys of a pull, in a form that can be applied to the next batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// The keys are the columns of the batch.
    Batch,
    /// The keys are the same range in every step.
    Range(u64, u64),
}

/// A pull of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PatternPull {
    matrix: MatrixId,
    /// The row, for a matrix that is partitioned by column.
    row: Option<u32>,
    shape: Shape,
}

/// The pulls of the step before, each with whether it was prefetched for the next step, and the pulls of this step so
/// far.
#[derive(Debug, Default)]
pub(crate) struct PullPattern {
    learnt: Vec<(PatternPull, bool)>,
    seen: Vec<PatternPull>,
}

impl PullPattern {
    /// Records a pull of this step. `columns` is the columns of its batch.
    pub(crate) fn pulled(&mut self, matrix: MatrixId, part: Selection<'_>, columns: &[u64]) {
        let (row, keys) = match part {
            Selection::Rows(keys) => (None, keys),
            Selection::Columns { row, keys } => (Some(row), keys),
        };
        let shape = match keys {
            Keys::Range(start, end) => Shape::Range(start, end),
            Keys::Sorted(keys) if keys == columns => Shape::Batch,
            // The algorithm has chosen these keys, so the keys of the next step are unknown.
            Keys::Sorted(_) => return,
        };
        let pull = PatternPull { matrix, row, shape };
        if self.seen.len() < AHEAD_LIMIT && !self.seen.contains(&pull) {
            self.seen.push(pull);
        }
    }

    /// Whether this step has repeated all pulls of the step before.
    pub(crate) fn is_complete(&self) -> bool {
        !self.learnt.is_empty() && self.learnt.iter().all(|(pull, _)| self.seen.contains(pull))
    }

    /// Ends the step: its pulls become the pattern.
    pub(crate) fn ticked(&mut self) {
        // Pulls that were prefetched during the step stay marked.
        let asked = |pull: &PatternPull| self.learnt.contains(&(*pull, true));
        let learnt = self.seen.iter().map(|pull| (*pull, asked(pull))).collect();
        self.learnt = learnt;
        self.seen.clear();
    }

    /// Begins the next step: none of its pulls is prefetched for the step after it.
    pub(crate) fn begins(&mut self) {
        self.learnt.iter_mut().for_each(|(_, asked)| *asked = false);
    }

    /// Calls `ask` for the pulls of the next step that are not prefetched yet. `columns` is the columns of its batch.
    /// `ask` returns whether it has sent a prefetch.
    pub(crate) fn ask(&mut self, columns: &[u64], mut ask: impl FnMut(MatrixId, Selection<'_>) -> bool) {
        for (pull, asked) in self.learnt.iter_mut().filter(|(_, asked)| !asked) {
            let keys = match pull.shape {
                Shape::Batch => Keys::Sorted(columns),
                Shape::Range(start, end) => Keys::Range(start, end),
            };
            let part = match pull.row {
                None => Selection::Rows(keys),
                Some(row) => Selection::Columns { row, keys },
            };
            *asked = ask(pull.matrix, part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const W: MatrixId = MatrixId(0);
    const B: MatrixId = MatrixId(1);

    fn asked(pattern: &mut PullPattern, columns: &[u64], agrees: bool) -> Vec<(MatrixId, String)> {
        let mut asks = Vec::new();
        pattern.ask(columns, |matrix, part| {
            asks.push((matrix, format!("{part:?}")));
            agrees
        });
        asks
    }

    fn rows(keys: &[u64]) -> Selection<'_> {
        Selection::Rows(Keys::Sorted(keys))
    }

    #[test]
    fn the_next_batch_is_asked_as_the_last_was_pulled() {
        let mut pattern = PullPattern::default();
        assert!(!pattern.is_complete() && asked(&mut pattern, &[1], true).is_empty(), "nothing is known yet");
        pattern.pulled(W, rows(&[3, 5]), &[3, 5]);
        pattern.pulled(B, Selection::Rows(Keys::Range(0, 1)), &[3, 5]);
        pattern.pulled(B, Selection::Columns { row: 2, keys: Keys::Sorted(&[3, 5]) }, &[3, 5]);
        // Keys that are not those of the batch are ignored, and a repeated pull counts once.
        pattern.pulled(W, rows(&[4]), &[3, 5]);
        pattern.pulled(W, rows(&[3, 5]), &[3, 5]);
        pattern.ticked();
        let next = [7, 9];
        let wanted = [
            (W, format!("{:?}", rows(&next))),
            (B, format!("{:?}", Selection::Rows(Keys::Range(0, 1)))),
            (B, format!("{:?}", Selection::Columns { row: 2, keys: Keys::Sorted(&next) })),
        ];
        assert_eq!(asked(&mut pattern, &next, true), wanted);
        assert!(asked(&mut pattern, &next, true).is_empty(), "asked once");
    }

    #[test]
    fn what_was_not_asked_during_a_step_is_asked_behind_it() {
        let mut pattern = PullPattern::default();
        let step = |pattern: &mut PullPattern| {
            pattern.pulled(W, rows(&[3]), &[3]);
            pattern.pulled(B, Selection::Rows(Keys::Range(0, 1)), &[3]);
        };
        step(&mut pattern);
        pattern.ticked();
        pattern.begins();
        assert!(!pattern.is_complete());
        step(&mut pattern);
        assert!(pattern.is_complete());
        let mut only_b = 0;
        pattern.ask(&[4], |matrix, _| {
            only_b += 1;
            matrix == B
        });
        pattern.ticked();
        let asks = asked(&mut pattern, &[4], true);
        assert_eq!((only_b, asks.len(), asks[0].0), (2, 1, W));
        pattern.begins();
        assert_eq!(asked(&mut pattern, &[6], true).len(), 2, "for the step behind it both");
    }

    #[test]
    fn a_pattern_is_dropped_when_the_task_does_something_else() {
        let mut pattern = PullPattern::default();
        pattern.pulled(W, rows(&[3]), &[3]);
        pattern.ticked();
        pattern.pulled(B, rows(&[3]), &[3]);
        assert!(!pattern.is_complete(), "it has not pulled the first matrix");
        pattern.ticked();
        let asks = asked(&mut pattern, &[4], true);
        assert_eq!((asks.len(), asks[0].0), (1, B));
    }
}
