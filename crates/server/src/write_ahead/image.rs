//! The image of a lane: everything that a lane is at one moment. A log begins with one, so that it does not grow with all
//! changes since the jobs were opened.
//!
//! An image begins with the length and the CRC-32C of a JSON text, and this text: everything but the rows. Frames follow: for
//! each job the request that opens it, the rows of its snapshots and its matrices, and its staged pushes. A lane that handles the frames has the rows, and gets
//! the clocks and push marks from the JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::time::Duration;

use matrix::clock::ClockTable;
use matrix::{KeyRun, RowPositions, Snapshot, StagedRun};
use rpc::codec::put_frame;
use rpc::message::{
    AddMatrix, DropMatrix, FaultKind, Import, JobId, KeepRows, KeyList, OpenJob, PartitionRun, Push,
    PushPosition, PushStaged,
};
use rpc::reader::FrameReader;
use rpc::{FrameLimits, Message};
use serde::{Deserialize, Serialize};

use crate::barrier::BarrierImage;
use crate::changes::replay::Replay;
use crate::closed_jobs::ClosedJobs;
use crate::job::Job;
use crate::refusal::Refusal;
use crate::staged_chunks::TokensImage;
use crate::state::LaneState;

/// Most bytes of the JSON text: a larger number is that of a damaged file.
const JSON_LIMIT_BYTES: u64 = 1 << 30;
/// Bytes of one read of an image.
const READ_BYTES: usize = 1 << 20;

/// A lane at one moment. The rows are shared with the lane until they change there.
pub(crate) struct LaneImage {
    jobs: Vec<JobImage>,
    state: LaneRecord,
}

struct JobImage {
    open: OpenJob,
    /// Matrices that were added after the job was opened, in order, with their partitions.
    added: Vec<AddMatrix>,
    dropped: BTreeSet<u32>,
    /// The rows of each matrix: of the snapshots that the job has, with their numbers, then those of now.
    snapshots: Vec<(Option<u32>, Vec<Snapshot>)>,
    /// The partitions of each matrix: all of them, and those of the lane.
    partition_counts: Vec<(u64, u64)>,
    staged: Vec<(u32, StagedRun)>,
    chunks: Vec<PushStaged>,
}

/// The lane without its rows.
#[derive(Debug, Serialize, Deserialize)]
struct LaneRecord {
    frame_count: u64,
    close_reasons: ClosedJobs,
    jobs: BTreeMap<JobId, JobRecord>,
}

#[derive(Debug, Serialize, Deserialize)]
struct JobRecord {
    clock_table: ClockTable,
    marks: Vec<PushPosition>,
    function_faults: BTreeMap<u32, (PushPosition, FaultKind, String)>,
    barrier: BarrierImage,
    tokens: Vec<TokensImage>,
}

impl LaneImage {
    /// The lane as it is. `None` while a function waits for the end of its clock or has failed there: then a later moment
    /// serves.
    pub(crate) fn of(lane: &LaneState) -> Option<Self> {
        let mut image = Self {
            jobs: Vec::new(),
            state: LaneRecord {
                frame_count: 0,
                close_reasons: lane.closed_jobs.clone(),
                jobs: BTreeMap::new(),
            },
        };
        for (id, job) in &lane.jobs {
            image.jobs.push(JobImage::of(*id, job)?);
            image.state.jobs.insert(*id, JobRecord::of(job)?);
        }
        image.state.frame_count = image.jobs.iter().map(JobImage::frame_count).sum();
        Some(image)
    }

    /// Writes the image. Returns the number of its bytes.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<u64> {
        let state = serde_json::to_vec(&self.state).map_err(io::Error::other)?;
        out.write_all(&(state.len() as u64).to_le_bytes())?;
        out.write_all(&crc32c::crc32c(&state).to_le_bytes())?;
        out.write_all(&state)?;
        let mut frames = FrameWriter { out, bytes: 12 + state.len() as u64, buffer: Vec::new(), count: 0 };
        self.jobs.iter().try_for_each(|job| job.write(&mut frames))?;
        debug_assert_eq!(frames.count, self.state.frame_count);
        Ok(frames.bytes)
    }
}

