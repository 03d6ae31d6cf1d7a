//! A job whose master is gone: its workers stop, meet at the lanes, and the first of them that lives writes what the servers
//! hold as a model directory beside the one that was asked for, `OUT.unfinished`. It is one like any other, checksummed
//! and renamed into its place, and says besides how far the job had come.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use data::Schema;
use rpc::message::TaskStats;
use worker::JobLayout;

use super::servers::{Servers, TasksReply};
use super::shutdown_barrier::{BarrierAction, ShutdownBarrier};
use crate::error::Error;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::job::TrainJob;
use crate::job::raw::RawJob;
use crate::model::manifest::UnfinishedJob;
use crate::model::{Manifest, Model, TrainingPosition};
use crate::report::EpochLine;
use crate::run::epoch_monitor::{StopReason, TrainingSummary};
use crate::run::run_info::{RunInfo, save};
use crate::run::totals::Totals;

/// How often the lanes are asked who has come.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Share of the limit in which tasks may come; the rest is for saving, while the servers stay.
const BARRIER_SHARE: u32 = 2;
/// Share of the limit that a worker has for saving before the next one does.
const SAVE_TURN_SHARE: u32 = 4;
/// Names that are tried for the place: `OUT.unfinished`, `OUT.unfinished-2`, ...
const NAME_LIMIT: u32 = 1000;

/// What a worker knows of a job that it trains, enough to save it alone.
#[derive(Clone, Debug)]
pub(super) struct SalvageContext {
    pub(super) raw: RawJob,
    pub(super) schema: Schema,
    pub(super) layout: JobLayout,
    pub(super) model: algo::Model,
    /// The workers of the job, each with its tasks.
    pub(super) worker_tasks: Vec<Range<u32>>,
    /// Which of them this one is.
    pub(super) own_index: usize,
    /// Where training began.
    pub(super) start: TrainingPosition,
}

/// How far a job had come, as its tasks here saw it.
#[derive(Clone, Debug, Default)]
pub(super) struct EpochProgress {
    /// Whole epochs, as the driver judged them.
    pub(super) epochs: Vec<EpochLine>,
    /// The epoch in which the tasks stopped, from 0, and how many were planned.
    pub(super) last: Option<(u64, u64)>,
}

/// Ends one job.
pub(super) struct Salvage<'a> {
    pub(super) training: &'a SalvageContext,
    pub(super) token: &'a [u8],
    /// The name of this worker.
    pub(super) name: &'a str,
    /// How long servers stay for it.
    pub(super) limit: Duration,
    pub(super) interrupt: &'a Interrupt,
}

