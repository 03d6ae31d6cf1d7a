//! What a worker does for checkpoints: it finds the one from which a job continues, writes the states of its tasks and
//! the rows, completes a checkpoint, and sends its rows back to the servers.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{SystemTime, UNIX_EPOCH};

use algo::TaskState;
use checkpoint::folder::Claim;
use checkpoint::{Content, DataFile, Folder, Manifest, PartFile, RowsOf, SavedTask, TrainingId};
use driver::Error;
use driver::messages::{
    BegunTraining, CheckpointPlace, FromWorker, ResumePoint, RowsToSave, SourceOfRows, ToWorker,
};
use job::TrainJob;
use job::checkpoints::{CheckpointEvery, CheckpointSettings, differences};
use job::raw::RawJob;
use matrix::RowBlock;
use rpc::message::Base64Bytes;

use crate::failures::panic_message;
use crate::saved_job::{resume_place, saved_job_of};
use crate::worker::MatrixAccess;
use crate::worker::coordinator::TaskCoordinator;
use crate::worker::data_files::check_data;

/// Number of blocks of a checkpoint that are read before they are imported.
const READ_AHEAD_BLOCKS: usize = 4;

/// The training that a job is, and where it continues.
pub struct FoundTraining {
    pub training: TrainingId,
    pub resume: Option<ResumePoint>,
    /// What the user should know of a run that does not continue from a checkpoint.
    pub notices: Vec<String>,
}

/// A new identity.
pub fn new_training() -> TrainingId {
    let random = RandomState::new().build_hasher().finish();
    TrainingId::from(format!("{random:016x}").as_str())
}

/// Finds the checkpoint from which a job continues. `begun` is what an earlier run of the same job has begun: this run goes
/// on with the same data, or not at all.
pub fn find_training(
    job: &TrainJob,
    begun: Option<BegunTraining>,
    data: Option<&[DataFile]>,
) -> Result<FoundTraining, Error> {
    let settings = &job.checkpoints;
    let is_on = settings.every != CheckpointEvery::Off && data.is_some();
    if data.is_none() && (settings.is_asked_for || settings.resume.is_some()) {
        return Err(Error::request(
            "checkpoints of a training whose data cannot be read again, as standard input",
            "write the data to files, or leave the settings of checkpoints out",
        ));
    }
    let mut notices = Vec::new();
    if let Some(BegunTraining { training, data: before }) = &begun {
        if is_on && let Some(continued) = continued_training(settings, training, data.unwrap_or_default())? {
            return Ok(continued);
        }
        if let Some(before) = before {
            notices = check_data("the first run of this job", before, data.unwrap_or_default())?;
        }
    }
    if let Some((location, number)) = resume_place(settings) {
        let folder = Folder::open(&location)?;
        let (manifest, damages) = saved(&folder, number)?;
        check_job(&folder, &manifest, &job.given)?;
        return resumed(&folder, manifest, damages, data.unwrap_or_default());
    }
    let training = begun.map_or_else(new_training, |begun| begun.training);
    if is_on {
        let folder = Folder::open(&settings.location)?;
        check_folder(&folder, &training, job.overwrite)?;
        // The folder beside the model can be written if the model can.
        if !settings.is_temporary {
            folder.check_writable()?;
        }
    }
    Ok(FoundTraining { training, resume: None, notices })
}

/// What an earlier run of the same job has saved; none if it has not saved anything.
fn continued_training(
    settings: &CheckpointSettings,
    training: &TrainingId,
    data: &[DataFile],
) -> Result<Option<FoundTraining>, Error> {
    let folder = Folder::open(&settings.location)?;
    if folder.claim()?.is_none_or(|claim| claim.training != *training) {
        return Ok(None);
    }
    let (latest, damages) = folder.latest()?;
    let damages = damages.iter().map(damage_notice).collect();
    latest.map(|manifest| resumed(&folder, manifest, damages, data)).transpose()
}

/// The training of a checkpoint, which goes on there if the data are the same.
fn resumed(
    folder: &Folder,
    manifest: Manifest,
    mut notices: Vec<String>,
    data: &[DataFile],
) -> Result<FoundTraining, Error> {
    let owner = format!("checkpoint {} in {}", manifest.number, folder.location());
    notices.extend(check_data(&owner, &manifest.data, data)?);
    let resume = Some(resume_point(folder, &manifest, notices)?);
    Ok(FoundTraining { training: manifest.training, resume, notices: Vec::new() })
}

/// Checks that a new training may write to a folder.
fn check_folder(folder: &Folder, training: &TrainingId, overwrite: bool) -> Result<(), Error> {
    match folder.claim()? {
        Some(claim) if claim.training != *training && overwrite => Ok(folder.remove_all(&claim.training)?),
        _ => Ok(folder.check_owner(training)?),
    }
}

