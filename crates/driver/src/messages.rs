//! Messages between driver and workers. Inside one process they travel as they are; on a cluster they are the contents
//! of `ToTask` and `FromTask` in the control plane, as `MessagePack` (see [`encode`]).
//!
//! The driver starts: it sends `InspectData` to one worker, `PrepareData` to all, then `Train`; `EpochDecided` after
//! each epoch; `SaveModel` to one worker; `End` to all. Messages survive the loss and return of a connection to the
//! master. A worker that died is not replaced: the run ends, and another run of the job begins.
//!
//! A job that scores records has messages of its own: `InspectScoring` and `ImportModel` to the first worker, `Score` to
//! all, and for `predict` `JoinScores` to the first; then `End` to all.
//!
//! A checkpoint between two epochs begins with `EpochDecided`, one within an epoch with `PlanSave` to all workers and
//! `DecideSave`. All tasks save their states (`TaskSaved`), the workers write them (`WritePart`, `PartWritten`), one of
//! them completes the checkpoint (`CommitCheckpoint`, `CheckpointWritten`). `EndSave` lets the tasks go on: as soon as
//! a snapshot of the rows is taken and the workers are told to write, or if there is no memory for one, when all is
//! written.

use std::path::PathBuf;

use algo::metric::MetricAccumulator;
use algo::param::ParamValues;
use algo::{EpochDecision, EpochReport, SavedModel};
use checkpoint::{Base, DataFile, PartFile, TrainingId};
use data::{BadLineTotal, KeyNames, Schema};
use job::{ScoringJob, TrainJob};
use model::{Manifest, TrainingPosition};
use rpc::layout::JobLayout;
use rpc::message::Base64Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::evaluation::EvaluationFacts;
use crate::failure::{FailureRank, ReadPosition};
use crate::prediction::PredictionFacts;
use crate::totals::{ChunkSummary, TaskSummary};

/// Encodes a message as `MessagePack` with the names of its fields. Unlike JSON, it represents numbers that are not
/// finite, and maps whose keys are numbers.
///
/// # Panics
/// Never for the messages of this file: they consist of texts, numbers, lists and maps.
pub fn encode(message: &impl Serialize) -> Base64Bytes {
    Base64Bytes(rmp_serde::to_vec_named(message).expect("texts, numbers, lists and maps can be encoded"))
}

/// Decodes a message; the error says what is not understood.
pub fn decode<T: DeserializeOwned>(bytes: &Base64Bytes) -> Result<T, String> {
    rmp_serde::from_slice(&bytes.0).map_err(|error| error.to_string())
}

/// A checkpoint in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointPlace {
    /// The folder of the training.
    pub location: String,
    pub number: u64,
}

/// A checkpoint from which a training continues.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResumePoint {
    pub place: CheckpointPlace,
    pub epoch: u64,
    pub is_within_epoch: bool,
    /// The largest clock of a task since the training began.
    pub clock: u64,
    pub task_count: u32,
    /// What the driver has saved.
    pub driver: Base64Bytes,
    /// What the user should know, as of damaged newer checkpoints.
    pub notices: Vec<String>,
}

/// What an earlier run of a job has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BegunTraining {
    pub training: TrainingId,
    /// The files of the data as that run has found them; none if they cannot be read again, or it is not known.
    pub data: Option<Vec<DataFile>>,
}

/// What of the parameters a worker writes into a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowsToSave {
    pub layout: JobLayout,
    /// What the driver keeps.
    pub driver: Base64Bytes,
    pub source: SourceOfRows,
}

/// Where the rows of a checkpoint are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceOfRows {
    /// The matrices themselves: nothing pushes until they are written.
    Matrices,
    /// All rows of the snapshot for this checkpoint.
    Snapshot,
    /// The rows of the snapshot that may have changed since the one before.
    Changes,
}

/// What is known of a scoring job before its first record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ScoringFacts {
    Prediction(PredictionFacts),
    Evaluation(Box<EvaluationFacts>),
}

/// What all workers of a scoring job must see alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataExtent {
    /// Number of chunks of the data.
    pub chunk_count: u32,
    /// Size of all files; none if it is not known.
    pub size_bytes: Option<u64>,
}

/// The chunks of one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkShare {
    pub first: u32,
    /// The chunk behind the last one.
    pub end: u32,
    /// Distance between two chunks: 1, or the number of workers.
    pub step: u32,
}

impl ChunkShare {
    /// Returns the numbers of the chunks.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (self.first..self.end).step_by(self.step as usize)
    }
}

/// What one worker scores.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScoringShare {
    /// The number of the part, from 0 in the order of the input.
    pub part: u32,
    /// The first of its tasks in the job, and the first of the next worker.
    pub tasks: (u32, u32),
    pub chunks: ChunkShare,
    /// The data as the first worker sees them.
    pub data: DataExtent,
    /// Where the part of the scores is written; none for `evaluate`.
    pub folder: Option<PathBuf>,
}