impl Salvage<'_> {
    /// Until the state is saved, by this worker or another; how that ended, in one sentence. `saved_paths`: what this worker has
    /// made of an order to save the finished model, asked until it knows; `reached`: asked when all tasks have ended.
    pub(super) fn run(
        &self,
        saved: impl Fn() -> SaveStatus,
        reached: impl Fn() -> EpochProgress,
    ) -> Result<String, Error> {
        let SalvageContext { layout, worker_tasks: crews, own_index: own, .. } = self.training;
        let job = layout.job;
        let interrupt = self.interrupt.clone();
        let mut servers =
            Servers::connect(layout, self.token)?.with_cancellation(move || interrupt.is_raised());
        let start = Instant::now();
        let mut meeting = ShutdownBarrier::new(
            crews.clone(),
            *own,
            self.limit / BARRIER_SHARE,
            self.limit / SAVE_TURN_SHARE,
        );
        loop {
            if self.interrupt.is_raised() {
                let what = format!("before the state of job {job} was saved");
                return Err(Error::Interrupted { what });
            }
            let tasks = match servers.tasks()? {
                TasksReply::Tasks(tasks) => tasks,
                TasksReply::Closed(reason) => return Ok(reason),
            };
            match saved() {
                SaveStatus::Nothing => {}
                SaveStatus::Running => {
                    std::thread::sleep(POLL_INTERVAL);
                    continue;
                }
                SaveStatus::Done(path) => {
                    let text = format!("job {job} had ended, and its model is in {}", path.display());
                    // Whoever waits there is told.
                    servers.close_job(&text)?;
                    return Ok(text);
                }
            }
            match meeting.next_action(start.elapsed(), &tasks) {
                BarrierAction::Wait => std::thread::sleep(POLL_INTERVAL),
                BarrierAction::RemoveTasks(late) => {
                    tracing::warn!(job, tasks = ?late, "tasks do not come to the end of the job: it is saved without them");
                    late.into_iter().try_for_each(|task| servers.remove_task(task))?;
                }
                BarrierAction::Save => {
                    let text = self.save(&mut servers, &tasks, &meeting.removed_tasks(), &reached())?;
                    servers.close_job(&text)?;
                    return Ok(text);
                }
            }
        }
    }

    fn save(
        &self,
        servers: &mut Servers,
        tasks: &[TaskStats],
        lost: &[u32],
        reached: &EpochProgress,
    ) -> Result<String, Error> {
        let SalvageContext { raw, schema, layout, model, .. } = self.training;
        let mut job = TrainJob::check(raw)?;
        let clocks: Vec<u64> = tasks.iter().map(|task| task.clock).collect();
        let (first, last) = (clocks.iter().min().copied(), clocks.iter().max().copied());
        let (first, last) = (first.unwrap_or(0), last.unwrap_or(0));
        if last == 0 {
            return Ok(format!("job {} had not made a step: there is nothing to save", layout.job));
        }
        let manifest = self.manifest(&job, schema, model, reached, &clocks, lost)?;
        let rows = (0..manifest.model.matrix_count() as u32)
            .map(|matrix| servers.export(matrix))
            .collect::<Result<Vec<_>, _>>()?;
        let names = match &job.from {
            Some(path) => Model::read(path, false)?.dictionary,
            None => BTreeMap::new(),
        };
        let (asked, algorithm) = (job.model.clone(), job.algorithm.clone());
        (job.overwrite, job.keep_optimizer) = (false, true);
        for number in 1..=NAME_LIMIT {
            job.model = unfinished_path(&asked, number);
            match save(&job, manifest.clone(), &layout.matrices, &rows, names.clone(), self.interrupt) {
                Ok(_) => break,
                // Whatever is there stays.
                Err(Error::ModelExists { .. } | Error::NotReplaceable { .. }) if number < NAME_LIMIT => {}
                Err(error) => return Err(error),
            }
        }
        let path = job.model.display();
        let epoch = reached.last.map_or_else(String::new, |(epoch, count)| {
            format!(", in epoch {} of {}", epoch + 1, count.max(epoch + 1))
        });
        let without = match lost {
            [] => String::new(),
            lost => format!(", without the last steps of tasks {lost:?}, which did not come"),
        };
        let clocks =
            if first == last { format!("clock {last}") } else { format!("clocks {first} to {last}") };
        Ok(format!(
            "{} has saved job {} unfinished in {path}{epoch}, at {clocks} of {} tasks{without}; go on with `seraphim train \
             {algorithm} --from {path}` and the other flags of the job, which {path}/model.json lists, or predict with it",
            self.name,
            layout.job,
            tasks.len(),
        ))
    }

    fn manifest(
        &self,
        job: &TrainJob,
        schema: &Schema,
        model: &algo::Model,
        reached: &EpochProgress,
        clocks: &[u64],
        lost: &[u32],
    ) -> Result<Manifest, Error> {
        let algorithm = (algo::algorithm(&job.algorithm)?.configure)(&job.set)?;
        let label_rule = algorithm.label_rule(&schema.label_names)?;
        let closing = RunInfo {
            job,
            algorithm: algorithm.as_ref(),
            label_rule,
            schema,
            size_bytes: None,
            notices: Vec::new(),
            task_count: self.training.layout.task_count,
            start: self.training.start,
            reasons: &[],
        };
        let outcome = TrainingSummary {
            epochs: reached.epochs.clone(),
            end: StopReason::Interrupted,
            best_epoch: None,
            step_count: clocks.iter().sum(),
            notices: Vec::new(),
            constant_losses: (None, None),
        };
        let records = reached.epochs.first().map_or(0, |line| line.records);
        let totals = Totals { records, ..Totals::default() };
        let mut manifest = closing.manifest(model.clone(), &outcome, &totals);
        manifest.trained.unfinished = Some(UnfinishedJob {
            job: self.training.raw.texts(),
            epoch: reached.last.map_or(0, |(epoch, _)| epoch),
            epoch_count: reached.last.map_or(0, |(_, count)| count),
            clocks: clocks.to_vec(),
            lost_tasks: lost.to_vec(),
        });
        Ok(manifest)
    }
}

/// What a worker has made of an order to save the finished model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SaveStatus {
    /// There was none, or it came to nothing.
    Nothing,
    /// It is being carried out.
    Running,
    /// The model is there.
    Done(PathBuf),
}

/// The place of an unfinished model: beside the one that was asked for.
fn unfinished_path(asked: &Path, number: u32) -> PathBuf {
    let name = asked.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy().into_owned());
    let more = if number == 1 { String::new() } else { format!("-{number}") };
    asked.with_file_name(format!("{name}.unfinished{more}"))
}

/// The error of a worker that has lost its master.
pub(super) fn master_lost_error(address: &str, reason: &str, ends: &[String]) -> Error {
    let text = std::iter::once(format!("the master at {address} is gone: {reason}"))
        .chain(ends.iter().cloned())
        .collect::<Vec<_>>()
        .join("; ");
    Error::Cluster { text, exit: Exit::Io }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_model_lies_beside_the_one_that_was_asked_for() {
        assert_eq!(unfinished_path(Path::new("a/out"), 1), Path::new("a/out.unfinished"));
        assert_eq!(unfinished_path(Path::new("a/out/"), 3), Path::new("a/out.unfinished-3"));
    }
}
