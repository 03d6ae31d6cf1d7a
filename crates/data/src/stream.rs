//! What an algorithm reads from: batches, epoch after epoch.

use crate::{Batch, Error};

/// Batches of one task. `start_epoch`, then `next` until it says `None`, for each epoch in turn.
pub trait BatchStream: Send {
    /// Goes to the start of `epoch` (0, 1, ...).
    fn start_epoch(&mut self, epoch: u64) -> Result<(), Error>;
    /// The next batch; `None` at the end of the epoch.
    fn next(&mut self) -> Result<Option<&Batch>, Error>;
    /// No later epoch will be asked for: what is kept for one may be dropped.
    fn forget(&mut self) {}
}
