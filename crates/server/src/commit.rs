//! Staged pushes of foreign hosts. The lane checks and stages chunks; the first commit of a part merges the chunks of
//! its attempt. Push functions are not staged: the first commit of a part runs them.

use matrix::{FunctionCall, KeyRun, Matrix, PushId, RowPositions, Values};
use rpc::message::{
    CloseToken, Commit, CommitFunction, Committed, FaultKind, Message, PartitionRun, PushStaged,
};
use rpc::service::{ConnectionId, Effect};

use crate::job::Job;
use crate::key_lists::TableId;
use crate::push::NO_KEYS;
use crate::refusal::Refusal;
use crate::staged_chunks::{ATTEMPT_BYTES, ChunkStatus, CommitDecision, StagedChunk, StagedChunks};
use crate::state::LaneState;

impl LaneState {
    pub(crate) fn push_staged(&mut self, at: ConnectionId, mut push: PushStaged, out: &mut Vec<Effect>) {
        match self.stage(at, &mut push) {
            Ok(()) => self.reply_done(at, push.request, push.job, out),
            Err(refusal) => {
                let PushStaged { matrix, token, part, attempt, chunk, .. } = push;
                let name = format!(
                    "staged push (matrix {matrix}, token {token}, part {part}, attempt {attempt}, chunk {chunk})"
                );
                self.refuse(at, push.request, refusal.with_context(name), out);
            }
        }
    }

    fn stage(&mut self, at: ConnectionId, push: &mut PushStaged) -> Result<(), Refusal> {
        self.check_session(at, push.job)?;
        let open = self.job(push.job)?;
        open.matrix(push.matrix)?;
        match open.staged_chunks.status(push)? {
            ChunkStatus::New => {}
            ChunkStatus::Duplicate | ChunkStatus::Late => {
                open.staged_chunks.counts.dropped_chunks += 1;
                return Ok(());
            }
        }
        let mut chunk = self.checked_chunk(at, push)?;
        self.check_staging_memory(chunk.bytes())?;
        if let Some(recorder) = &mut self.recorder {
            recorder.record_chunk(push, &mut chunk);
        }
        self.job(push.job)?.staged_chunks.stage(push, chunk);
        Ok(())
    }

    /// Takes the keys and values of a push as a chunk, and checks that it can be merged.
    fn checked_chunk(&mut self, at: ConnectionId, push: &mut PushStaged) -> Result<StagedChunk, Refusal> {
        let (runs, keys) = (std::mem::take(&mut push.runs), std::mem::replace(&mut push.keys, NO_KEYS));
        let place = TableId { job: push.job, matrix: push.matrix, table: push.table };
        let (Some(connection), Some(open)) = (self.connections.get_mut(&at), self.jobs.get_mut(&push.job))
        else {
            return Err(Refusal::new(FaultKind::NoSuchJob, "the session has ended"));
        };
        let mut list = connection.key_lists.take(runs, keys)?;
        let (runs, keys, _) = list.with_positions(place);
        let values = std::mem::replace(&mut push.values, matrix::OwnedValues::F32(Vec::new()));
        let mut chunk = StagedChunk {
            table: push.table,
            runs: runs.to_vec(),
            keys: keys.to_vec(),
            positions: vec![RowPositions::default(); runs.len()],
            values,
        };
        connection.key_lists.put(list);
        chunk.check(open.matrix(push.matrix)?)?;
        Ok(chunk)
    }

    /// Refuses a chunk when the staged bytes would exceed their limit, or the memory that the rows leave. The rows are
    /// counted from time to time, so the bound is not exact.
    fn check_staging_memory(&self, bytes: u64) -> Result<(), Refusal> {
        let left = self.config.memory_limit_bytes.saturating_sub(self.memory.bytes());
        let (used, limit) = (self.staged_bytes(), self.config.staged_limit_bytes.min(left));
        if used.saturating_add(bytes) <= limit {
            return Ok(());
        }
        let of = |(id, job): (&u32, &Job)| {
            let bytes = job.staged_chunks.bytes();
            (bytes > 0)
                .then(|| format!("session {id} {bytes} under {} tokens", job.staged_chunks.token_count()))
        };
        let parts: Vec<String> = self.jobs.iter().filter_map(of).collect();
        let parts = if parts.is_empty() { "none".to_owned() } else { parts.join(" + ") };
        let why = if limit == left { ", the memory limit minus the rows" } else { "" };
        let text = format!(
            "{bytes} bytes in addition to the {used} bytes that are staged on lane {} ({parts}); the limit is \
             {limit}{why}: commit, close unused tokens, or use a larger limit",
            self.config.lane,
        );
        Err(Refusal::new(FaultKind::TooLarge, text))
    }

    /// Staged bytes of all sessions.
    pub(crate) fn staged_bytes(&self) -> u64 {
        self.jobs.values().map(|job| StagedChunks::bytes(&job.staged_chunks)).sum()
    }

    pub(crate) fn commit(&mut self, at: ConnectionId, commit: Commit, out: &mut Vec<Effect>) {
        let winner = self.apply_commit(at, &commit);
        self.answer_commit(at, &commit, winner, out);
    }

    pub(crate) fn commit_function(
        &mut self,
        at: ConnectionId,
        commit: CommitFunction,
        out: &mut Vec<Effect>,
    ) {
        let CommitFunction { request, job, matrix, token, part, attempt, calls } = commit;
        let commit = Commit { request, job, matrix, token, part, attempt, chunks: 0 };
        let winner = self.apply_function_commit(at, &commit, &calls);
        self.answer_commit(at, &commit, winner, out);
    }

