//! Stands in for types of the data crate until they are merged.

/// An error of reading.
#[derive(Debug, thiserror::Error)]
#[error("data")]
pub struct DataError;

/// How labels become numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LabelRule {
    /// -1 and 0 become 0, 1 stays; with `positive`, that one becomes 1 and all others 0.
    Binary {
        /// The label that counts as 1.
        positive: Option<f32>,
    },
    /// Class numbers.
    Class,
    /// Any finite number.
    Real,
}

/// Order of later epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    /// File order.
    None,
    /// Batches permuted.
    Batches,
    /// Records permuted.
    Records,
}

/// Batches, epoch after epoch.
pub trait BatchStream: Send {
    /// Goes to the start of an epoch.
    fn start_epoch(&mut self, epoch: u64) -> Result<(), DataError>;
    /// The next batch, or none at the end of the epoch.
    fn next(&mut self) -> Result<Option<&data::Batch>, DataError>;
}
