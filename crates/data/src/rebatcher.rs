//! Makes new batches of the records of several blocks: a window of blocks is decoded, and its records are permuted
//! together.

use math::random::RandomStream;

use crate::batch::{Batch, BatchBuilder};

/// Consecutive blocks (in the permuted order of blocks) whose records are mixed. A larger window takes more memory per
/// task and comes closer to a permutation of all records.
pub(crate) const WINDOW_BLOCKS: usize = 16;

/// A record of the window: its block and its position in the block.
type RecordPosition = (u32, u32);

/// The window and the batch under construction.
#[derive(Debug, Default)]
pub(crate) struct Rebatcher {
    blocks: Vec<Batch>,
    order: Vec<RecordPosition>,
    next: usize,
    builder: Option<BatchBuilder>,
    /// The numbers of the records in the builder; empty if records are not numbered.
    numbers: Vec<u64>,
}

impl Rebatcher {
    /// Drops the remaining records of the epoch before.
    pub(crate) fn reset(&mut self) {
        self.order.clear();
        self.next = 0;
        self.builder = None;
        self.numbers.clear();
    }

    /// Whether all records of the window are taken.
    pub(crate) fn is_window_empty(&self) -> bool {
        self.next == self.order.len()
    }

    /// Makes a new window of `count` blocks and permutes its records by `random`. `read` gets a position in the window
    /// and fills its block.
    pub(crate) fn fill_shuffled<E>(
        &mut self,
        count: usize,
        random: &mut RandomStream,
        mut read: impl FnMut(usize, &mut Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        assert!(self.is_window_empty(), "fill_shuffled: records of the window before would be lost");
        self.next = 0;
        self.order.clear();
        self.blocks.resize_with(count.max(self.blocks.len()), Batch::default);
        for (block, number) in self.blocks[..count].iter_mut().zip(0..count) {
            read(number, block)?;
            self.order.extend((0..block.record_count() as u32).map(|record| (number as u32, record)));
        }
        random.shuffle(&mut self.order);
        Ok(())
    }

    /// Moves records of the window into the open batch until it has `batch_size` records or the window is empty;
    /// returns whether the batch is full.
    pub(crate) fn collect_batch(&mut self, batch_size: usize) -> bool {
        let builder = self.builder.get_or_insert_with(BatchBuilder::new);
        let wanted = batch_size - builder.record_count().min(batch_size);
        let end = self.order.len().min(self.next + wanted);
        for &(block, record) in &self.order[self.next..end] {
            let (block, record) = (&self.blocks[block as usize], record as usize);
            copy_record(block, record, builder);
            self.numbers.extend(block.numbers.get(record));
        }
        self.next = end;
        builder.record_count() >= batch_size
    }

    /// Moves the open batch into `out`; returns false when it has no record.
    pub(crate) fn finish(&mut self, out: &mut Batch) -> bool {
        match &mut self.builder {
            Some(builder) if builder.record_count() > 0 => {
                builder.finish(out);
                std::mem::swap(&mut out.numbers, &mut self.numbers);
                self.numbers.clear();
                true
            }
            _ => false,
        }
    }
}

/// Appends record `r` of `batch`, with its entries in their order.
pub(crate) fn copy_record(batch: &Batch, r: usize, builder: &mut BatchBuilder) {
    for entry in batch.entries(r) {
        let key = batch.columns[batch.indices[entry] as usize];
        let value = batch.values.get(entry).copied().unwrap_or(1.0);
        match batch.fields.get(entry) {
            Some(&field) => builder.push_with_field(field, key, value),
            None => builder.push(key, value),
        }
    }
    if let Some(&time) = batch.times.get(r) {
        builder.set_time(time);
    }
    builder.end_record(batch.labels[r], batch.weight(r), batch.groups.get(r).copied());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch without fields and groups, whose records have times.
    fn timed(labels: &[f64]) -> Batch {
        let mut builder = BatchBuilder::new();
        for &label in labels {
            builder.push(label as u64 + 10, 0.5);
            builder.push(3, 1.0);
            builder.set_time(label * 2.0);
            builder.end_record(label, 1.0, None);
        }
        let mut batch = Batch::default();
        builder.finish(&mut batch);
        batch
    }

    fn window(rebatcher: &mut Rebatcher, labels: &[f64]) {
        // In the order of the records.
        rebatcher.blocks = vec![timed(labels)];
        rebatcher.order = (0..labels.len() as u32).map(|record| (0, record)).collect();
        rebatcher.next = 0;
    }

    #[test]
    fn records_keep_values_and_times_and_have_no_fields_of_their_own() {
        let mut rebatcher = Rebatcher::default();
        window(&mut rebatcher, &[1.0, 2.0]);
        assert!(!rebatcher.collect_batch(3));
        assert!(rebatcher.is_window_empty());
        window(&mut rebatcher, &[3.0, 4.0]);
        assert!(rebatcher.collect_batch(3) && !rebatcher.is_window_empty());
        let mut batch = Batch::default();
        assert!(rebatcher.finish(&mut batch));
        assert_eq!(batch, timed(&[1.0, 2.0, 3.0]));
        assert!(!rebatcher.collect_batch(2));
        assert!(rebatcher.finish(&mut batch));
        assert_eq!(batch, timed(&[4.0]));
        assert!(!rebatcher.finish(&mut batch), "no record is left");
    }

    #[test]
    fn nothing_of_an_epoch_that_was_left_stays() {
        let mut rebatcher = Rebatcher::default();
        window(&mut rebatcher, &[1.0, 2.0]);
        rebatcher.collect_batch(1);
        rebatcher.reset();
        assert!(rebatcher.is_window_empty());
        assert!(!rebatcher.finish(&mut Batch::default()));
        window(&mut rebatcher, &[3.0]);
        rebatcher.collect_batch(1);
        let mut batch = Batch::default();
        assert!(rebatcher.finish(&mut batch));
        assert_eq!(batch, timed(&[3.0]));
    }

    #[test]
    #[should_panic(expected = "records of the window before would be lost")]
    fn a_window_is_taken_before_the_next() {
        let mut rebatcher = Rebatcher::default();
        window(&mut rebatcher, &[1.0]);
        let mut random = math::random::stream(1, math::random::Purpose::Test, 0, 0);
        let _ = rebatcher.fill_shuffled(1, &mut random, |_, _| Ok::<(), ()>(()));
    }
}
