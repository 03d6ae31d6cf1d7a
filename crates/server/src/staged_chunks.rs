//! What attempts of a foreign host have staged, and which of them count. Pure, and of one job on one lane.
//!
//! Invariants: nothing is staged for a part that is committed, nor under a token that is closed; `bytes` is the sum over all
//! chunks and over all that is remembered of commits.

use std::collections::BTreeMap;

use matrix::{OwnedValues, RowPositions};
use rpc::message::{Commit, FaultKind, PartitionRun, PushStaged};

use crate::refusal::Refusal;

/// Most tokens of a matrix that are open at once: a driver has one for each evaluation under way.
const TOKEN_LIMIT: usize = 1024;
/// Bytes that are counted for a chunk besides its lists, and for each run of it.
const CHUNK_BYTES: u64 = 128;
const RUN_BYTES: u64 = 48;
/// Bytes that are counted for an attempt that has staged something, or that counts.
pub(crate) const ATTEMPT_BYTES: u64 = 128;

/// A chunk whose keys and values were checked.
#[derive(Debug)]
pub(crate) struct StagedChunk {
    pub(crate) table: u32,
    pub(crate) runs: Vec<PartitionRun>,
    pub(crate) keys: Vec<u64>,
    pub(crate) positions: Vec<RowPositions>,
    pub(crate) values: OwnedValues,
}

impl StagedChunk {
    /// What it takes while it waits.
    pub(crate) fn bytes(&self) -> u64 {
        let values = self.values.len() * self.values.element_type().size();
        // Positions of rows are 4 bytes a key.
        (self.keys.len() * 12 + values) as u64 + self.runs.len() as u64 * RUN_BYTES + CHUNK_BYTES
    }
}

/// What is to be done with a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkStatus {
    /// It is new.
    New,
    /// It is staged already.
    Duplicate,
    /// The part is committed: nobody needs it.
    Late,
}

/// What came of a commit.
#[derive(Debug)]
pub(crate) enum CommitDecision {
    /// It is the first: these are to be merged, in order.
    First(Vec<StagedChunk>),
    /// This attempt counts, and has been merged.
    Repeated(u64),
}

/// A part of a token.
#[derive(Debug)]
enum StagedPart {
    /// Chunks by attempt.
    Open(BTreeMap<u64, BTreeMap<u32, StagedChunk>>),
    /// The attempt that counts.
    Committed(u64),
}

/// The tokens of a matrix.
#[derive(Debug, Default)]
struct MatrixTokens {
    /// Tokens below it are closed.
    first_open: u64,
    open: BTreeMap<u64, BTreeMap<u32, StagedPart>>,
}

/// Counts for people.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StagingCounts {
    /// Commits that were the first.
    pub(crate) commits: u64,
    /// Commits of attempts that came too late.
    pub(crate) late_commits: u64,
    /// Chunks that were dropped: staged before, or of a part that was committed.
    pub(crate) dropped_chunks: u64,
}

/// All that is staged for a job.
#[derive(Debug, Default)]
pub(crate) struct StagedChunks {
    matrices: BTreeMap<u32, MatrixTokens>,
    bytes: u64,
    pub(crate) counts: StagingCounts,
}

impl StagedChunks {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of tokens that are open, of all matrices.
    pub(crate) fn token_count(&self) -> usize {
        self.matrices.values().map(|tokens| tokens.open.len()).sum()
    }

    /// What a chunk means after all before it.
    pub(crate) fn status(&self, push: &PushStaged) -> Result<ChunkStatus, Refusal> {
        let none = MatrixTokens::default();
        let tokens = self.matrices.get(&push.matrix).unwrap_or(&none);
        tokens.check(push.token)?;
        let part = tokens.open.get(&push.token).and_then(|parts| parts.get(&push.part));
        Ok(match part {
            None => ChunkStatus::New,
            Some(StagedPart::Committed(_)) => ChunkStatus::Late,
            Some(StagedPart::Open(attempts)) => {
                let chunks = attempts.get(&push.attempt);
                if chunks.is_some_and(|chunks| chunks.contains_key(&push.chunk)) {
                    ChunkStatus::Duplicate
                } else {
                    ChunkStatus::New
                }
            }
        })
    }

    /// Keeps a chunk whose turn is [`Turn::New`].
    pub(crate) fn stage(&mut self, push: &PushStaged, chunk: StagedChunk) {
        let bytes = chunk.bytes();
        let tokens = self.matrices.entry(push.matrix).or_default();
        let parts = tokens.open.entry(push.token).or_default();
        let part = parts.entry(push.part).or_insert_with(|| StagedPart::Open(BTreeMap::new()));
        let StagedPart::Open(attempts) = part else { return };
        let is_new = !attempts.contains_key(&push.attempt);
        attempts.entry(push.attempt).or_default().insert(push.chunk, chunk);
        self.bytes += bytes + if is_new { ATTEMPT_BYTES } else { 0 };
    }