/// Makes a new lane what it was when the image was made. The error says what is wrong with the image.
pub(crate) fn restore(mut source: impl Read, lane: &mut LaneState) -> Result<(), String> {
    let cut = |error: io::Error| format!("its beginning cannot be read: {error}");
    let (mut length, mut crc) = ([0; 8], [0; 4]);
    source.read_exact(&mut length).and_then(|()| source.read_exact(&mut crc)).map_err(cut)?;
    let length = u64::from_le_bytes(length);
    if length > JSON_LIMIT_BYTES {
        return Err(format!("its beginning says {length} bytes of JSON, the limit is {JSON_LIMIT_BYTES}"));
    }
    let mut json = Vec::new();
    source.by_ref().take(length).read_to_end(&mut json).map_err(cut)?;
    if json.len() as u64 != length || crc32c::crc32c(&json) != u32::from_le_bytes(crc) {
        return Err("its JSON is damaged".into());
    }
    let record: LaneRecord = serde_json::from_slice(&json).map_err(|error| error.to_string())?;
    let count = restore_rows(source, lane)?;
    if count != record.frame_count {
        return Err(format!("it has {count} frames, expected {}", record.frame_count));
    }
    lane.closed_jobs = record.close_reasons;
    for (id, record) in record.jobs {
        let job = lane.jobs.get_mut(&id).ok_or_else(|| format!("job {id} is missing"))?;
        record.restore(job)?;
    }
    lane.count_memory();
    Ok(())
}

/// Handles the frames. Returns their number.
fn restore_rows(mut source: impl Read, lane: &mut LaneState) -> Result<u64, String> {
    let mut reader = FrameReader::new(FrameLimits::default(), READ_BYTES);
    let mut replay = Replay::new(lane);
    let mut count = 0;
    loop {
        while let Some(frame) = reader.frame().map_err(|error| error.to_string())? {
            let message = Message::from_frame(frame).map_err(|error| error.to_string())?;
            match message {
                // The clocks and marks of the job are restored later, so this push has no turn yet.
                Message::Push(push) => stage(lane, push)?,
                message => replay.apply(lane, Duration::ZERO, message)?,
            }
            count += 1;
        }
        match source.read(reader.space()).map_err(|error| error.to_string())? {
            0 => break,
            bytes => reader.advance(bytes),
        }
    }
    replay.finish(lane);
    Ok(count)
}

fn stage(lane: &mut LaneState, push: Push) -> Result<(), String> {
    let id = matrix::PushId { clock: push.clock, task: push.task, index: push.index };
    let ([run], KeyList::Listed(keys)) = (&push.runs[..], &push.keys) else {
        return Err("a staged push is not one run of keys".into());
    };
    let values = push.values.into_values();
    let matrix = lane.job(push.job).and_then(|job| job.matrix(push.matrix)).map_err(|fault| fault.text)?;
    let run = KeyRun { partition: run.partition, table: push.table, keys };
    let pushed = matrix.push(run, &mut RowPositions::default(), id, values.as_values());
    pushed.map_err(|error| error.to_string())
}

impl JobImage {
    fn of(id: JobId, job: &Job) -> Option<Self> {
        let first_added = job.open_request.matrices.len() as u32;
        let mut image = Self {
            open: job.open_request.clone(),
            added: Vec::new(),
            dropped: job.dropped_matrices.clone(),
            snapshots: Vec::new(),
            partition_counts: Vec::new(),
            staged: Vec::new(),
            chunks: job.staged_chunks.chunks(id),
        };
        let taken = (0..).zip(&job.snapshots);
        image.snapshots.extend(taken.filter_map(|(number, taken)| Some((Some(number), taken.clone()?))));
        let rows: Result<Vec<_>, _> = job.matrices.iter().map(|matrix| matrix.snapshot(0)).collect();
        image.snapshots.push((None, rows.ok()?));
        for (number, matrix) in (0..).zip(&job.matrices) {
            let (all, own) = (matrix.spec().partitioner.partition_count(), matrix.partition_numbers());
            image.partition_counts.push((u64::from(all), own.len() as u64));
            image.staged.extend(matrix.staged_runs().ok()??.into_iter().map(|run| (number, run)));
            if number >= first_added {
                let spec = Box::new(matrix.spec().clone());
                image.added.push(AddMatrix {
                    request: 0,
                    job: id,
                    matrix: number,
                    spec,
                    owned_partitions: own,
                });
            }
        }
        Some(image)
    }

    /// Number of frames of a snapshot.
    fn block_count(snapshot: &Snapshot) -> u64 {
        snapshot.block_count().max(1)
    }

