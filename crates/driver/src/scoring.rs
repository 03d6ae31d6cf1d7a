//! The driver of a job that scores records: it has the first worker inspect the data and send the model to the servers,
//! gives each worker a share of the chunks of the data, and merges what is reported of them in their order. It
//! handles neither records nor parameters. Like [`Driver`](super::Driver) it is a state machine.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use algo::metric::MetricAccumulator;
use algo::{Families, Model, Output, SavedModel};
use job::{Exit, ScoringJob};
use rpc::message::JobId;
use serde::Serialize;
use serde_json::{Value, json};

use crate::config::{ParameterPlace, WorkerInfo};
use crate::effect::{Effect, Event, JobDriver, ParametersRequest, RunEnd};
use crate::error::Error;
use crate::evaluation::empty_metrics;
use crate::job_layout::scoring_layout;
use crate::messages::{ChunkShare, DataExtent, FromWorker, ScoringFacts, ScoringShare, ToWorker};
use crate::totals::{ChunkSummary, Totals};

/// The text of the error when the run was interrupted.
pub const NOT_ENDED: &str = "scoring was not finished; no result was written";
/// Maximum wait for workers that may fail at earlier records than the first failure.
const FIRST_FAILURE_LIMIT: Duration = Duration::from_secs(3);
/// Time between two reports of the progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(500);

/// Fails for a model that predicts nothing.
pub fn refuse_no_predictions(model: &dyn Model, algorithm: &str) -> Result<(), Error> {
    if model.output() != Output::None {
        return Ok(());
    }
    let what = format!("{algorithm} makes no predictions: its result is in its tables");
    let advice = "write them with `seraphim export`, and train without --validate";
    Err(Error::request(what, advice))
}

/// Where a scoring job runs.
pub struct ScoringConfig {
    pub job: JobId,
    /// At least one.
    pub workers: Vec<WorkerInfo>,
    pub parameters: ParameterPlace,
    pub families: Families,
}

/// The driver of a scoring job.
pub struct ScoringDriver {
    config: ScoringConfig,
    job: ScoringJob,
    phase: Phase,
    effects: Vec<Effect>,
}

/// How far the job has come. Each phase waits for something.
enum Phase {
    /// The first worker opens model and data.
    Inspecting,
    /// The matrices are created.
    Creating(Box<Scoring>),
    /// The first worker sends the model to the servers.
    Importing(Box<Scoring>),
    /// The workers score their shares.
    Scoring(Box<Scoring>),
    /// The first worker joins the parts of the scores.
    Joining(Box<Scoring>),
    Ended,
}

/// What the driver knows of the job since the data were inspected.
struct Scoring {
    facts: ScoringFacts,
    model: Arc<dyn Model>,
    layout: rpc::layout::JobLayout,
    /// The workers that have a share, with it.
    assignments: Vec<Assignment>,
    chunk_count: u32,
    merged: MergedChunks,
    failure: Option<Failure>,
    reported_at: Instant,
}

/// A worker and what it scores.
struct Assignment {
    worker: u32,
    share: ScoringShare,
    /// The chunk that it has not scored yet.
    next_chunk: u32,
    /// Whether it is scored, or the worker has failed.
    has_ended: bool,
}

/// The first failure by the order of the input, as far as it is known.
struct Failure {
    chunk: u32,
    error: Error,
    /// When it is reported even though earlier chunks are not scored.
    deadline: Instant,
}

/// What is known of a chunk.
#[derive(Default)]
struct ChunkResult {
    metrics: Vec<MetricAccumulator>,
    /// Set when it is scored.
    summary: Option<Box<ChunkSummary>>,
}

/// Results of chunks, merged in their order.
struct MergedChunks {
    next: u32,
    /// Chunks that were scored before those in front of them.
    waiting: BTreeMap<u32, ChunkResult>,
    totals: Totals,
    /// The metrics; none for `predict`.
    metrics: Option<MetricAccumulator>,
}

impl MergedChunks {
    fn new(job: &ScoringJob, model: &dyn Model) -> Self {
        let metrics = match job {
            ScoringJob::Predict(_) => None,
            ScoringJob::Evaluate(job) => Some(empty_metrics(model, job)),
        };
        Self { next: 0, waiting: BTreeMap::new(), totals: Totals::default(), metrics }
    }

    /// Adds metrics of a chunk.
    fn add_metrics(&mut self, chunk: u32, metrics: MetricAccumulator) {
        if let (Some(sum), true) = (&mut self.metrics, chunk == self.next) {
            sum.merge(&metrics);
        } else {
            self.waiting.entry(chunk).or_default().metrics.push(metrics);
        }
    }