    /// Whose commit of this part counts already; none: that of this one would. Nothing is changed.
    pub(crate) fn winner(&self, commit: &Commit) -> Result<Option<u64>, Refusal> {
        let none = MatrixTokens::default();
        let tokens = self.matrices.get(&commit.matrix).unwrap_or(&none);
        tokens.check(commit.token)?;
        match tokens.open.get(&commit.token).and_then(|parts| parts.get(&commit.part)) {
            Some(StagedPart::Committed(winner)) => Ok(Some(*winner)),
            Some(StagedPart::Open(attempts)) => {
                check_complete(attempts.get(&commit.attempt), commit).map(|()| None)
            }
            None => check_complete(None, commit).map(|()| None),
        }
    }

    /// Decides a commit; nothing is changed when it is refused. The chunks of the first are to be merged now, all other
    /// attempts at the part are freed.
    pub(crate) fn commit(&mut self, commit: &Commit) -> Result<CommitDecision, Refusal> {
        if let Some(winner) = self.winner(commit)? {
            self.counts.late_commits += u64::from(winner != commit.attempt);
            return Ok(CommitDecision::Repeated(winner));
        }
        let tokens = self.matrices.entry(commit.matrix).or_default();
        let parts = tokens.open.entry(commit.token).or_default();
        let before = parts.insert(commit.part, StagedPart::Committed(commit.attempt));
        self.bytes += ATTEMPT_BYTES;
        self.counts.commits += 1;
        let Some(part @ StagedPart::Open(_)) = before else { return Ok(CommitDecision::First(Vec::new())) };
        self.bytes -= part.bytes();
        let StagedPart::Open(mut attempts) = part else { return Ok(CommitDecision::First(Vec::new())) };
        let chunks = attempts.remove(&commit.attempt).unwrap_or_default();
        Ok(CommitDecision::First(chunks.into_values().collect()))
    }

    /// Closes a token and all below it.
    pub(crate) fn close_token(&mut self, matrix: u32, token: u64) {
        let tokens = self.matrices.entry(matrix).or_default();
        tokens.first_open = tokens.first_open.max(token.saturating_add(1));
        let open = tokens.open.split_off(&tokens.first_open);
        let closed = std::mem::replace(&mut tokens.open, open);
        self.bytes -= closed.values().flat_map(BTreeMap::values).map(StagedPart::bytes).sum::<u64>();
    }

    /// Forgets a matrix that is dropped.
    pub(crate) fn remove_matrix(&mut self, matrix: u32) {
        if let Some(tokens) = self.matrices.remove(&matrix) {
            let parts = tokens.open.values().flat_map(BTreeMap::values);
            self.bytes -= parts.map(StagedPart::bytes).sum::<u64>();
        }
    }
}

impl StagedPart {
    fn bytes(&self) -> u64 {
        match self {
            StagedPart::Committed(_) => ATTEMPT_BYTES,
            StagedPart::Open(attempts) => attempts
                .values()
                .map(|chunks| ATTEMPT_BYTES + chunks.values().map(StagedChunk::bytes).sum::<u64>())
                .sum(),
        }
    }
}

impl MatrixTokens {
    /// Whether something may come for a token.
    fn check(&self, token: u64) -> Result<(), Refusal> {
        if token < self.first_open {
            let text = format!(
                "token {token} is closed, all below {} are: the driver has gone on without this attempt",
                self.first_open
            );
            return Err(Refusal::new(FaultKind::TokenClosed, text));
        }
        if token == u64::MAX {
            return Err(Refusal::new(
                FaultKind::Invalid,
                "the largest token cannot be closed: use a smaller one",
            ));
        }
        if self.open.len() >= TOKEN_LIMIT && !self.open.contains_key(&token) {
            let text =
                format!("{TOKEN_LIMIT} tokens of one matrix are open, the limit: close those that are over");
            return Err(Refusal::new(FaultKind::TooLarge, text));
        }
        Ok(())
    }
}

/// Whether an attempt has staged what it says it has.
fn check_complete(chunks: Option<&BTreeMap<u32, StagedChunk>>, commit: &Commit) -> Result<(), Refusal> {
    let count = chunks.map_or(0, BTreeMap::len);
    let last = chunks.and_then(|chunks| chunks.last_key_value()).map(|(chunk, _)| *chunk);
    let is_whole = count == commit.chunks as usize && last.is_none_or(|last| last as usize + 1 == count);
    if is_whole {
        return Ok(());
    }
    let expected = commit.chunks;
    let missing = (0..expected).find(|chunk| chunks.is_none_or(|chunks| !chunks.contains_key(chunk)));
    let what = match missing {
        Some(chunk) => format!("chunk {chunk} of {expected} is missing, stage it again"),
        None => format!("{count} chunks are staged, the commit is for {expected}"),
    };
    Err(Refusal::new(FaultKind::Invalid, what))
}
