//! A lane with a write-ahead log: its changes are written to a file before anything is sent.
//!
//! The log of a lane is segments `lane-L.N.log`, of which each goes on where the one before ends. When they have become
//! long, the lane begins another segment, and a thread writes the image of the lane at that moment, `lane-L.N.image`.
//! When it is whole, the segments before it are removed. So the log takes about as much as the lane has in memory and what
//! was changed since.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use rpc::message::{CloseJob, Durability, JobId};
use rpc::service::{ConnectionId, Effect, Service};
use rpc::{Message, Metrics};

use super::folder::{fault, remove_identity, sync_folder};
use super::image::{self, LaneImage};
use crate::changes::replay::replay_frames;
use crate::error::Error;
use crate::state::LaneState;

/// More recorded bytes are written although nothing is sent yet.
const BUFFER_BYTES: usize = 1 << 20;
/// An image is made when the segments have at least so many bytes.
const MIN_LOG_BYTES: u64 = 64 << 20;
/// And so many times the bytes of the lane in memory: writing an image then costs less than writing the log does.
const LOG_PER_MEMORY: u64 = 2;
/// The connection of a request that the lane makes itself.
const NOBODY: ConnectionId = u64::MAX;
/// Bytes after which an image is tried again when none could be made.
const RETRY_BYTES: u64 = 16 << 20;

/// A lane whose changes are logged.
pub(crate) struct LoggedLane {
    state: LaneState,
    /// None: the log was given up.
    log: Option<LaneLog>,
    /// What was read of an earlier process.
    pub(super) restored_count: u64,
    pub(super) restored_bytes: u64,
}

/// The files of a lane.
#[derive(Debug)]
struct LaneLog {
    folder: PathBuf,
    lane: u16,
    /// Whether each write is synced to the disk before anything is sent.
    is_synced: bool,
    /// The number of the last segment, and its file.
    last: u64,
    file: File,
    /// Bytes of all segments since the last image.
    bytes: u64,
    /// When `bytes` has reached it, an image is made.
    image_at_bytes: u64,
    /// Writes the image before segment `last`.
    writer: Option<JoinHandle<io::Result<()>>>,
}

impl LoggedLane {
    /// Reads what an earlier process has left in the folder.
    pub(super) fn restore(mut state: LaneState, folder: &Path, is_synced: bool) -> Result<Self, Error> {
        state.durability = if is_synced { Durability::SyncedLog } else { Durability::Log };
        let files = LaneFiles { folder, lane: state.config.lane };
        let (first, restored) = files.read(&mut state)?;
        let last = first + restored.segment_count.saturating_sub(1);
        let path = files.segment(last);
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.and_then(|file| file.set_len(restored.last_bytes).map(|()| file));
        let file = file.map_err(|error| fault(&path, &error))?;
        if is_synced {
            sync_folder(folder).map_err(|error| fault(folder, &error))?;
        }
        state.start_recording();
        let bytes = restored.bytes;
        let mut log = LaneLog {
            folder: folder.to_owned(),
            lane: state.config.lane,
            is_synced,
            last,
            file,
            bytes,
            image_at_bytes: 0,
            writer: None,
        };
        log.set_image_size(state.memory.bytes());
        Ok(Self { state, log: Some(log), restored_count: restored.change_count, restored_bytes: bytes })
    }

    /// Closes the jobs that the lane has read and that are not among these.
    pub(super) fn close_others(&mut self, continued: &[JobId]) {
        let ended: Vec<JobId> =
            self.state.jobs.keys().copied().filter(|job| !continued.contains(job)).collect();
        for job in ended {
            let reason = "it went on without this server, which was away for too long".into();
            let close = Message::CloseJob(CloseJob { request: 0, job, reason });
            // No task is connected yet, so nobody gets an answer.
            self.state.handle(Duration::ZERO, NOBODY, 0, close, &mut Vec::new());
        }
        self.write();
    }

    fn write(&mut self) {
        let (Some(log), Some(recorder)) = (&mut self.log, &mut self.state.recorder) else { return };
        let written = log.append(recorder.bytes());
        recorder.clear();
        if let Err(error) = written.and_then(|()| log.advance(&mut self.state)) {
            self.give_up(&error);
        }
    }

