//! What an algorithm reads from: batches, epoch after epoch.

use crate::{Batch, Error};

/// Batches of one task. `start_epoch`, then `next_batch` until it says `None`, for each epoch in turn.
pub trait BatchStream: Send {
    /// Goes to the start of `epoch` (0, 1, ...).
    fn start_epoch(&mut self, epoch: u64) -> Result<(), Error>;
    /// The next batch; `None` at the end of the epoch.
    fn next(&mut self) -> Result<Option<&Batch>, Error>;
    /// The next batch in place of `batch`, for who keeps it beyond the one after it; false at the end of the epoch.
    fn next_into(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        match self.next()? {
            Some(next) => {
                batch.copy_from(next);
                Ok(true)
            }
            None => Ok(false),
        }
    }
    /// No later epoch will be asked for: what is kept for one may be dropped.
    fn release_cache(&mut self) {}
}
