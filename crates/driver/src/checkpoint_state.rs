//! The checkpoints of a training as the driver knows them: when one is due, and how far the present one has come. What is
//! done about them is in [`checkpointing`](super::checkpointing).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use checkpoint::{Base, DataFile, Manifest, TrainingId};
use job::Exit;
use job::checkpoints::{CheckpointEvery, CheckpointSettings};
use serde::{Deserialize, Serialize};

use crate::epoch_monitor::MonitorState;
use crate::error::Error;
use crate::messages::{CheckpointPlace, decode};

/// How far ahead of the largest clock tasks are first asked to save. It doubles whenever a task was faster.
pub(crate) const FIRST_LEAD: u64 = 2;
/// Largest lead: an epoch with fewer steps ends first, and then a checkpoint is taken at its end.
const MAX_LEAD: u64 = 1 << 16;

/// The lead after a task was faster than this one.
pub(crate) fn longer_lead(lead: u64) -> u64 {
    (2 * lead).min(MAX_LEAD)
}

/// Without a setting, the time between two checkpoints is at least so many times that in which the last one was made: then
/// at most a twentieth of the time is spent with them.
const PATIENCE: u32 = 19;

/// What the driver keeps in a checkpoint.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DriverState {
    pub monitor: MonitorState,
    /// Steps of all tasks since the training began.
    pub step_count: u64,
}

impl DriverState {
    pub(crate) fn decode(bytes: &rpc::message::Base64Bytes) -> Result<Self, Error> {
        decode(bytes).map_err(|what| Error::Cluster {
            text: format!("the state of the driver in the checkpoint is not understood: {what}"),
            exit: Exit::Model,
        })
    }
}

/// The checkpoints of a training whose tasks run.
#[derive(Debug)]
pub(crate) struct Checkpointing {
    pub settings: CheckpointSettings,
    pub training: TrainingId,
    /// The files of the data; none: the data cannot be read again, so there are no checkpoints.
    pub data: Option<Vec<DataFile>>,
    /// The number of the run of the job, in the names of files.
    pub run: u32,
    pub last_number: u64,
    /// The clock of the training where this run began.
    pub clock_offset: u64,
    /// When the last checkpoint was made, or training began.
    pub last_at: Instant,
    /// The clock of that moment, counted from the beginning of the training.
    pub last_clock: u64,
    pub last_plan: u64,
    pub lead: u64,
    /// When the tasks began to wait for the checkpoint that is being made.
    pub begun_at: Instant,
    /// How long the last checkpoint took.
    pub last_duration: Duration,
    /// Whether the user was told that there is no memory for a snapshot.
    pub told_memory_short: bool,
    /// Whether a user has asked for one.
    pub is_requested: bool,
    pub increments: Increments,
    pub stage: Stage,
}

#[derive(Debug)]
pub(crate) enum Stage {
    /// Tasks are not asked before this time.
    Waiting {
        until: Instant,
    },
    Planned {
        clock: Option<u64>,
        /// Workers whose tasks can save.
        agreed_count: usize,
        is_confirmed: bool,
    },
    /// The tasks save: the epoch and the clock of those that have.
    Saving {
        tasks: BTreeMap<u32, (u64, u64)>,
        is_within_epoch: bool,
    },
    /// All tasks have saved, and a snapshot of the rows is taken.
    TakingSnapshot {
        epoch: u64,
        is_within_epoch: bool,
        clock: u64,
    },
    /// The workers write.
    Writing {
        manifest: Box<Manifest>,
        awaited_count: usize,
        failure: Option<String>,
        holds_tasks: bool,
    },
    Committing {
        number: u64,
        clock: u64,
        holds_tasks: bool,
        size_bytes: u64,
        is_increment: bool,
    },
}

/// What the next checkpoint may build on, so that it needs only the rows that have changed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Increments {
    /// The last complete checkpoint, if nothing has gone wrong since.
    base: Option<Base>,
    /// Number of increments since the last checkpoint with all rows, and their size.
    count: u64,
    size_bytes: u64,
    /// Size of that one.
    full_bytes: u64,
}

impl Increments {
    /// What the next checkpoint builds on; none if it is to have all rows. There are at most `limit` increments after each
    /// other, and what they have together stays less than about all rows: more would make a restoration slow.
    fn next_base(&self, limit: u64) -> Option<Base> {
        self.base.filter(|_| self.count < limit && self.size_bytes < self.full_bytes)
    }

    /// A checkpoint is complete.
    pub(crate) fn add(&mut self, base: Base, size_bytes: u64, is_increment: bool) {
        if is_increment {
            self.count += 1;
            self.size_bytes += size_bytes;
        } else {
            *self = Self { full_bytes: size_bytes, ..Self::default() };
        }
        self.base = Some(base);
    }
}