    /// Ends a chunk. Merges all chunks that have no chunk before them that is not scored.
    fn end_chunk(&mut self, chunk: u32, summary: Box<ChunkSummary>, job: &ScoringJob) -> Result<(), Error> {
        self.waiting.entry(chunk).or_default().summary = Some(summary);
        while let Some(mut first) = self.waiting.first_entry().filter(|first| *first.key() == self.next) {
            let metrics = std::mem::take(&mut first.get_mut().metrics);
            if let Some(sum) = &mut self.metrics {
                for metrics in metrics {
                    sum.merge(&metrics);
                }
            }
            let Some(summary) = first.get_mut().summary.take() else { break };
            first.remove();
            self.next += 1;
            self.totals.add_checked(&summary, job.input().bad_lines)?;
        }
        Ok(())
    }
}

impl JobDriver for ScoringDriver {
    fn start(&mut self) -> Vec<Effect> {
        let message = ToWorker::InspectScoring { job: Box::new(self.job.clone()) };
        self.send(self.config.workers[0].id, message);
        std::mem::take(&mut self.effects)
    }

    fn on_event(&mut self, now: Instant, event: Event) -> Vec<Effect> {
        if matches!(self.phase, Phase::Ended) {
            return Vec::new();
        }
        let handled = match event {
            Event::FromWorker { worker, message } => self.on_message(now, worker, message),
            Event::ParametersDone(_) => self.on_parameters_created(),
            Event::Failed(error) => Err(error),
            Event::StopRequested => Err(Error::Interrupted { what: NOT_ENDED.into() }),
            Event::CheckpointRequested
            | Event::MemberAway { .. }
            | Event::MemberBack { .. }
            | Event::Timeout => Ok(()),
        };
        let handled = handled.and_then(|()| self.check_failure(now));
        if let Err(error) = handled {
            self.end(Err(error));
        }
        std::mem::take(&mut self.effects)
    }
}

impl ScoringDriver {
    /// Creates the driver of a checked job.
    pub fn new(config: ScoringConfig, job: ScoringJob) -> Self {
        Self { config, job, phase: Phase::Inspecting, effects: Vec::new() }
    }

    fn on_message(&mut self, now: Instant, worker: u32, message: FromWorker) -> Result<(), Error> {
        match message {
            FromWorker::ScoringInspected { data, model, folder, facts } => {
                self.on_inspected(now, data, &model, folder.as_deref(), *facts)
            }
            FromWorker::ModelImported { .. } => self.on_imported(),
            FromWorker::ChunkMetrics { chunk, metrics } => {
                if let Phase::Scoring(scoring) = &mut self.phase {
                    scoring.merged.add_metrics(chunk, *metrics);
                }
                Ok(())
            }
            FromWorker::ChunkScored { chunk, summary } => self.on_chunk_scored(now, chunk, summary),
            FromWorker::PartScored { part } => {
                if let Phase::Scoring(scoring) = &mut self.phase {
                    scoring.assignments[part as usize].has_ended = true;
                }
                self.end_scoring()
            }
            FromWorker::ScoresJoined => self.on_joined(),
            FromWorker::Failed { error, exit, .. } => self.on_failed(now, worker, &error, exit),
            FromWorker::DataInspected { .. }
            | FromWorker::DataPrepared { .. }
            | FromWorker::RowsRestored
            | FromWorker::SavePlanned { .. }
            | FromWorker::TaskSaved { .. }
            | FromWorker::PartWritten { .. }
            | FromWorker::CheckpointWritten { .. }
            | FromWorker::CheckpointFailed { .. }
            | FromWorker::Progress { .. }
            | FromWorker::EpochEnded { .. }
            | FromWorker::KeyNames { .. }
            | FromWorker::TaskEnded { .. }
            | FromWorker::ModelSaved { .. }
            | FromWorker::ReadingFinished => Ok(()),
        }
    }

    fn on_chunk_scored(&mut self, now: Instant, chunk: u32, summary: Box<ChunkSummary>) -> Result<(), Error> {
        let Phase::Scoring(scoring) = &mut self.phase else { return Ok(()) };
        let is_owner = |owner: &&mut Assignment| !owner.has_ended && owner.next_chunk == chunk;
        if let Some(owner) = scoring.assignments.iter_mut().find(is_owner) {
            owner.next_chunk += owner.share.chunks.step;
        }
        scoring.merged.end_chunk(chunk, summary, &self.job)?;
        self.report_status(now);
        Ok(())
    }