    /// Goes on without a log: if the server dies now, its jobs go back to their last checkpoints.
    fn give_up(&mut self, error: &io::Error) {
        let Some(log) = self.log.take() else { return };
        tracing::error!(
            lane = log.lane,
            folder = %log.folder.display(),
            %error,
            "the write-ahead log cannot be written: the server goes on without it, and if it dies, its jobs go back to \
             their last checkpoints"
        );
        self.state.recorder = None;
        self.state.durability = Durability::Checkpoint;
        remove_identity(&log.folder);
        LaneFiles { folder: &log.folder, lane: log.lane }.remove_all();
    }
}

impl LaneLog {
    fn files(&self) -> LaneFiles<'_> {
        LaneFiles { folder: &self.folder, lane: self.lane }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.file.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        if self.is_synced { self.file.sync_data() } else { Ok(()) }
    }

    fn set_image_size(&mut self, memory_bytes: u64) {
        self.image_at_bytes = MIN_LOG_BYTES.max(LOG_PER_MEMORY * memory_bytes);
    }

    /// Makes an image when the segments are long or the last job has ended, and removes what it replaces.
    fn advance(&mut self, state: &mut LaneState) -> io::Result<()> {
        if let Some(writer) = self.writer.take_if(|writer| writer.is_finished()) {
            let written = writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer panicked")));
            match written {
                Ok(()) => self.files().remove_before(self.last),
                Err(error) => self.on_image_failed(&error),
            }
        }
        let is_empty = state.jobs.is_empty() && self.bytes > 0;
        if self.writer.is_none() && (is_empty || self.bytes >= self.image_at_bytes) {
            self.start_image(state)?;
        }
        Ok(())
    }

    fn start_image(&mut self, state: &mut LaneState) -> io::Result<()> {
        state.count_memory();
        let (used, limit) = (state.memory.bytes(), state.config.memory_limit_bytes);
        // Everything may change while the image is written.
        let image = (2 * used <= limit || state.jobs.is_empty()).then(|| LaneImage::of(state)).flatten();
        let Some(image) = image else {
            let (lane, bytes) = (self.lane, self.bytes);
            tracing::info!(
                lane,
                bytes,
                used,
                limit,
                "no image of the lane can be made now: the write-ahead log grows"
            );
            self.image_at_bytes = self.bytes + RETRY_BYTES;
            return Ok(());
        };
        let next = self.last + 1;
        let path = self.files().segment(next);
        self.file = OpenOptions::new().create(true).append(true).open(path)?;
        if self.is_synced {
            sync_folder(&self.folder)?;
        }
        state.forget_recorded_key_lists();
        (self.last, self.bytes) = (next, 0);
        self.set_image_size(used);
        let (temporary, path) = (self.files().temporary(), self.files().image(next));
        let (folder, is_synced) = (self.folder.clone(), self.is_synced);
        let write = move || {
            let mut file = BufWriter::with_capacity(1 << 20, File::create(&temporary)?);
            image.write(&mut file)?;
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            if is_synced {
                file.sync_data()?;
            }
            std::fs::rename(&temporary, path)?;
            if is_synced { sync_folder(&folder) } else { Ok(()) }
        };
        if state.jobs.is_empty() {
            // It is short, and there may be no later moment.
            write()?;
            self.files().remove_before(next);
        } else {
            self.writer = Some(std::thread::Builder::new().name("image".into()).spawn(write)?);
        }
        Ok(())
    }

    fn on_image_failed(&mut self, error: &io::Error) {
        let (lane, folder) = (self.lane, self.folder.display());
        tracing::warn!(
            lane,
            %folder,
            %error,
            "the image of the lane cannot be written: the write-ahead log grows"
        );
        let _ = std::fs::remove_file(self.files().temporary());
    }
}

/// The names of the files of a lane.
#[derive(Clone, Copy)]
pub(super) struct LaneFiles<'a> {
    pub(super) folder: &'a Path,
    pub(super) lane: u16,
}

/// What was read of the files of a lane.
#[derive(Default)]
struct Restored {
    segment_count: u64,
    change_count: u64,
    /// Bytes of all segments, and those of the last one that are whole frames.
    bytes: u64,
    last_bytes: u64,
}