    fn answer_commit(
        &mut self,
        at: ConnectionId,
        commit: &Commit,
        winner: Result<u64, Refusal>,
        out: &mut Vec<Effect>,
    ) {
        let Commit { request, matrix, token, part, attempt, .. } = *commit;
        match winner {
            Ok(winner) => {
                let message = Message::Committed(Committed { request, attempt: winner });
                out.push(Effect::Send { connection: at, message });
            }
            Err(refusal) => {
                let name = format!("commit (matrix {matrix}, token {token}, part {part}, attempt {attempt})");
                self.refuse(at, request, refusal.with_context(name), out);
            }
        }
    }

    /// Merges the chunks of the first commit. Returns the attempt that counts.
    fn apply_commit(&mut self, at: ConnectionId, commit: &Commit) -> Result<u64, Refusal> {
        self.check_session(at, commit.job)?;
        self.check_memory(0)?;
        if commit.chunks == 0 {
            // A commit without chunks frees nothing, and the winning attempt takes memory.
            self.check_staging_memory(ATTEMPT_BYTES)?;
        }
        let open = self.job(commit.job)?;
        open.matrix(commit.matrix)?;
        let chunks = match open.staged_chunks.commit(commit)? {
            CommitDecision::Repeated(winner) => return Ok(winner),
            CommitDecision::First(chunks) => chunks,
        };
        let mut count = 0;
        for (index, mut chunk) in chunks.into_iter().enumerate() {
            chunk.merge(open.matrix(commit.matrix)?, index as u32);
            count += chunk.values.len();
        }
        open.stats.push_count += 1;
        open.invalidate_export(commit.matrix);
        self.memory.add_elements(count);
        Ok(commit.attempt)
    }

    /// Runs the functions if this is the first commit of its part. Returns the attempt that counts.
    fn apply_function_commit(
        &mut self,
        at: ConnectionId,
        commit: &Commit,
        calls: &[FunctionCall],
    ) -> Result<u64, Refusal> {
        self.check_session(at, commit.job)?;
        let open = self.job(commit.job)?;
        open.matrix(commit.matrix)?;
        if let Some(winner) = open.staged_chunks.winner(commit)? {
            // This call counts late commits.
            open.staged_chunks.commit(commit)?;
            return Ok(winner);
        }
        self.check_staging_memory(ATTEMPT_BYTES)?;
        // All functions are tried first: one that fails after others have run would leave a partial commit.
        self.try_functions_for_session(commit.job, commit.matrix, calls)?;
        self.push_functions_for_session(commit.job, commit.matrix, calls)?;
        self.job(commit.job)?.staged_chunks.commit(commit)?;
        Ok(commit.attempt)
    }

    pub(crate) fn close_token(&mut self, at: ConnectionId, close: CloseToken, out: &mut Vec<Effect>) {
        let CloseToken { request, job, matrix, token } = close;
        let result = self.check_session(at, job).and_then(|()| {
            let open = self.job(job)?;
            open.matrix(matrix)?;
            open.staged_chunks.close_token(matrix, token);
            Ok(())
        });
        match result {
            Ok(()) => self.reply_done(at, request, job, out),
            Err(refusal) => self.refuse(at, request, refusal, out),
        }
    }
}

impl StagedChunk {
    /// The key runs of a chunk, each with its values.
    fn key_runs<'a>(
        table: u32,
        runs: &'a [PartitionRun],
        keys: &'a [u64],
        values: Values<'a>,
        columns: usize,
    ) -> impl Iterator<Item = (KeyRun<'a>, Values<'a>)> {
        runs.iter().scan(0, move |start, run| {
            let range = *start..*start + run.count as usize;
            *start = range.end;
            let part = KeyRun { partition: run.partition, table, keys: &keys[range.clone()] };
            Some((part, values.slice(range.start * columns..range.end * columns)))
        })
    }

    /// Checks that every run of the chunk can be merged.
    fn check(&mut self, matrix: &Matrix) -> Result<(), Refusal> {
        let columns = matrix.spec().columns_of_table();
        let (expected, actual) = (self.keys.len() * columns, self.values.len());
        if actual != expected {
            let matrix = matrix.spec().name.clone();
            return Err(matrix::Error::ValueCount { matrix, expected, actual }.into());
        }
        let Self { table, runs, keys, positions, values } = self;
        let parts = Self::key_runs(*table, runs, keys, values.as_values(), columns);
        for ((part, values), positions) in parts.zip(positions) {
            matrix.check_push(part, positions, values)?;
        }
        Ok(())
    }

    /// Merges a chunk that [`Self::check`] has accepted.
    fn merge(&mut self, matrix: &mut Matrix, index: u32) {
        let columns = matrix.spec().columns_of_table();
        let name = PushId { clock: 0, task: 0, index };
        let Self { table, runs, keys, positions, values } = self;
        let parts = Self::key_runs(*table, runs, keys, values.as_values(), columns);
        for ((part, values), positions) in parts.zip(positions) {
            matrix.push_checked(part, positions, name, values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_of_a_chunk_has_its_keys_and_all_columns_of_their_values() {
        let runs = [PartitionRun { partition: 4, count: 1 }, PartitionRun { partition: 6, count: 2 }];
        let values: Vec<f64> = (0..6).map(f64::from).collect();
        let parts: Vec<_> = StagedChunk::key_runs(3, &runs, &[10, 20, 30], Values::F64(&values), 2)
            .map(|(run, values)| (run.partition, run.table, run.keys.to_vec(), values.to_owned_values()))
            .collect();
        let own = |values: &[f64]| Values::F64(values).to_owned_values();
        let expected = [(4, 3, vec![10], own(&[0.0, 1.0])), (6, 3, vec![20, 30], own(&[2.0, 3.0, 4.0, 5.0]))];
        assert_eq!(parts, expected);
    }
}
