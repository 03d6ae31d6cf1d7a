//! A stream whose next batches can be looked at, so that an algorithm can prefetch the parameters of the next steps while
//! this step computes.

use crate::{Batch, BatchStream, Error, KeySet};

/// Returns the batches of a stream unchanged and in order. [`BatchStream::next_window`] reads ahead as far as it is asked
/// to.
pub struct LookAhead<'a> {
    stream: &'a mut dyn BatchStream,
    /// The window: the batch that was returned last, and the batches after it. Unused batches follow.
    batches: Vec<Batch>,
    window_len: usize,
    /// How reading has ended in this epoch. An error is returned in place of the batch that could not be read, not
    /// earlier.
    end: Option<Result<(), Error>>,
}

impl<'a> LookAhead<'a> {
    pub fn new(stream: &'a mut dyn BatchStream) -> Self {
        Self { stream, batches: Vec::new(), window_len: 0, end: None }
    }

    /// Reads another batch behind the window.
    fn read(&mut self) {
        if self.batches.len() == self.window_len {
            self.batches.push(Batch::default());
        }
        match self.stream.next_into(&mut self.batches[self.window_len]) {
            Ok(true) => self.window_len += 1,
            Ok(false) => self.end = Some(Ok(())),
            Err(error) => self.end = Some(Err(error)),
        }
    }
}

impl BatchStream for LookAhead<'_> {
    fn start_epoch(&mut self, epoch: u64) -> Result<(), Error> {
        (self.window_len, self.end) = (0, None);
        self.stream.start_epoch(epoch)
    }

    fn next(&mut self) -> Result<Option<&Batch>, Error> {
        Ok(self.next_window(0)?.and_then(<[Batch]>::first))
    }

    fn next_window(&mut self, ahead: usize) -> Result<Option<&[Batch]>, Error> {
        if self.window_len > 0 {
            self.batches.rotate_left(1);
            self.window_len -= 1;
        }
        while self.window_len <= ahead && self.end.is_none() {
            self.read();
        }
        if self.window_len == 0 {
            return self.end.replace(Ok(())).unwrap_or(Ok(())).map(|()| None);
        }
        Ok(Some(&self.batches[..self.window_len.min(ahead + 1)]))
    }

    fn rank_columns(&mut self, keys: &KeySet) -> Result<bool, Error> {
        self.stream.rank_columns(keys)
    }

    fn release_cache(&mut self) {
        self.stream.release_cache();
    }
}

#[cfg(test)]
mod tests;
