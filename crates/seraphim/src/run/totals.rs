//! What all tasks have read, added up in the order of tasks.

use std::collections::BTreeMap;

use data::{KeptStats, LabelStats, ReadSummary, TaskData};

/// Bad lines that are shown.
const SHOWN_BAD_LINES: usize = 10;

/// Sums over tasks.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Records, those held out included.
    pub records: u64,
    /// Bad lines left out.
    pub bad_lines: u64,
    /// The first few of them.
    pub first_bad_lines: Vec<String>,
    /// What labels were seen.
    pub labels: LabelStats,
    /// What the user should know, each once.
    pub notices: Vec<String>,
    /// What is kept for later epochs.
    pub kept: KeptStats,
}

impl Totals {
    /// Of the shares of all tasks.
    pub fn of(shares: &[TaskData]) -> Self {
        let mut totals = Self::default();
        for share in shares {
            totals.add(share.reader().summary());
            let kept = share.kept_stats();
            totals.kept.block_count += kept.block_count;
            totals.kept.memory_bytes += kept.memory_bytes;
            totals.kept.disk_bytes += kept.disk_bytes;
        }
        totals
    }

    /// Adds what one reader has read.
    pub fn add(&mut self, summary: &ReadSummary) {
        self.records += summary.record_count;
        self.bad_lines += summary.bad_line_count;
        let room = SHOWN_BAD_LINES.saturating_sub(self.first_bad_lines.len());
        self.first_bad_lines.extend(summary.bad_lines.iter().take(room).cloned());
        self.labels.merge(&summary.labels);
        for notice in &summary.notices {
            if !self.notices.contains(notice) {
                self.notices.push(notice.clone());
            }
        }
    }
}

/// The names of keys that all readers have met.
pub fn dictionary(shares: &mut [TaskData]) -> BTreeMap<u64, String> {
    shares.iter_mut().flat_map(|share| share.reader_mut().take_dictionary()).collect()
}