/// Messages from the driver to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToWorker {
    /// Requests to open and inspect the data. Answered by `DataInspected`.
    InspectData {
        job: Box<TrainJob>,
        /// What an earlier run of the job has begun: the job goes on from its newest checkpoint, if it has one.
        begun: Option<BegunTraining>,
    },
    /// Requests to open the worker's share of the data, and to scan it if necessary. Answered by `DataPrepared`.
    PrepareData {
        job: Box<TrainJob>,
        /// Schema of the data, as the first worker found it.
        schema: Schema,
        /// Number of tasks of the job.
        task_count: u32,
        /// First task of this worker.
        first: u32,
        /// Number of tasks of this worker.
        count: u32,
        /// Position at which training starts.
        start: TrainingPosition,
        /// Whether to survey the data, so that the open settings of the job can be chosen.
        survey: bool,
    },
    /// Requests to import the earlier model to the servers. Answered by `ModelImported`.
    ImportModel { layout: JobLayout },
    /// Requests to send rows of a checkpoint to the servers. Answered by `RowsRestored`.
    RestoreRows { layout: JobLayout, checkpoint: CheckpointPlace },
    /// Requests to run the tasks. Answered by `TaskEnded` for each task, or by `Failed`.
    Train {
        /// The parameters of the algorithm, with none open.
        params: ParamValues,
        layout: JobLayout,
        /// The model that training produces.
        model: SavedModel,
        /// Whether the matrices contain an earlier model.
        resumed: bool,
        /// The checkpoint whose states the tasks continue from. Its rows are in the matrices.
        checkpoint: Option<CheckpointPlace>,
    },
    /// Asks whether all tasks of the worker can save their states when they have made `clock` ticks; none: at their
    /// next step. Answered by `SavePlanned`. Until the decision, tasks that are so far wait.
    PlanSave { plan: u64, clock: Option<u64> },
    /// Decides about the plan: `true` if all workers agreed.
    DecideSave { plan: u64, is_confirmed: bool },
    /// The tasks, which have saved their states, go on.
    EndSave,
    /// Requests to write the states of the worker's tasks, and the rows if it is told to. Answered by `PartWritten` or
    /// `CheckpointFailed`.
    WritePart {
        checkpoint: CheckpointPlace,
        /// The name of the file.
        name: String,
        rows: Option<Box<RowsToSave>>,
    },
    /// Requests to make a checkpoint complete, and to remove old ones. Answered by `CheckpointWritten` or
    /// `CheckpointFailed`.
    CommitCheckpoint {
        location: String,
        manifest: Box<checkpoint::Manifest>,
        /// What people recognize the training by.
        title: String,
        /// How many checkpoints are kept.
        keep: usize,
    },
    /// Requests to remove what was written of a checkpoint that did not become complete. No answer.
    DropCheckpoint { checkpoint: CheckpointPlace },
    /// The decision after an epoch.
    EpochDecided {
        epoch: u64,
        /// The decision for all tasks.
        decision: EpochDecision,
    },
    /// Requests all tasks to stop at their next step.
    Stop,
    /// Reports that a task has failed, perhaps on another worker. Answered by `ReadingFinished` when no task of the
    /// worker reads any more.
    FinishReading {
        /// Position of the failure: nothing behind it needs to be read.
        position: Option<ReadPosition>,
    },
    /// Names of keys for the model to be written. The driver sends as many pieces as necessary, then
    /// `SaveModel`.
    KeyNames { names: KeyNames },
    /// Requests to write the model. Answered by `ModelSaved`.
    SaveModel {
        layout: JobLayout,
        /// The manifest without matrices and files.
        manifest: Box<Manifest>,
        /// The folder of checkpoints that is removed when the model is written, and the training that owns it.
        remove: Option<(String, TrainingId)>,
    },
    /// Requests to open the model and the data of a scoring job. Answered by `ScoringInspected`.
    InspectScoring { job: Box<ScoringJob> },
    /// Requests to score a share of the data. Answered for each chunk, in their order, by `ChunkMetrics` for `evaluate`
    /// and `ChunkScored`; then by `PartScored`.
    Score { job: Box<ScoringJob>, layout: JobLayout, share: ScoringShare },
    /// Requests to put the parts of the scores together. Answered by `ScoresJoined`.
    JoinScores { part_count: u32 },
    /// Reports that the job has ended, with success or failure.
    End {
        /// Reason of the failure; none after success.
        reason: Option<String>,
    },
}