fn saved(folder: &Folder, number: Option<u64>) -> Result<(Manifest, Vec<String>), Error> {
    if let Some(number) = number {
        let manifest = folder.manifest(number)?;
        folder.verify(&manifest)?;
        return Ok((manifest, Vec::new()));
    }
    let (latest, mut damages) = folder.latest()?;
    match latest {
        Some(manifest) => Ok((manifest, damages.iter().map(damage_notice).collect())),
        None if !damages.is_empty() => Err(damages.swap_remove(0).into()),
        None => Err(checkpoint::Error::NoCheckpoint { location: folder.location().to_owned() }.into()),
    }
}

fn damage_notice(error: &checkpoint::Error) -> String {
    format!("a newer checkpoint is not used: {error}")
}

fn check_job(folder: &Folder, manifest: &Manifest, raw: &RawJob) -> Result<(), Error> {
    let saved = saved_job_of(manifest, folder.location())?;
    let differences = differences(&saved, &raw.clone().with_absolute_paths());
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::request(
        format!(
            "the job is not the one of checkpoint {} in {}: {}",
            manifest.number,
            folder.location(),
            differences.join("; ")
        ),
        "give the same settings, or only --resume, which takes them from the checkpoint",
    ))
}

fn resume_point(folder: &Folder, manifest: &Manifest, notices: Vec<String>) -> Result<ResumePoint, Error> {
    let part = manifest.parts.iter().find(|part| part.has_rows);
    let mut reader = match part {
        Some(part) => folder.open_part(manifest, part)?,
        None => return Err(checkpoint::Error::NoCheckpoint { location: folder.location().to_owned() }.into()),
    };
    let driver = match reader.read()? {
        Some(Content::Driver(bytes)) => bytes,
        _ => Vec::new(),
    };
    Ok(ResumePoint {
        place: CheckpointPlace { location: folder.location().to_owned(), number: manifest.number },
        epoch: manifest.epoch,
        is_within_epoch: manifest.is_within_epoch,
        clock: manifest.clock,
        task_count: manifest.task_count,
        driver: Base64Bytes(driver),
        notices,
    })
}

/// The states of tasks in a checkpoint.
pub fn states(place: &CheckpointPlace, tasks: std::ops::Range<u32>) -> Result<Vec<TaskState>, Error> {
    let folder = Folder::open(&place.location)?;
    let saved = folder.states(&folder.manifest(place.number)?, tasks)?;
    let state_of = |saved: SavedTask| {
        let SavedTask { algorithm, task, task_count, epoch, clock, bytes } = saved;
        TaskState { algorithm, task, task_count, epoch, clock, bytes }
    };
    Ok(saved.into_iter().map(state_of).collect())
}

/// Sends the rows of a checkpoint to the matrices: those of the checkpoints on which it builds first.
pub fn restore_rows(place: &CheckpointPlace, matrices: &mut dyn MatrixAccess) -> Result<(), Error> {
    let folder = Folder::open(&place.location)?;
    let manifest = folder.manifest(place.number)?;
    let chain = folder.chain(&manifest)?;
    for (matrix, spec) in (0..).zip(&manifest.matrices) {
        let row_count = chain.iter().map(|each| row_count(each, matrix)).max();
        matrices.import(matrix, &RowBlock::none(spec), row_count)?;
    }
    chain.iter().try_for_each(|each| restore_rows_of(&folder, each, matrices))
}

/// Sends the rows that a checkpoint itself has to the matrices.
fn restore_rows_of(
    folder: &Folder,
    manifest: &Manifest,
    matrices: &mut dyn MatrixAccess,
) -> Result<(), Error> {
    std::thread::scope(|scope| {
        // Blocks are read, checked and decoded while others are imported.
        let (sender, blocks) = sync_channel(READ_AHEAD_BLOCKS);
        let mut blocks = blocks.into_iter();
        let reading = scope.spawn(move || read_rows(folder, manifest, &sender));
        let imported = matrices.import_all(&mut blocks);
        // A reader that waits for the import ends with the channel.
        drop(blocks);
        let read = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        imported.and(read)
    })
}

/// The number of rows of a matrix; 0 if it is not known.
fn row_count(manifest: &Manifest, matrix: u32) -> u64 {
    let key_bytes = size_of::<u64>() as u64;
    let counts = manifest.parts.iter().filter_map(|part| {
        // A file does not have more keys than fit into it.
        Some(part.row_counts.get(matrix as usize)?.min(&(part.size_bytes / key_bytes)).to_owned())
    });
    counts.sum()
}