    fn frame_count(&self) -> u64 {
        let rows: u64 = self.snapshots.iter().flat_map(|(_, all)| all).map(Self::block_count).sum();
        let parts = [self.added.len(), self.dropped.len(), self.staged.len(), self.chunks.len()];
        // The job, its snapshots without the rows that it has now.
        let others: usize = parts.iter().sum();
        1 + (self.snapshots.len() as u64 - 1) + rows + others as u64
    }

    fn write(&self, out: &mut FrameWriter<'_, impl Write>) -> io::Result<()> {
        let job = self.open.job;
        out.put(&Message::OpenJob(self.open.clone()))?;
        self.added.iter().try_for_each(|add| out.put(&Message::AddMatrix(add.clone())))?;
        for (number, matrices) in &self.snapshots {
            for (matrix, snapshot) in (0..).zip(matrices) {
                self.write_rows(matrix, snapshot, out)?;
            }
            if let Some(snapshot) = *number {
                out.put(&Message::KeepRows(KeepRows { request: 0, job, snapshot, records_changes: false }))?;
            }
        }
        for &matrix in &self.dropped {
            out.put(&Message::DropMatrix(DropMatrix { request: 0, job, matrix }))?;
        }
        for (matrix, StagedRun { partition, table, id, keys, values }) in &self.staged {
            out.put(&Message::Push(Push {
                request: 0,
                job,
                task: id.task,
                clock: id.clock,
                index: id.index,
                matrix: *matrix,
                table: *table,
                runs: vec![PartitionRun { partition: *partition, count: keys.len() as u32 }],
                keys: KeyList::Listed(keys.clone()),
                values: values.clone().into(),
            }))?;
        }
        self.chunks.iter().try_for_each(|chunk| out.put(&Message::PushStaged(chunk.clone())))
    }

    fn write_rows(
        &self,
        matrix: u32,
        snapshot: &Snapshot,
        out: &mut FrameWriter<'_, impl Write>,
    ) -> io::Result<()> {
        let (all, own) = self.partition_counts[matrix as usize];
        // An import names the rows of the whole matrix.
        let row_count = snapshot.row_count() * all / own.max(1);
        for block in 0..Self::block_count(snapshot) {
            let rows = if block < snapshot.block_count() {
                snapshot.block(block)
            } else {
                matrix::RowBlock::none(snapshot.spec())
            };
            let (keys, values) = rows.into_sections();
            out.put(&Message::Import(Import {
                request: 0,
                job: self.open.job,
                matrix,
                first: block == 0,
                row_count,
                with_slots: true,
                keys,
                values,
            }))?;
        }
        Ok(())
    }
}

impl JobRecord {
    fn of(job: &Job) -> Option<Self> {
        let faults = job.function_faults.iter();
        let faults = faults.map(|(task, (at, fault))| (*task, (*at, fault.kind, fault.text.clone())));
        Some(Self {
            clock_table: job.clock_table.clone(),
            marks: job.marks.clone(),
            function_faults: faults.collect(),
            barrier: job.barrier.image()?,
            tokens: job.staged_chunks.tokens(),
        })
    }

    fn restore(self, job: &mut Job) -> Result<(), String> {
        let count = self.clock_table.task_count() as usize;
        if self.marks.len() != count || self.barrier.task_count() != count {
            return Err(format!("job {}: its lists of tasks differ in length", job.open_request.job));
        }
        let faults = self.function_faults.into_iter();
        let faults = faults.map(|(task, (at, kind, text))| (task, (at, Refusal::new(kind, text))));
        job.function_faults = faults.collect();
        job.clock_table = self.clock_table;
        job.marks = self.marks;
        job.connections = vec![None; count];
        job.barrier.restore(self.barrier);
        job.staged_chunks.restore_tokens(self.tokens);
        Ok(())
    }
}

struct FrameWriter<'a, W> {
    out: &'a mut W,
    bytes: u64,
    buffer: Vec<u8>,
    count: u64,
}

impl<W: Write> FrameWriter<'_, W> {
    fn put(&mut self, message: &Message) -> io::Result<()> {
        self.buffer.clear();
        put_frame(message, true, &FrameLimits::default(), &mut self.buffer).map_err(io::Error::other)?;
        self.bytes += self.buffer.len() as u64;
        self.count += 1;
        self.out.write_all(&self.buffer)
    }
}
