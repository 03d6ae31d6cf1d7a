//! Splits: which part of the input each task reads.
//!
//! All plain files together are one run of `S` bytes; task `t` of `T` takes bytes `[t*S/T, (t+1)*S/T)`. A record belongs
//! to the split in which its first byte lies. What cannot be cut (compressed files, row groups) goes whole, largest
//! first, to the task with the least so far.

use std::ops::Range;

/// A part of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Position of the file among the inputs.
    pub file: usize,
    /// Which part.
    pub part: Part,
    /// Bytes of the file that this part covers, for progress.
    pub size_bytes: u64,
}

/// What of a file a split covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The lines that begin in this range of bytes.
    Bytes(Range<u64>),
    /// All of it, front to back.
    Whole,
    /// One unit of a format in blocks (a row group of Parquet).
    Unit(usize),
}