impl Checkpointing {
    pub(crate) fn new(
        settings: CheckpointSettings,
        (training, run): (TrainingId, u32),
        data: Option<Vec<DataFile>>,
        (last_number, clock_offset): (u64, u64),
        now: Instant,
    ) -> Self {
        Self {
            settings,
            training,
            data,
            run,
            last_number,
            clock_offset,
            last_at: now,
            last_clock: clock_offset,
            last_plan: 0,
            lead: FIRST_LEAD,
            begun_at: now,
            last_duration: Duration::ZERO,
            told_memory_short: false,
            is_requested: false,
            increments: Increments::default(),
            stage: Stage::Waiting { until: now },
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.problem().is_none()
    }

    /// Makes a checkpoint at the next opportunity.
    pub(crate) fn request(&mut self) {
        self.is_requested = true;
    }

    /// Whether the tasks have gone on, or have ended, and the checkpoint is not complete.
    pub(crate) fn is_writing(&self) -> bool {
        matches!(self.stage, Stage::Writing { .. } | Stage::Committing { .. })
    }

    /// Whether tasks that have saved wait for the end of the checkpoint.
    pub(crate) fn holds_tasks(&self) -> bool {
        match self.stage {
            Stage::Waiting { .. } => false,
            Stage::Planned { is_confirmed, .. } => is_confirmed,
            Stage::Saving { .. } | Stage::TakingSnapshot { .. } => true,
            Stage::Writing { holds_tasks, .. } | Stage::Committing { holds_tasks, .. } => holds_tasks,
        }
    }

    /// How long the last checkpoint took.
    pub(crate) fn last_duration(&self) -> Duration {
        self.last_duration
    }

    /// Why the training has no checkpoints.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        match self.settings.every {
            CheckpointEvery::Off => Some("the job was submitted with checkpoint_every = off"),
            _ if self.data.is_none() => Some("its data cannot be read again"),
            _ => None,
        }
    }

    /// The folder that is removed when the model is saved. It may be there although this training has made no checkpoint: an
    /// earlier one may have died before its first checkpoint was complete.
    pub(crate) fn to_remove(&self) -> Option<(String, TrainingId)> {
        let is_due = self.settings.is_temporary && self.is_on();
        is_due.then(|| (self.settings.location.clone(), self.training.clone()))
    }

    /// Whether a checkpoint is due at the end of an epoch.
    pub(crate) fn is_due_at(&self, now: Instant, clock: u64) -> bool {
        match self.settings.every {
            CheckpointEvery::Off => false,
            _ if self.is_requested => true,
            CheckpointEvery::Time(interval) => self.has_passed(now, interval),
            CheckpointEvery::Ticks(count) => clock >= self.last_clock + count,
        }
    }

    /// The clock of which tasks are first asked; none: it is not time to ask.
    pub(crate) fn first_clock(&self, now: Instant) -> Option<u64> {
        let Stage::Waiting { until } = self.stage else { return None };
        if now < until {
            return None;
        }
        match self.settings.every {
            CheckpointEvery::Off => None,
            _ if self.is_requested => Some(0),
            // A plan for clock 0 is refused, so this asks how far the tasks are.
            CheckpointEvery::Time(interval) => self.has_passed(now, interval).then_some(0),
            // Tasks count from the beginning of this run.
            CheckpointEvery::Ticks(count) => Some(self.last_clock + count - self.clock_offset),
        }
    }

    fn has_passed(&self, now: Instant, interval: Duration) -> bool {
        let least = if self.settings.is_every_given { Duration::ZERO } else { self.last_duration * PATIENCE };
        now.saturating_duration_since(self.last_at) >= interval.max(least)
    }

    pub(crate) fn wait(&mut self, now: Instant, interval: Duration) {
        self.stage = Stage::Waiting { until: now + interval };
    }

    /// What the checkpoint builds on that is about to be written. Without a snapshot, it and the next one have all rows.
    pub(crate) fn next_base(&mut self, has_snapshot: bool) -> Option<Base> {
        if !has_snapshot {
            self.increments = Increments::default();
        }
        self.increments.next_base(self.settings.increments)
    }

    pub(crate) fn place(&self, number: u64) -> CheckpointPlace {
        CheckpointPlace { location: self.settings.location.clone(), number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn increments_end_at_their_number_at_their_size_and_after_a_failure() {
        let base = |number| Base { number, crc32c: 7 };
        let mut increments = Increments::default();
        assert_eq!(increments.next_base(9), None, "the first one has all rows");
        increments.add(base(1), 100, false);
        assert_eq!((increments.next_base(0), increments.next_base(9)), (None, Some(base(1))));
        increments.add(base(2), 60, true);
        assert_eq!((increments.next_base(1), increments.next_base(2)), (None, Some(base(2))));
        increments.add(base(3), 40, true);
        assert_eq!(increments.next_base(9), None, "they have as much as all rows");
        increments.add(base(4), 100, false);
        assert_eq!(increments.next_base(9), Some(base(4)), "a full one begins anew");
    }

    #[test]
    fn however_often_a_task_was_faster_the_lead_stays_a_number_of_steps() {
        let leads: Vec<u64> =
            std::iter::successors(Some(FIRST_LEAD), |lead| Some(longer_lead(*lead))).take(200).collect();
        assert_eq!(leads[..3], [2, 4, 8]);
        assert_eq!(leads[199], MAX_LEAD);
    }
}
