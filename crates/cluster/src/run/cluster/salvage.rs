//! Salvage of a job whose master is lost: its workers stop and wait at the shutdown barrier, and the first live one
//! writes the parameters of the servers as a model directory beside the requested one, `OUT.unfinished`. It is an
//! ordinary model, checksummed and renamed when complete, whose manifest also records how far the job came.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use algo::SavedModel;
use data::{KeyNames, Schema};
use model::manifest::UnfinishedJob;
use model::{Manifest, ModelFiles};
use rpc::message::{Role, TaskStats};
use worker::RetryPolicy;

use super::servers::{Servers, TasksReply};
use super::shutdown_barrier::{BarrierAction, ShutdownBarrier};
use crate::error::Error;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::job::TrainJob;
use crate::job::raw::RawJob;
use crate::run::driver::epoch_monitor::{StopReason, TrainingSummary};
use crate::run::run_info::{RunInfo, numbered_path, save_under};
use crate::run::totals::Totals;
use crate::run::worker::coordinator::EpochProgress;
use crate::run::worker::job::{SalvageContext, SaveStatus};

/// Time between two requests to the lanes for the state of the tasks.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The wait for tasks takes at most this fraction (1/n) of the limit; the rest is for saving, while the servers stay.
const BARRIER_SHARE: u32 = 2;
/// Each worker has this fraction (1/n) of the limit for saving before the next worker tries.
const SAVE_TURN_SHARE: u32 = 4;

/// The salvage of one job.
pub(super) struct Salvage<'a> {
    pub(super) training: &'a SalvageContext,
    pub(super) token: &'a [u8],
    /// Name of this worker.
    pub(super) name: &'a str,
    /// How long servers wait for the job to be saved.
    pub(super) limit: Duration,
    pub(super) interrupt: &'a Interrupt,
}

impl Salvage<'_> {
    /// Waits until this worker or another has saved the state, and returns the result as a sentence. `saved` returns
    /// the status of an earlier request to save the finished model; it is called until that request has ended.
    /// `reached` is called when all tasks have ended.
    pub(super) fn run(
        &self,
        saved: impl Fn() -> SaveStatus,
        reached: impl Fn() -> EpochProgress,
    ) -> Result<String, Error> {
        let SalvageContext { layout, worker_tasks, own_index: own, .. } = self.training;
        let job = layout.job;
        let interrupt = self.interrupt.clone();
        // The standby of a lost server has its lanes.
        let has_standbys = layout.lanes.iter().any(|lane| lane.standby.is_some());
        let role = if has_standbys { Role::JobTool { job } } else { Role::Tool };
        let is_cancelled = Box::new(move || interrupt.is_raised());
        let policy = RetryPolicy { is_cancelled, ..RetryPolicy::default() };
        let mut servers = Servers::connect_as(role, layout, self.token, policy)?;
        let start = Instant::now();
        let mut barrier = ShutdownBarrier::new(
            worker_tasks.clone(),
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
                    let text = format!("job {job} had already ended; its model is in {}", path.display());
                    // The other workers at the barrier receive this text.
                    servers.close_job(&text)?;
                    return Ok(text);
                }
            }
            match barrier.next_action(start.elapsed(), &tasks) {
                BarrierAction::Wait => std::thread::sleep(POLL_INTERVAL),
                BarrierAction::RemoveTasks(late) => {
                    tracing::warn!(
                        job,
                        tasks = ?late,
                        "tasks did not reach the shutdown barrier: the job is saved without them"
                    );
                    late.into_iter().try_for_each(|task| servers.remove_task(task))?;
                }
                BarrierAction::Save => {
                    let text = self.save(&mut servers, &tasks, &barrier.removed_tasks(), &reached())?;
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
        let SalvageContext { raw, schema, layout, model, families, .. } = self.training;
        let mut job = TrainJob::check(raw, families)?;
        self.training.local_data.resolve_job(&mut job)?;
        let clocks: Vec<u64> = tasks.iter().map(|task| task.clock).collect();
        let (first, last) = (clocks.iter().min().copied(), clocks.iter().max().copied());
        let (first, last) = (first.unwrap_or(0), last.unwrap_or(0));
        if last == 0 {
            return Ok(format!("job {} had made no step, so there is nothing to save", layout.job));
        }
        let manifest = self.manifest(&job, schema, model, reached, &clocks, lost)?;
        let specs = &layout.matrices[..families.load(model)?.matrix_count()];
        let names = match &job.from {
            Some(path) => ModelFiles::open(path, false)?.dictionary()?,
            None => KeyNames::default(),
        };
        let (asked, algorithm) = (job.model.clone(), job.algorithm.name);
        (job.overwrite, job.keep_optimizer) = (false, true);
        let path_of = |number| unfinished_path(&asked, number);
        save_under(&mut job, path_of, &manifest, (specs, servers), &names, self.interrupt)?;
        let path = job.model.display();
        let epoch = reached.last.map_or_else(String::new, |(epoch, count)| {
            format!(", in epoch {} of {}", epoch + 1, count.max(epoch + 1))
        });
        let without = match lost {
            [] => String::new(),
            lost => format!(
                ", without the last steps of tasks {lost:?}, which did not reach the shutdown barrier"
            ),
        };
        let clocks =
            if first == last { format!("clock {last}") } else { format!("clocks {first} to {last}") };
        Ok(format!(
            "{} has saved job {} unfinished in {path}{epoch}, at {clocks} of {} tasks{without}; continue with \
             `seraphim train {algorithm} --from {path}` and the other flags of the job, which {path}/model.json \
             lists, or predict with it",
            self.name,
            layout.job,
            tasks.len(),
        ))
    }

    fn manifest(
        &self,
        job: &TrainJob,
        schema: &Schema,
        model: &SavedModel,
        reached: &EpochProgress,
        clocks: &[u64],
        lost: &[u32],
    ) -> Result<Manifest, Error> {
        let label_rule = job.parameters.label_rule(&schema.label_names)?;
        let closing = RunInfo {
            job,
            label_rule,
            schema,
            size_bytes: None,
            notices: Vec::new(),
            task_count: self.training.layout.task_count,
            start: self.training.start,
            reasons: &[],
            given: &RawJob::new(),
            files: &[],
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

/// Returns the path of an unfinished model: beside the requested one.
fn unfinished_path(asked: &Path, number: u32) -> PathBuf {
    numbered_path(asked, ".unfinished", number)
}

/// Returns the error of a worker that has lost its master.
pub(super) fn master_lost_error(address: &str, reason: &str, ends: &[String]) -> Error {
    let text = std::iter::once(format!("the master at {address} is lost: {reason}"))
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