    fn on_inspected(
        &mut self,
        now: Instant,
        data: DataExtent,
        model: &SavedModel,
        folder: Option<&Path>,
        facts: ScoringFacts,
    ) -> Result<(), Error> {
        let model = self.config.families.load(model)?;
        let assignments = self.assignments(data, folder);
        let task_count = assignments.last().map_or(1, |last| last.share.tasks.1);
        let layout = scoring_layout(self.config.job, &self.config.parameters, &*model, task_count)?;
        let workers = assignments.iter().flat_map(|Assignment { worker, share, .. }| {
            let name = worker_name(&self.config.workers, *worker);
            (share.tasks.0..share.tasks.1).map(move |_| name.clone())
        });
        self.effects.push(Effect::Parameters(ParametersRequest::Create {
            layout: Box::new(layout.clone()),
            modules: Vec::new(),
            workers: workers.collect(),
        }));
        self.phase = Phase::Creating(Box::new(Scoring {
            merged: MergedChunks::new(&self.job, &*model),
            facts,
            model,
            layout,
            assignments,
            chunk_count: data.chunk_count,
            failure: None,
            reported_at: now,
        }));
        Ok(())
    }

    /// Divides chunks and tasks over the workers. For `predict` each gets chunks that follow each other, so that its scores
    /// are one part of the output; for `evaluate` they take the chunks in turn, so that few of them wait to be merged. No
    /// worker has more tasks than chunks.
    fn assignments(&self, data: DataExtent, folder: Option<&Path>) -> Vec<Assignment> {
        let chunk_count = data.chunk_count;
        let count = (self.config.workers.len() as u64).min(u64::from(chunk_count).max(1));
        let bound = |all: u64, i: u64| (all * i / count) as u32;
        let limit = self.job.members().threads.unwrap_or(u32::MAX);
        let tasks_of = |info: &WorkerInfo, i: u64| match self.job.run_options().tasks {
            Some(tasks) => bound(tasks, i + 1) - bound(tasks, i),
            None => info.slots.min(limit),
        };
        let mut first_task = 0;
        let share = |(i, info): (u64, &WorkerInfo)| {
            let (first, end) = (bound(chunk_count.into(), i), bound(chunk_count.into(), i + 1));
            let chunks = match self.job {
                ScoringJob::Predict(_) => ChunkShare { first, end, step: 1 },
                ScoringJob::Evaluate(_) => {
                    ChunkShare { first: i as u32, end: chunk_count, step: count as u32 }
                }
            };
            let tasks = (first_task, first_task + tasks_of(info, i).clamp(1, (end - first).max(1)));
            first_task = tasks.1;
            let share =
                ScoringShare { part: i as u32, tasks, chunks, data, folder: folder.map(Path::to_owned) };
            Assignment { worker: info.id, share, next_chunk: chunks.first, has_ended: false }
        };
        (0..count).zip(&self.config.workers).map(share).collect()
    }

    fn on_parameters_created(&mut self) -> Result<(), Error> {
        if let Phase::Creating(scoring) = std::mem::replace(&mut self.phase, Phase::Ended) {
            let layout = scoring.layout.clone();
            self.send(self.config.workers[0].id, ToWorker::ImportModel { layout });
            self.phase = Phase::Importing(scoring);
            return Ok(());
        }
        Err(self.unexpected("the matrices were created"))
    }

    fn on_imported(&mut self) -> Result<(), Error> {
        let Phase::Importing(scoring) = std::mem::replace(&mut self.phase, Phase::Ended) else {
            return Err(self.unexpected("the model was imported"));
        };
        for Assignment { worker, share, .. } in &scoring.assignments {
            let (job, layout, share) = (Box::new(self.job.clone()), scoring.layout.clone(), share.clone());
            self.send(*worker, ToWorker::Score { job, layout, share });
        }
        self.phase = Phase::Scoring(scoring);
        Ok(())
    }

