//! What can go wrong with data.

use std::path::PathBuf;

use crate::block::BlockFault;

/// An error of this crate. Variants carry data; the text says what, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file for kept blocks cannot be made.
    #[error("cannot make the file {} for kept blocks: {reason}; choose a folder that can be written, or keep blocks in memory", path.display())]
    KeepCreate {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// Kept blocks cannot be written, for example because the disk is full.
    #[error("cannot write {wanted_bytes} bytes of kept blocks to {} after {written_bytes} bytes: {reason}; make room there, choose another folder, or keep blocks in memory", path.display())]
    KeepWrite {
        /// The file.
        path: PathBuf,
        /// Size of the block that did not fit.
        wanted_bytes: u64,
        /// Bytes of the blocks before it.
        written_bytes: u64,
        /// What the system said.
        reason: String,
    },
    /// Kept blocks cannot be read again.
    #[error("cannot read kept blocks from {}: {reason}", path.display())]
    KeepRead {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// Blocks in memory have reached their limit.
    #[error(
        "the parsed data of a task needs more than the {limit_bytes} bytes of memory it may take (the next {wanted_bytes} do not fit into what is left after {kept_bytes}); raise the memory limit, or keep blocks on disk or on both"
    )]
    KeepLimit {
        /// The limit of this task.
        limit_bytes: u64,
        /// Bytes kept so far.
        kept_bytes: u64,
        /// Size of the block that did not fit.
        wanted_bytes: u64,
    },
    /// A kept block is not as it was written.
    #[error(
        "kept block {index} in {place} is damaged: {fault}; the memory or the disk is faulty, or something wrote to the file; start again"
    )]
    KeptBlock {
        /// Number of the block, from 0.
        index: usize,
        /// Memory, or the file and the offset in it.
        place: String,
        /// What is wrong.
        fault: BlockFault,
    },
    /// Another epoch was asked for, but nothing was kept.
    #[error(
        "epoch {epoch} cannot start: the data of task {task} was read once and not kept; set where to keep it (memory, disk or both)"
    )]
    NotKept {
        /// The epoch asked for.
        epoch: u64,
        /// The task.
        task: u64,
    },
}