impl LaneFiles<'_> {
    fn segment(self, number: u64) -> PathBuf {
        self.folder.join(format!("lane-{}.{number}.log", self.lane))
    }

    fn image(self, number: u64) -> PathBuf {
        self.folder.join(format!("lane-{}.{number}.image", self.lane))
    }

    fn temporary(self) -> PathBuf {
        self.folder.join(format!(".lane-{}.image", self.lane))
    }

    /// The numbers of the files with this extension, ascending.
    fn numbers(self, extension: &str) -> Vec<u64> {
        let Ok(entries) = std::fs::read_dir(self.folder) else { return Vec::new() };
        let prefix = format!("lane-{}.", self.lane);
        let number = |name: &str| name.strip_prefix(&prefix)?.strip_suffix(extension)?.parse().ok();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut numbers: Vec<u64> = names.filter_map(|name| number(&name)).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The number of the first segment that counts: that of the last image, or 0.
    fn first_segment(self) -> u64 {
        self.numbers(".image").pop().unwrap_or(0)
    }

    /// Makes a new lane what the files say. Returns the number of the first segment.
    fn read(self, state: &mut LaneState) -> Result<(u64, Restored), Error> {
        let first = self.first_segment();
        self.remove_before(first);
        let _ = std::fs::remove_file(self.temporary());
        let damaged = |path: &Path, problem: String| Error::WriteAheadLog { path: path.to_owned(), problem };
        if first > 0 {
            let path = self.image(first);
            let file = File::open(&path).map_err(|error| fault(&path, &error))?;
            image::restore(file, state).map_err(|problem| damaged(&path, problem))?;
        }
        let mut restored = Restored::default();
        let numbers = self.numbers(".log");
        for (number, expected) in numbers.iter().zip(first..) {
            let path = self.segment(*number);
            if *number != expected {
                return Err(damaged(&path, format!("segment {expected}, which comes before it, is missing")));
            }
            let file = File::open(&path).map_err(|error| fault(&path, &error))?;
            let size = file.metadata().map_err(|error| fault(&path, &error))?.len();
            let (count, bytes) = replay_frames(file, state).map_err(|problem| damaged(&path, problem))?;
            // The process died while it wrote the end of the last segment: it was not acknowledged.
            if bytes < size && Some(number) != numbers.last() {
                return Err(damaged(&path, format!("byte {bytes}: its last frame is incomplete")));
            }
            restored.segment_count += 1;
            restored.change_count += count;
            restored.bytes += bytes;
            restored.last_bytes = bytes;
        }
        Ok((first, restored))
    }

    /// Removes the segments and images before segment `number`.
    fn remove_before(self, number: u64) {
        // What cannot be removed is tried again with the next image.
        for old in self.numbers(".log").into_iter().filter(|old| *old < number) {
            let _ = std::fs::remove_file(self.segment(old));
        }
        for old in self.numbers(".image").into_iter().filter(|old| *old < number) {
            let _ = std::fs::remove_file(self.image(old));
        }
    }

    pub(super) fn remove_all(self) {
        let _ = std::fs::remove_file(self.temporary());
        self.remove_before(u64::MAX);
    }
}

impl Service for LoggedLane {
    fn on_message(&mut self, now: Duration, at: ConnectionId, message: Message, out: &mut Vec<Effect>) {
        self.state.on_message(now, at, message, out);
        if self.state.recorder.as_ref().is_some_and(|recorder| recorder.bytes().len() >= BUFFER_BYTES) {
            self.write();
        }
    }

    fn on_closed(&mut self, now: Duration, at: ConnectionId, out: &mut Vec<Effect>) {
        self.state.on_closed(now, at, out);
    }

    fn on_time(&mut self, now: Duration, out: &mut Vec<Effect>) {
        self.state.on_time(now, out);
    }

    fn persist(&mut self) {
        self.write();
    }

    fn next_time(&self) -> Option<Duration> {
        self.state.next_time()
    }

    fn metrics(&self, out: &mut Metrics) {
        self.state.metrics(out);
        if let Some(log) = &self.log {
            let lane = log.lane.to_string();
            let help = "Bytes of the write-ahead log since the last image of the lane";
            out.gauge("seraphim_write_ahead_log_bytes", help, &[("lane", &lane)], log.bytes);
        }
    }
}