    /// Goes on when all shares are scored.
    fn end_scoring(&mut self) -> Result<(), Error> {
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Scoring(scoring)
                if scoring.failure.is_none() && scoring.assignments.iter().all(|share| share.has_ended) =>
            {
                if scoring.merged.next != scoring.chunk_count {
                    return Err(self.unexpected("all workers had ended before all chunks were scored"));
                }
                scoring.merged.totals.check_not_empty(self.job.input())?;
                match self.job {
                    ScoringJob::Evaluate(_) => self.finish(*scoring),
                    ScoringJob::Predict(_) => {
                        let part_count = scoring.assignments.len() as u32;
                        self.send(self.config.workers[0].id, ToWorker::JoinScores { part_count });
                        self.phase = Phase::Joining(scoring);
                        Ok(())
                    }
                }
            }
            phase => {
                self.phase = phase;
                Ok(())
            }
        }
    }

    fn on_joined(&mut self) -> Result<(), Error> {
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Joining(scoring) => self.finish(*scoring),
            _ => Err(self.unexpected("the scores were joined")),
        }
    }

    fn finish(&mut self, scoring: Scoring) -> Result<(), Error> {
        let Scoring { facts, model, merged, .. } = scoring;
        let report = match (facts, &self.job, merged.metrics) {
            (ScoringFacts::Prediction(facts), ScoringJob::Predict(job), _) => {
                report(&facts.prediction(job, &merged.totals))
            }
            (ScoringFacts::Evaluation(facts), ScoringJob::Evaluate(job), Some(metrics)) => {
                report(&facts.evaluation(&*model, job, &merged.totals, &metrics)?)
            }
            _ => return Err(self.unexpected("a worker described another job")),
        };
        self.end(Ok(RunEnd::Scored(report)));
        Ok(())
    }

    /// Handles the failure of a worker. Another worker may be about to fail at earlier records, and which failure is
    /// reported must not depend on which worker is faster.
    fn on_failed(&mut self, now: Instant, worker: u32, error: &str, exit: u8) -> Result<(), Error> {
        let text = format!("worker {}: {error}", worker_name(&self.config.workers, worker));
        let error = Error::Cluster { text, exit: Exit::from_code(exit) };
        let Phase::Scoring(scoring) = &mut self.phase else { return Err(error) };
        let share = scoring.assignments.iter_mut().find(|share| share.worker == worker);
        let Some(share) = share else { return Err(error) };
        share.has_ended = true;
        let (chunk, earlier) = (share.next_chunk, scoring.failure.as_ref());
        if earlier.is_none_or(|earlier| chunk < earlier.chunk) {
            let deadline = earlier.map_or(now + FIRST_FAILURE_LIMIT, |earlier| earlier.deadline);
            scoring.failure = Some(Failure { chunk, error, deadline });
        }
        Ok(())
    }

    /// Ends the job with its first failure, when no worker can fail before it, or when that takes too long.
    fn check_failure(&mut self, now: Instant) -> Result<(), Error> {
        let Phase::Scoring(scoring) = &mut self.phase else { return Ok(()) };
        let assignments = &scoring.assignments;
        let is_first = |failure: &mut Failure| {
            let is_behind = |other: &Assignment| other.has_ended || other.next_chunk > failure.chunk;
            now >= failure.deadline || assignments.iter().all(is_behind)
        };
        match scoring.failure.take_if(is_first) {
            Some(failure) => Err(failure.error),
            None => Ok(()),
        }
    }

    fn report_status(&mut self, now: Instant) {
        let Phase::Scoring(scoring) = &mut self.phase else { return };
        if now.saturating_duration_since(scoring.reported_at) < REPORT_INTERVAL {
            return;
        }
        scoring.reported_at = now;
        let Scoring { merged, chunk_count, .. } = &**scoring;
        let done = merged.next + merged.waiting.len() as u32;
        let summaries = merged.waiting.values().filter_map(|chunk| chunk.summary.as_ref());
        let waiting: u64 = summaries.map(|summary| summary.read.record_count).sum();
        let status = json!({
            "scored": merged.totals.records + waiting, "chunks": done, "chunk_count": chunk_count,
        });
        if let Value::Object(status) = status {
            self.effects.push(Effect::Status(status));
        }
    }

    fn unexpected(&self, what: &str) -> Error {
        let text = format!(
            "{what} at a moment at which the driver of `{}` does not expect it",
            self.job.command().name()
        );
        Error::Cluster { text, exit: Exit::Internal }
    }

    fn send(&mut self, worker: u32, message: ToWorker) {
        self.effects.push(Effect::Send { worker, message });
    }

    /// Ends the job: frees the parameters and the workers.
    fn end(&mut self, result: Result<RunEnd, Error>) {
        self.phase = Phase::Ended;
        let reason = result.as_ref().err().map(ToString::to_string);
        self.effects.push(Effect::Close { failure: reason.clone() });
        for i in 0..self.config.workers.len() {
            self.send(self.config.workers[i].id, ToWorker::End { reason: reason.clone() });
        }
        self.effects.push(Effect::End(Box::new(result)));
    }
}

fn report(result: &impl Serialize) -> Value {
    serde_json::to_value(result).expect("a result is texts and numbers")
}

fn worker_name(workers: &[WorkerInfo], worker: u32) -> String {
    let info = workers.iter().find(|info| info.id == worker);
    info.and_then(|info| info.name.clone()).unwrap_or_else(|| worker.to_string())
}