fn read_rows(
    folder: &Folder,
    manifest: &Manifest,
    sender: &SyncSender<(u32, RowBlock)>,
) -> Result<(), Error> {
    for part in manifest.parts.iter().filter(|part| part.has_rows) {
        let mut reader = folder.open_part(manifest, part)?;
        while let Some(content) = reader.read()? {
            if let Content::Rows { matrix, of: RowsOf::Now, rows } = content
                && sender.send((matrix, rows)).is_err()
            {
                // The import has failed.
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Carries out a request to write on a thread of its own, because the thread of the job waits for its tasks. The states
/// of the tasks are taken at once: the tasks may go on when this returns.
pub fn write(coordinator: &Arc<TaskCoordinator>, message: ToWorker) {
    let coordinator = Arc::clone(coordinator);
    let states = match &message {
        ToWorker::WritePart { .. } => coordinator.take_saved_states(),
        _ => Vec::new(),
    };
    std::thread::spawn(move || {
        let number = match &message {
            ToWorker::WritePart { checkpoint, .. } => checkpoint.number,
            ToWorker::CommitCheckpoint { manifest, .. } => manifest.number,
            _ => return,
        };
        let write = std::panic::AssertUnwindSafe(|| carry_out(&coordinator, message, states));
        let answer = match std::panic::catch_unwind(write) {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => FromWorker::CheckpointFailed { number, error: error.to_string() },
            Err(panic) => {
                let error = format!("a fault of this program: {}", panic_message(&*panic));
                FromWorker::CheckpointFailed { number, error }
            }
        };
        coordinator.send(answer);
    });
}

/// Removes what was written of a checkpoint that did not become complete, on a thread of its own.
pub fn drop_parts(place: CheckpointPlace) {
    std::thread::spawn(move || {
        let removed = Folder::open(&place.location).and_then(|folder| folder.remove_incomplete(place.number));
        if let Err(error) = removed {
            tracing::warn!(%error, "the parts of a checkpoint that did not become complete cannot be removed");
        }
    });
}

fn carry_out(
    coordinator: &TaskCoordinator,
    message: ToWorker,
    states: Vec<TaskState>,
) -> Result<FromWorker, Error> {
    match message {
        ToWorker::WritePart { checkpoint, name, rows } => {
            let part = write_part(coordinator, (&checkpoint, &name), states, rows.as_deref())?;
            Ok(FromWorker::PartWritten { number: checkpoint.number, part })
        }
        ToWorker::CommitCheckpoint { location, mut manifest, title, keep } => {
            let folder = Folder::open(&location)?;
            manifest.created_s =
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
            let job = RawJob::from_submitted(&manifest.job)?.with_absolute_paths();
            manifest.job = serde_json::json!(job);
            folder.take(&Claim { training: manifest.training.clone(), title })?;
            let base = folder.commit(&manifest)?;
            folder.prune(keep, manifest.number)?;
            Ok(FromWorker::CheckpointWritten { base })
        }
        _ => unreachable!("only these two are carried out here"),
    }
}

fn write_part(
    coordinator: &TaskCoordinator,
    (place, name): (&CheckpointPlace, &str),
    states: Vec<TaskState>,
    rows: Option<&RowsToSave>,
) -> Result<PartFile, Error> {
    let folder = Folder::open(&place.location)?;
    let failed = |source| folder.write_error(place.number, name, source);
    let mut part = folder.create_part(place.number, name)?;
    if let Some(rows) = rows {
        part.write_driver(&rows.driver.0).map_err(failed)?;
    }
    let mut tasks = BTreeSet::new();
    for state in states {
        let TaskState { algorithm, task, task_count, epoch, clock, bytes } = state;
        tasks.insert(task);
        part.write_task(&SavedTask { algorithm, task, task_count, epoch, clock, bytes }).map_err(failed)?;
    }
    let mut row_counts = Vec::new();
    if let Some(RowsToSave { layout, source, .. }) = rows {
        let mut matrices = coordinator.context().parameters.open(layout)?;
        for matrix in 0..layout.matrices.len() as u32 {
            let mut row_count = 0;
            let mut write = |rows: &RowBlock| {
                check_finite(&layout.matrices[matrix as usize].name, rows)?;
                row_count += rows.keys.len() as u64;
                Ok(part.write_rows(matrix, RowsOf::Now, rows).map_err(failed)?)
            };
            match source {
                SourceOfRows::Matrices => read_current(matrix, &mut *matrices, &mut write)?,
                SourceOfRows::Snapshot => matrices.read_snapshot(matrix, false, &mut write)?,
                SourceOfRows::Changes => matrices.read_snapshot(matrix, true, &mut write)?,
            }
            row_counts.push(row_count);
        }
    }
    let size_bytes = folder.finish_part(place.number, name, part)?;
    Ok(PartFile { name: name.to_owned(), size_bytes, tasks, has_rows: rows.is_some(), row_counts })
}

/// Refuses rows that a training could not continue with.
fn check_finite(matrix: &str, rows: &RowBlock) -> Result<(), Error> {
    match rows.first_non_finite(true) {
        None => Ok(()),
        Some((key, _, value)) => Err(Error::UnusableData {
            what: format!(
                "the training has diverged: a value in the row {key} of the matrix {matrix} is {value}"
            ),
            exit: job::Exit::Data,
        }),
    }
}

/// Gives the rows that a matrix has now to `write`, in blocks.
fn read_current(
    matrix: u32,
    matrices: &mut dyn MatrixAccess,
    write: &mut dyn FnMut(&RowBlock) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut rows = matrices.rows_from(matrix as usize, 0)?;
    while let Some(last) = rows.keys.last() {
        write(&rows)?;
        rows = matrices.rows_from(matrix as usize, last + 1)?;
    }
    Ok(())
}

/// Removes the checkpoints of a training whose model is saved.
pub fn remove(location: &str, training: &TrainingId) -> Result<(), Error> {
    Ok(Folder::open(location)?.remove_all(training)?)
}