/// Messages from a worker to the driver.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FromWorker {
    /// Describes the data.
    DataInspected {
        schema: Schema,
        /// Size of the input in bytes, if known.
        size_bytes: Option<u64>,
        /// Notices about how the input was interpreted.
        notices: Vec<String>,
        /// Number of tasks of the job.
        task_count: u32,
        /// Description of the run for people.
        greeting: String,
        /// The earlier model, if training continues from one.
        previous: Option<SavedModel>,
        /// Position at which training starts.
        start: TrainingPosition,
        training: TrainingId,
        /// The checkpoint from which training continues.
        resume: Option<ResumePoint>,
        /// The files of the data, if they can be read again from their beginning.
        data: Option<Vec<DataFile>>,
    },
    /// Reports that the worker's share of the data is open.
    DataPrepared {
        /// Whether the data were scanned.
        scanned: bool,
        /// Summary of each task.
        summaries: Vec<TaskSummary>,
    },
    /// Reports that the earlier model is on the servers.
    ModelImported {
        /// Notices for the user.
        notices: Vec<String>,
    },
    /// Reports that the rows of a checkpoint are on the servers.
    RowsRestored,
    /// The answer to `PlanSave`.
    SavePlanned {
        plan: u64,
        is_possible: bool,
        /// The largest clock of a task of the worker; none if it has no tasks yet.
        clock: Option<u64>,
    },
    /// Reports that a task has saved its state and waits for `EndSave`.
    TaskSaved {
        task: u32,
        /// The epoch that comes next or continues.
        epoch: u64,
        /// Ticks of the task since the training began.
        clock: u64,
    },
    /// Reports that a file of a checkpoint is written.
    PartWritten { number: u64, part: PartFile },
    /// Reports that a checkpoint is complete.
    CheckpointWritten { base: Base },
    /// Reports that a checkpoint cannot be written.
    CheckpointFailed { number: u64, error: String },
    /// Sums over the worker's tasks since the last `Progress`.
    Progress {
        steps: u64,
        records: u64,
        /// Sum of the losses of these records.
        loss_sum: f64,
        /// Number of input bytes read.
        bytes: u64,
        /// Number of input bytes read by a scan before the first step.
        scanned_bytes: u64,
        /// Seconds in which the tasks computed, without their waits; 0 if the worker does not measure them.
        busy_s: f64,
    },
    /// Reports that a task has ended an epoch.
    EpochEnded {
        report: EpochReport,
        /// Whether the tasks of this worker have been requested to stop: then the report may be incomplete.
        is_stopped: bool,
        /// Bad lines of all tasks of this worker so far, in training and in validation.
        bad_lines: [BadLineTotal; 2],
    },
    /// Names of keys in a task's data. The worker sends as many pieces as necessary, then `TaskEnded` of the task.
    KeyNames { names: KeyNames },
    /// Reports that a task has ended.
    TaskEnded {
        task: u32,
        /// Summary of what the task has read.
        summary: TaskSummary,
    },
    /// Reports that the model is written.
    ModelSaved {
        manifest: Box<Manifest>,
        /// Where it is, if something has come to the requested place meanwhile.
        beside: Option<PathBuf>,
        /// Notices for the user.
        notices: Vec<String>,
        /// Seconds of waiting for the disk.
        sync_s: f64,
    },
    /// Describes the data and the model of a scoring job.
    ScoringInspected {
        data: DataExtent,
        model: SavedModel,
        /// The folder for the parts of the scores.
        folder: Option<PathBuf>,
        facts: Box<ScoringFacts>,
    },
    /// Metrics of the next records of a chunk.
    ChunkMetrics { chunk: u32, metrics: Box<MetricAccumulator> },
    /// Reports that a chunk was scored.
    ChunkScored { chunk: u32, summary: Box<ChunkSummary> },
    /// Reports that the share of the worker is scored.
    PartScored { part: u32 },
    /// Reports that the scores are in their place.
    ScoresJoined,
    /// Reports a failure.
    Failed {
        /// The task that failed; none if the worker failed before its tasks started.
        task: Option<u32>,
        /// The text of the error.
        error: String,
        /// Exit code of a command that ends with this error.
        exit: u8,
        /// Whether something that the job uses was lost, and the job itself is right.
        is_loss: bool,
        /// Order among the failures of other tasks; none if no other task can have failed.
        rank: Option<FailureRank>,
    },
    /// Reports that no task of the worker reads any more.
    ReadingFinished,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: u64) -> KeyNames {
        // Keys of named features have their highest bit set, so an `f64` cannot represent them.
        (0..count).map(|i| (u64::MAX - i, format!("color=\"{i}\""))).collect()
    }

    #[test]
    fn names_of_keys_come_back() {
        let back = decode(&encode(&FromWorker::KeyNames { names: names(3) })).unwrap();
        assert!(matches!(back, FromWorker::KeyNames { names: back } if back == names(3)));
        let back = decode(&encode(&ToWorker::KeyNames { names: names(3) })).unwrap();
        assert!(matches!(back, ToWorker::KeyNames { names: back } if back == names(3)));
    }

    #[test]
    fn numbers_that_are_not_finite_come_back() {
        let values = vec![f64::NAN, f64::NEG_INFINITY, -0.0, 1.5];
        let back: Vec<f64> = decode(&encode(&values)).unwrap();
        let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&back), bits(&values));
    }

    #[test]
    fn bytes_that_are_no_message_are_refused() {
        let whole = encode(&FromWorker::KeyNames { names: names(3) });
        let unknown = Base64Bytes(rmp_serde::to_vec_named(&("Unknown", 3)).unwrap());
        let cut = Base64Bytes(whole.0[..whole.0.len() - 1].to_vec());
        for bytes in [Base64Bytes::default(), unknown, cut] {
            assert!(decode::<FromWorker>(&bytes).is_err(), "{:?}", bytes.0);
        }
    }
}
