//! The chunks that attempts of a foreign host have staged, and the attempts that count. This is pure state of one job
//! on one lane.
//!
//! Invariants: nothing is staged for a committed part or under a closed token; `bytes` is the sum over all chunks, all
//! attempts with chunks and all committed parts.

use std::collections::BTreeMap;

use matrix::{OwnedValues, RowPositions};
use rpc::message::{Commit, FaultKind, JobId, KeyList, PartitionRun, PushStaged};
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

/// Most open tokens of a matrix. A driver has one for each evaluation under way.
const TOKEN_LIMIT: usize = 1024;
/// Bytes that are counted for a chunk besides its lists, and for each run of it.
const CHUNK_BYTES: u64 = 128;
const RUN_BYTES: u64 = 48;
/// Bytes that are counted for an attempt with chunks, and for a committed part.
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
    /// Bytes of the chunk while it is staged.
    pub(crate) fn bytes(&self) -> u64 {
        let values = self.values.len() * self.values.element_type().size();
        // Positions of rows take 4 bytes a key.
        (self.keys.len() * 12 + values) as u64 + self.runs.len() as u64 * RUN_BYTES + CHUNK_BYTES
    }
}

/// What the lane does with a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkStatus {
    /// The chunk is new and gets staged.
    New,
    /// The chunk is staged already.
    Duplicate,
    /// The part is committed: the chunk is not needed.
    Late,
}

/// The result of a commit.
#[derive(Debug)]
pub(crate) enum CommitDecision {
    /// This is the first commit of the part. Its chunks are to be merged in this order.
    First(Vec<StagedChunk>),
    /// The part was committed before, by this attempt.
    Repeated(u64),
}

/// A part of a token.
#[derive(Debug)]
enum StagedPart {
    /// Chunks by attempt, then by chunk number.
    Open(BTreeMap<u64, BTreeMap<u32, StagedChunk>>),
    /// The attempt that counts.
    Committed(u64),
}

#[derive(Debug, Default)]
struct MatrixTokens {
    /// All tokens below it are closed.
    first_open: u64,
    open: BTreeMap<u64, BTreeMap<u32, StagedPart>>,
}

/// Counts for metrics.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StagingCounts {
    /// First commits of a part.
    pub(crate) commits: u64,
    /// Commits of attempts that came too late.
    pub(crate) late_commits: u64,
    /// Chunks that were dropped: they were staged before, or their part was committed.
    pub(crate) dropped_chunks: u64,
}

/// What is known of the tokens of a matrix besides staged chunks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TokensImage {
    matrix: u32,
    first_open: u64,
    /// Token, part and the attempt that counts.
    committed: Vec<(u64, u32, u64)>,
}

/// All chunks that are staged for a job.
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

    /// Number of open tokens of all matrices.
    pub(crate) fn token_count(&self) -> usize {
        self.matrices.values().map(|tokens| tokens.open.len()).sum()
    }

    /// The tokens of all matrices, without the staged chunks.
    pub(crate) fn tokens(&self) -> Vec<TokensImage> {
        let image = |(matrix, tokens): (&u32, &MatrixTokens)| {
            let parts =
                tokens.open.iter().flat_map(|(token, parts)| parts.iter().map(move |part| (token, part)));
            let committed = parts.filter_map(|(token, (part, state))| match state {
                StagedPart::Committed(attempt) => Some((*token, *part, *attempt)),
                StagedPart::Open(_) => None,
            });
            TokensImage { matrix: *matrix, first_open: tokens.first_open, committed: committed.collect() }
        };
        self.matrices.iter().map(image).collect()
    }

    /// Adds the tokens that an image has.
    pub(crate) fn restore_tokens(&mut self, tokens: Vec<TokensImage>) {
        for TokensImage { matrix, first_open, committed } in tokens {
            let tokens = self.matrices.entry(matrix).or_default();
            tokens.first_open = first_open;
            self.bytes += ATTEMPT_BYTES * committed.len() as u64;
            for (token, part, attempt) in committed {
                tokens.open.entry(token).or_default().insert(part, StagedPart::Committed(attempt));
            }
        }
    }

    /// The staged chunks as the requests that stage them.
    pub(crate) fn chunks(&self, job: JobId) -> Vec<PushStaged> {
        let mut requests = Vec::new();
        for (&matrix, tokens) in &self.matrices {
            for (&token, parts) in &tokens.open {
                for (&part, state) in parts {
                    let StagedPart::Open(attempts) = state else { continue };
                    let chunks = attempts
                        .iter()
                        .flat_map(|(attempt, chunks)| chunks.iter().map(move |c| (*attempt, c)));
                    requests.extend(chunks.map(|(attempt, (&number, chunk))| PushStaged {
                        request: 0,
                        job,
                        token,
                        part,
                        attempt,
                        chunk: number,
                        matrix,
                        table: chunk.table,
                        runs: chunk.runs.clone(),
                        keys: KeyList::Listed(chunk.keys.clone()),
                        values: chunk.values.clone(),
                    }));
                }
            }
        }
        requests
    }

    /// What to do with a chunk, given all that came before it.
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

    /// Stages a chunk whose status is [`ChunkStatus::New`].
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

    /// The attempt that has committed this part, or `None` if this commit would be the first. Nothing changes.
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

    /// Decides a commit; a refused commit changes nothing. The chunks of the first commit are returned to be merged,
    /// and the chunks of all other attempts at the part are freed.
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

    /// Closes a token and all tokens below it.
    pub(crate) fn close_token(&mut self, matrix: u32, token: u64) {
        let tokens = self.matrices.entry(matrix).or_default();
        tokens.first_open = tokens.first_open.max(token.saturating_add(1));
        let open = tokens.open.split_off(&tokens.first_open);
        let closed = std::mem::replace(&mut tokens.open, open);
        self.bytes -= closed.values().flat_map(BTreeMap::values).map(StagedPart::bytes).sum::<u64>();
    }

    /// Removes the chunks of a dropped matrix.
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
    /// Checks that a token is open, or may be opened.
    fn check(&self, token: u64) -> Result<(), Refusal> {
        if token < self.first_open {
            let text = format!(
                "token {token} is closed, like all below {}: the driver has continued without this attempt",
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
            let text = format!("{TOKEN_LIMIT} tokens of one matrix are open, the limit: close unused tokens");
            return Err(Refusal::new(FaultKind::TooLarge, text));
        }
        Ok(())
    }
}

/// Checks that an attempt has staged exactly the chunks that its commit counts.
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
