//! A stream whose next batches can be looked at, so that an algorithm can prefetch the parameters of the next steps while
//! this step computes.

use crate::{Batch, BatchStream, Error};

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

    fn columns(window: &[Batch]) -> Vec<&[u64]> {
        window.iter().map(|batch| batch.columns.as_slice()).collect()
    }

    #[test]
    fn batches_come_as_they_are_in_every_epoch_with_those_behind_them() {
        let (first, second, third): (&[u64], &[u64], &[u64]) = (&[1, 2], &[2], &[7, 9]);
        for (ahead, expected) in [
            (0, [vec![first], vec![second], vec![third]]),
            (1, [vec![first, second], vec![second, third], vec![third]]),
            (5, [vec![first, second, third], vec![second, third], vec![third]]),
        ] {
            let mut stream = MemoryStream::new(batches());
            let mut stream = LookAhead::new(&mut stream);
            for epoch in 0..2 {
                stream.start_epoch(epoch).unwrap();
                for (window, batch) in expected.iter().zip(batches()) {
                    let seen = stream.next_window(ahead).unwrap().unwrap();
                    assert_eq!((columns(seen), &seen[0]), (window.clone(), &batch));
                }
                assert!(stream.next_window(ahead).unwrap().is_none());
                assert!(stream.next().unwrap().is_none(), "the end stays the end");
            }
        }
    }

    #[test]
    fn a_window_may_be_shorter_than_the_one_before_it() {
        let mut stream = MemoryStream::new(batches());
        let mut stream = LookAhead::new(&mut stream);
        stream.start_epoch(0).unwrap();
        assert_eq!(stream.next_window(2).unwrap().map(<[Batch]>::len), Some(3));
        assert_eq!(stream.next_window(0).unwrap(), Some(&batches()[1..2]));
        assert_eq!(stream.next().unwrap(), Some(&batches()[2]));
    }

    #[test]
    fn a_fault_is_said_behind_the_batches_before_it() {
        let mut stream = Broken(MemoryStream::new(batches()));
        let mut stream = LookAhead::new(&mut stream);
        stream.start_epoch(0).unwrap();
        for (i, expected) in batches().iter().enumerate() {
            let window = stream.next_window(1).unwrap().unwrap();
            assert_eq!((&window[0], window.len()), (expected, 2 - i / 2));
        }
        assert!(matches!(stream.next_window(1), Err(Error::NotCached { task: 3, .. })));
    }

    #[test]
    fn an_epoch_that_is_broken_off_leaves_nothing_for_the_next() {
        let mut stream = MemoryStream::new(batches());
        let mut stream = LookAhead::new(&mut stream);
        stream.start_epoch(0).unwrap();
        stream.next_window(1).unwrap();
        stream.start_epoch(1).unwrap();
        assert_eq!(stream.next().unwrap(), Some(&batches()[0]));
    }

    #[test]
    fn the_cache_of_the_stream_is_released() {
        struct Released(bool);
        impl BatchStream for Released {
            fn start_epoch(&mut self, _epoch: u64) -> Result<(), Error> {
                Ok(())
            }

            fn next(&mut self) -> Result<Option<&Batch>, Error> {
                Ok(None)
            }

            fn release_cache(&mut self) {
                self.0 = true;
            }
        }
        let mut stream = Released(false);
        LookAhead::new(&mut stream).release_cache();
        assert!(stream.0);
    }
}
