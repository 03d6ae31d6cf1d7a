//! Tests of `look_ahead.rs`.

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
