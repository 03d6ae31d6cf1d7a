//! The interface through which an algorithm reads batches, epoch after epoch.

use crate::{Batch, Error, KeySet};

/// Batches of one task. For each epoch in turn, the caller calls `start_epoch`, then `next` until it returns `None`.
pub trait BatchStream: Send {
    /// Goes to the start of `epoch` (0, 1, ...).
    fn start_epoch(&mut self, epoch: u64) -> Result<(), Error>;
    /// Returns the next batch; `None` at the end of the epoch.
    fn next(&mut self) -> Result<Option<&Batch>, Error>;
    /// Replaces `batch` by the next batch, for callers that need several batches at once; returns false at the end of
    /// the epoch.
    fn next_into(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        match self.next()? {
            Some(next) => {
                batch.copy_from(next);
                Ok(true)
            }
            None => Ok(false),
        }
    }
    /// Returns the next batch and up to `ahead` batches after it, which stay in the stream; `None` at the end of the
    /// epoch. Only [`crate::LookAhead`] reads ahead; other streams return one batch.
    fn next_window(&mut self, ahead: usize) -> Result<Option<&[Batch]>, Error> {
        let _ = ahead;
        Ok(self.next()?.map(std::slice::from_ref))
    }
    /// Replaces the keys of later batches by their ranks in `keys`, which contains all of them, if all batches are cached
    /// in memory. Returns whether it did.
    fn rank_columns(&mut self, keys: &KeySet) -> Result<bool, Error> {
        let _ = keys;
        Ok(false)
    }
    /// Says that no later epoch will be requested, so that the stream may drop what it caches for one.
    fn release_cache(&mut self) {}
}
