//! A stream that reads one batch ahead. Before it returns a batch, it reports the columns of this batch and of the next
//! one, so that the caller can prefetch the parameters of the next step while this step computes.

use crate::{Batch, BatchStream, Error};

/// The batch after the one that was returned.
#[derive(Debug)]
enum NextBatch {
    /// It is not read yet.
    Unread,
    /// It is read.
    Ready,
    /// There is none: the epoch has ended.
    End,
    /// It could not be read. The error is returned in place of the batch, not earlier.
    Failed(Error),
}

/// Receives the columns of a batch and of the next one.
type ColumnCallback<'a> = Box<dyn FnMut(&[u64], &[u64]) + Send + 'a>;

/// Returns the batches of a stream unchanged and in order; reads each of them one batch earlier.
pub struct ReadAhead<'a> {
    stream: &'a mut dyn BatchStream,
    on_columns: ColumnCallback<'a>,
    current: Batch,
    next_batch: Batch,
    state: NextBatch,
}

impl<'a> ReadAhead<'a> {
    /// Wraps `stream`. Before each batch is returned, `tell` receives its columns and those of the next batch, which
    /// are empty at the end of an epoch.
    pub fn new(stream: &'a mut dyn BatchStream, tell: impl FnMut(&[u64], &[u64]) + Send + 'a) -> Self {
        let (current, next) = (Batch::default(), Batch::default());
        Self { stream, on_columns: Box::new(tell), current, next_batch: next, state: NextBatch::Unread }
    }

    fn read(&mut self) {
        self.state = match self.stream.next_into(&mut self.next_batch) {
            Ok(true) => NextBatch::Ready,
            Ok(false) => NextBatch::End,
            Err(error) => NextBatch::Failed(error),
        };
    }
}

impl BatchStream for ReadAhead<'_> {
    fn start_epoch(&mut self, epoch: u64) -> Result<(), Error> {
        self.state = NextBatch::Unread;
        self.stream.start_epoch(epoch)
    }

    fn next(&mut self) -> Result<Option<&Batch>, Error> {
        if matches!(self.state, NextBatch::Unread) {
            self.read();
        }
        match std::mem::replace(&mut self.state, NextBatch::End) {
            NextBatch::Failed(error) => return Err(error),
            NextBatch::End | NextBatch::Unread => return Ok(None),
            NextBatch::Ready => {}
        }
        std::mem::swap(&mut self.current, &mut self.next_batch);
        self.read();
        let behind: &[u64] =
            if matches!(self.state, NextBatch::Ready) { &self.next_batch.columns } else { &[] };
        (self.on_columns)(&self.current.columns, behind);
        Ok(Some(&self.current))
    }

    fn release_cache(&mut self) {
        self.stream.release_cache();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStream;

    fn batch(columns: &[u64]) -> Batch {
        Batch { labels: vec![1.0], columns: columns.to_vec(), offsets: vec![0, 0], ..Batch::default() }
    }

    fn batches() -> Vec<Batch> {
        vec![batch(&[1, 2]), batch(&[2]), batch(&[7, 9])]
    }

    /// A stream that fails at its fourth batch.
    struct Broken(MemoryStream);

    impl BatchStream for Broken {
        fn start_epoch(&mut self, epoch: u64) -> Result<(), Error> {
            self.0.start_epoch(epoch)
        }

        fn next(&mut self) -> Result<Option<&Batch>, Error> {
            let failed = Error::NotCached { epoch: 0, task: 3 };
            self.0.next()?.map(Some).ok_or(failed)
        }
    }

    #[test]
    fn batches_come_as_they_are_in_every_epoch_and_the_columns_behind_them_are_told_before() {
        let mut stream = MemoryStream::new(batches());
        let mut told = Vec::new();
        let mut ahead = ReadAhead::new(&mut stream, |now, next| told.push((now.to_vec(), next.to_vec())));
        for epoch in 0..2 {
            ahead.start_epoch(epoch).unwrap();
            let mut given = Vec::new();
            while let Some(batch) = ahead.next().unwrap() {
                given.push(batch.clone());
            }
            assert_eq!(given, batches());
            assert!(ahead.next().unwrap().is_none(), "the end stays the end");
        }
        drop(ahead);
        let once = [(vec![1, 2], vec![2]), (vec![2], vec![7, 9]), (vec![7, 9], vec![])];
        assert_eq!(told, [once.clone(), once].concat());
    }

    #[test]
    fn a_fault_is_said_behind_the_batches_before_it() {
        let mut stream = Broken(MemoryStream::new(batches()));
        let mut ahead = ReadAhead::new(&mut stream, |_, _| {});
        ahead.start_epoch(0).unwrap();
        for wanted in batches() {
            assert_eq!(ahead.next().unwrap(), Some(&wanted));
        }
        assert!(matches!(ahead.next(), Err(Error::NotCached { task: 3, .. })));
    }

    #[test]
    fn an_epoch_that_is_broken_off_leaves_nothing_for_the_next() {
        let mut stream = MemoryStream::new(batches());
        let mut ahead = ReadAhead::new(&mut stream, |_, _| {});
        ahead.start_epoch(0).unwrap();
        ahead.next().unwrap();
        ahead.start_epoch(1).unwrap();
        assert_eq!(ahead.next().unwrap(), Some(&batches()[0]));
    }
}
