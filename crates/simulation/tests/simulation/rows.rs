//! Whole matrices after all tasks have left: their rows are kept, replaced, read from the snapshot and restored. The tool sends every message
//! twice, as if it had not received the answer.

use matrix::{Element, ElementType, OwnedValues, with_element_type};
use rpc::Message;
use rpc::message::{Export, ExportPage, Import, KeepRows, RestoreRows, ScanRows};

use crate::cluster::Cluster;
use crate::scenario::Disturbance;
use crate::task::{Task, whole};

/// Keys and values of a matrix on a lane, without zeros.
type Rows = Vec<(u64, i64)>;

fn values(element: ElementType, rows: &[(u64, i64)]) -> OwnedValues {
    let values = rows.iter().map(|(_, value)| *value as f64);
    with_element_type!(element, E => E::owned(values.map(E::from_f64).collect()))
}

fn rows(page: &ExportPage) -> Rows {
    let rows = page.keys.iter().copied().zip(whole(&page.values));
    rows.filter(|(_, value)| *value != 0).collect()
}

impl Cluster {
    /// Checks that kept rows are restored, and that an import replaces all rows, once.
    pub(crate) fn replace_and_restore_rows(&mut self) {
        let has_loss = self.scenario.replicas || self.scenario.disturbance == Disturbance::Crash;
        if has_loss || self.tasks.iter().any(Task::is_alive) {
            return;
        }
        let job = self.scenario.job;
        for lane in 0..self.lanes.len() {
            let before = self.rows_of(lane);
            self.tool_says_twice(
                lane,
                &[Message::KeepRows(KeepRows { request: 9, job, snapshot: 0, records_changes: false })],
            );
            let mut wanted = Vec::new();
            for (matrix, rows) in before.iter().enumerate() {
                let rows: Rows = rows.iter().step_by(2).map(|(key, value)| (*key, value + 1)).collect();
                let pages = rows.split_at(rows.len() / 2);
                let pages = [(pages.0, true), (pages.1, false)];
                let pages = pages.map(|(page, first)| self.import(matrix, page, first));
                self.tool_says_twice(lane, &pages);
                wanted.push(rows);
            }
            self.expect_rows(lane, "imported", &wanted);
            self.expect_snapshot(lane, &before);
            self.tool_says_twice(lane, &[Message::RestoreRows(RestoreRows { request: 9, job, snapshot: 0 })]);
            self.expect_rows(lane, "kept", &before);
            self.history.facts.restores += 1;
        }
    }

    fn import(&self, matrix: usize, rows: &[(u64, i64)], first: bool) -> Message {
        let keys = rows.iter().map(|(key, _)| *key).collect();
        let values = values(self.scenario.counters[matrix].spec.element, rows);
        let (job, matrix) = (self.scenario.job, matrix as u32);
        Message::Import(Import {
            request: 9,
            job,
            matrix,
            first,
            row_count: 0,
            with_slots: false,
            keys,
            values,
        })
    }

    fn tool_says_twice(&mut self, lane: usize, messages: &[Message]) {
        for message in messages.iter().chain(messages) {
            let answers = self.tool_says(lane, message.clone());
            if !matches!(answers[..], [Message::Done(_)]) {
                self.history.seen.push(format!("lane {lane} answers {answers:?} to {message:?}"));
            }
        }
    }

    fn rows_of(&mut self, lane: usize) -> Vec<Rows> {
        let (job, mut all) = (self.scenario.job, Vec::new());
        for matrix in 0..self.scenario.counters.len() as u32 {
            let export = Message::Export(Export { request: 9, job, matrix, from: 0, skip: 0 });
            all.push(self.page(lane, &export).map_or_else(Vec::new, |page| rows(&page)));
        }
        all
    }

    fn page(&mut self, lane: usize, request: &Message) -> Option<ExportPage> {
        let answer = self.tool_says(lane, request.clone()).into_iter().next();
        if let Some(Message::ExportPage(page)) = answer {
            return Some(page);
        }
        self.history.seen.push(format!("lane {lane} answers {answer:?} to {request:?}"));
        None
    }

    /// Checks that the snapshot still has these rows.
    fn expect_snapshot(&mut self, lane: usize, wanted: &[Rows]) {
        let job = self.scenario.job;
        for (matrix, wanted) in (0..).zip(wanted) {
            let (mut found, mut next) = (Rows::new(), Some(0));
            while let Some(block) = next {
                let scan = ScanRows { request: 9, job, matrix, snapshot: 0, block, only_changed: false };
                let Some(page) = self.page(lane, &Message::ScanRows(scan)) else { return };
                found.extend(rows(&page));
                next = page.next;
            }
            found.sort_unstable();
            if found != *wanted {
                self.history.seen.push(format!("the snapshot of lane {lane} has {found:?}, not {wanted:?}"));
            }
        }
    }

    fn expect_rows(&mut self, lane: usize, what: &str, wanted: &[Rows]) {
        let rows = self.rows_of(lane);
        if rows != wanted {
            self.history.seen.push(format!("lane {lane} has {rows:?}, {what} were {wanted:?}"));
        }
    }
}
