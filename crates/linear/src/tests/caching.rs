//! When a task says that no later epoch will read its data again.

use data::{Batch, BatchStream, MemoryStream};

use super::HARNESS;
use super::harness::clicks;

/// Counts what a task reads, and remembers when it releases the cache.
struct ReleasedStream {
    inner: MemoryStream,
    batch_count: usize,
    /// Number of batches that were read before each release.
    released_after: Vec<usize>,
}

impl BatchStream for ReleasedStream {
    fn start_epoch(&mut self, epoch: u64) -> Result<(), data::Error> {
        self.inner.start_epoch(epoch)
    }

    fn next(&mut self) -> Result<Option<&Batch>, data::Error> {
        let next = self.inner.next()?;
        self.batch_count += usize::from(next.is_some());
        Ok(next)
    }

    fn release_cache(&mut self) {
        self.released_after.push(self.batch_count);
    }
}

/// Trains on six batches. Returns the numbers of read batches before each release, and after the end.
fn released(settings: &str, records_a_batch: usize) -> (Vec<usize>, usize) {
    let single = HARNESS.single_task("lr", &format!("optimizer=ftrl standardize=false {settings}"));
    let inner = MemoryStream::new(clicks(1, 6, records_a_batch));
    let mut data = ReleasedStream { inner, batch_count: 0, released_after: Vec::new() };
    single.train(&mut single.store.agent(0), &mut data);
    (data.released_after, data.batch_count)
}

#[test]
fn the_cache_is_released_when_one_epoch_turns_out_to_be_enough() {
    // As many visits as `auto` makes are in five batches, so that the sixth need not be kept.
    let batch = (super::super::AUTO_RECORD_VISITS / 5) as usize;
    assert_eq!(released("", batch), (vec![5], 6));
    // Six batches of half the size have three fifths of these visits.
    let (released_after, batch_count) = released("", batch / 2);
    assert_eq!((released_after, batch_count), (vec![], 12), "two epochs");
    assert_eq!(released("epochs=3", 20), (vec![], 18));
    assert_eq!(released("epochs=1", 20), (vec![], 6), "there is nothing to keep from the start");
}
