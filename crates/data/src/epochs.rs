//! The data of one task, epoch after epoch: parsed once, cached as blocks, read again in another order.
//!
//! Epoch 0 streams from the reader in the order of the files and caches what it parses. Later epochs read the cached
//! blocks. [`TaskData::scan`] parses everything first, so that epoch 0 reads blocks too. The order of an epoch depends
//! only on the seed, the task and the epoch, not on the epochs before it.

use math::random::{Purpose, RandomStream, stream};

use crate::batch::{Batch, BatchBuilder};
use crate::batch_size::BatchSize;
use crate::cache::{BlockCache, CacheConfig, CacheStats};
use crate::error::Error;
use crate::key_set::KeySet;
use crate::reader::Reader;
use crate::rebatcher::{Rebatcher, WINDOW_BLOCKS, copy_record};
use crate::stream::BatchStream;

/// The order of the records in an epoch that reads cached blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shuffle {
    /// The order of the files.
    None,
    /// The batches of the files in permuted order.
    Batches,
    /// New batches of permuted records: windows of 16 permuted batches are mixed.
    Records,
}

/// Where the current epoch gets its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EpochSource {
    /// No epoch has started.
    Idle,
    /// The reader.
    Reader,
    /// The cached blocks.
    Blocks,
}

/// The batches of one task.
pub struct TaskData {
    reader: Reader,
    /// Whether the reader has returned its last record.
    is_read_fully: bool,
    cache: Option<BlockCache>,
    shuffle: Shuffle,
    seed: u64,
    task: u64,
    batch_size: BatchSize,
    /// Whether epoch 0 has the order of the files even when it reads cached blocks.
    first_in_order: bool,
    source: EpochSource,
    /// Number of epochs over these data before this run; the orders of this run continue after them.
    first_epoch: u64,
    epoch: u64,
    /// Number of records that the reader has returned, without the hold-out.
    read_count: u64,
    /// Number of records of this epoch so far, when records are mixed.
    shuffled_count: u64,
    /// Whether batches have the numbers of their records.
    numbers_records: bool,
    /// The number of the first record of each cached block.
    block_starts: Vec<u64>,
    /// Cached blocks in the order of this epoch, and how many of them are taken.
    order: Vec<u32>,
    taken_count: usize,
    /// Random stream of this epoch: it orders the blocks first, then the records of each window.
    random: RandomStream,
    rebatcher: Rebatcher,
    batch: Batch,
    /// Records that were held out after they were scanned.
    holdout: Vec<Batch>,
}

impl TaskData {
    /// Makes batches of `batch_size` records from the data of `reader`. A rule for the size counts all records of this
    /// task so far, those of earlier epochs included. Without `cache` there is only one epoch, and nothing is cached.
    ///
    /// # Panics
    /// When `batch_size` is 0.
    pub fn new(
        reader: Reader,
        keep: Option<CacheConfig>,
        shuffle: Shuffle,
        seed: u64,
        task: u64,
        batch_size: impl Into<BatchSize>,
    ) -> Self {
        let batch_size = batch_size.into();
        assert!(batch_size.next(0) > 0, "a batch has at least one record");
        Self {
            reader,
            is_read_fully: false,
            cache: keep.map(|config| BlockCache::new(config, task)),
            shuffle,
            seed,
            task,
            batch_size,
            first_in_order: false,
            source: EpochSource::Idle,
            first_epoch: 0,
            epoch: 0,
            read_count: 0,
            shuffled_count: 0,
            numbers_records: false,
            block_starts: Vec::new(),
            order: Vec::new(),
            taken_count: 0,
            random: stream(seed, Purpose::Shuffle, task, 0),
            rebatcher: Rebatcher::default(),
            batch: Batch::default(),
            holdout: Vec::new(),
        }
    }

    /// Continues the order of epochs after `epoch` epochs of an earlier run. Without a shuffle all epochs are equal,
    /// and the first one may still be read from the files.
    pub fn set_first_epoch(&mut self, epoch: u64) {
        self.first_epoch = if self.shuffle == Shuffle::None { 0 } else { epoch };
    }

    /// Gives every batch the numbers of its records, for what a task remembers of each record from epoch to epoch.
    pub fn number_records(&mut self) {
        self.numbers_records = true;
    }

    /// The number of the task.
    pub fn task(&self) -> u64 {
        self.task
    }

    /// The reader, for its summary.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The reader, for its dictionary.
    pub fn reader_mut(&mut self) -> &mut Reader {
        &mut self.reader
    }

    /// Takes the hold-out records, as batches.
    pub fn take_holdout(&mut self) -> Vec<Batch> {
        let mut batches = self.reader.take_holdout();
        batches.append(&mut self.holdout);
        batches
    }

    /// Size of the block cache; zeros without one.
    pub fn cache_stats(&self) -> CacheStats {
        self.cache.as_ref().map_or_else(CacheStats::default, BlockCache::stats)
    }

    /// Parses all remaining records into cached blocks. It is an error when there is no cache, or when reading fails.
    pub fn scan(&mut self) -> Result<(), Error> {
        while self.scan_step()? {}
        Ok(())
    }

    /// Parses the next batch into a cached block; returns false when everything is parsed. It lets the caller stop a
    /// scan.
    pub fn scan_step(&mut self) -> Result<bool, Error> {
        if self.cache.is_none() {
            return Err(self.not_cached_error());
        }
        self.read_batch()
    }

    /// Changes the settings of scanned data before their first epoch, as if the data had been made with them: batches
    /// of `batch_size`, later epochs in the order of `shuffle`, and epoch 0 in the order of the files unless
    /// `is_scanned`, that is, unless these settings alone would also have scanned the data. A reader that has held out no
    /// records gives up those that `holdout` draws: a share of them, with its stream.
    ///
    /// # Panics
    /// When an epoch was started.
    pub fn reconfigure(
        &mut self,
        batch_size: BatchSize,
        shuffle: Shuffle,
        is_scanned: bool,
        holdout: Option<(f64, RandomStream)>,
    ) -> Result<(), Error> {
        assert!(self.source == EpochSource::Idle, "reconfigure: an epoch was started");
        (self.shuffle, self.first_in_order) = (shuffle, !is_scanned);
        let has_other_size = std::mem::replace(&mut self.batch_size, batch_size) != batch_size;
        match holdout.filter(|_| !self.reader.has_holdout()) {
            Some((share, mut random)) => self.rewrite(|| random.uniform() < share),
            None if has_other_size => self.rewrite(|| false),
            None => Ok(()),
        }
    }

    /// Makes new batches of the scanned records, in their order, without those that `is_held_out` names, one after the
    /// other.
    fn rewrite(&mut self, mut is_held_out: impl FnMut() -> bool) -> Result<(), Error> {
        self.scan()?;
        let Some(mut old) = self.cache.take() else { return Err(self.not_cached_error()) };
        self.cache = Some(BlockCache::new(old.config().clone(), self.task));
        self.block_starts.clear();
        self.read_count = 0;
        let (mut training, mut held_out) = (BatchBuilder::new(), BatchBuilder::new());
        let mut block = Batch::default();
        for number in 0..old.len() {
            old.read(number, &mut block)?;
            for r in 0..block.record_count() {
                if is_held_out() {
                    copy_record(&block, r, &mut held_out);
                    continue;
                }
                copy_record(&block, r, &mut training);
                if training.record_count() >= self.batch_size.next(self.read_count) {
                    self.keep(&mut training)?;
                }
            }
        }
        self.keep(&mut training)?;
        if held_out.record_count() > 0 {
            held_out.finish(&mut self.batch);
            self.holdout.push(std::mem::take(&mut self.batch));
        }
        if let Some(cache) = &mut self.cache {
            cache.seal();
        }
        Ok(())
    }

    /// Caches the records of the builder as the next batch.
    fn keep(&mut self, records: &mut BatchBuilder) -> Result<(), Error> {
        if records.record_count() > 0
            && let Some(cache) = &mut self.cache
        {
            records.finish(&mut self.batch);
            self.block_starts.push(self.read_count);
            self.read_count += self.batch.record_count() as u64;
            cache.add(&self.batch)?;
        }
        Ok(())
    }

    fn not_cached_error(&self) -> Error {
        Error::NotCached { epoch: self.epoch, task: self.task }
    }

    /// Reads the next batch of the reader into `self.batch` and caches it if there is a cache; returns false at the
    /// end.
    fn read_batch(&mut self) -> Result<bool, Error> {
        while !self.is_read_fully {
            let batch_size = self.batch_size.next(self.read_count);
            if !self.reader.next_batch(batch_size, &mut self.batch)? {
                self.is_read_fully = true;
                if let Some(cache) = &mut self.cache {
                    cache.seal();
                }
                break;
            }
            // All records of this batch went to the hold-out.
            if self.batch.record_count() == 0 {
                continue;
            }
            let first = self.read_count;
            self.read_count += self.batch.record_count() as u64;
            if let Some(cache) = &mut self.cache {
                self.block_starts.push(first);
                cache.add(&self.batch)?;
            }
            number(&mut self.batch, first, self.numbers_records);
            return Ok(true);
        }
        Ok(false)
    }

    /// Reads the next batch of this epoch into `self.batch`; returns false at the end.
    fn advance(&mut self) -> Result<bool, Error> {
        match (self.source, self.shuffle) {
            (EpochSource::Idle, _) => panic!("next: no epoch was started"),
            (EpochSource::Reader, _) => self.read_batch(),
            (EpochSource::Blocks, Shuffle::None | Shuffle::Batches) => self.next_block(),
            (EpochSource::Blocks, Shuffle::Records) if self.reads_in_order() => self.next_block(),
            (EpochSource::Blocks, Shuffle::Records) => self.next_shuffled(),
        }
    }

    fn reads_in_order(&self) -> bool {
        self.first_in_order && self.epoch == 0
    }

    fn order_blocks(&mut self) {
        let block_count = self.cache.as_ref().map_or(0, BlockCache::len);
        self.order.clear();
        self.order.extend(0..block_count as u32);
        self.random = stream(self.seed, Purpose::Shuffle, self.task, self.epoch);
        if self.shuffle != Shuffle::None && !self.reads_in_order() {
            self.random.shuffle(&mut self.order);
        }
        self.taken_count = 0;
        self.shuffled_count = 0;
        self.rebatcher.reset();
    }

    /// Reads the next cached block into `self.batch`; returns false at the end.
    fn next_block(&mut self) -> Result<bool, Error> {
        let (Some(cache), Some(&block)) = (&mut self.cache, self.order.get(self.taken_count)) else {
            return Ok(false);
        };
        self.taken_count += 1;
        cache.read(block as usize, &mut self.batch)?;
        number(&mut self.batch, self.block_starts[block as usize], self.numbers_records);
        Ok(true)
    }

    /// Makes the next batch of mixed records in `self.batch`; returns false at the end.
    fn next_shuffled(&mut self) -> Result<bool, Error> {
        let before = self.epoch * self.read_count + self.shuffled_count;
        let batch_size = self.batch_size.next(before);
        while !self.rebatcher.collect_batch(batch_size) {
            let rest = &self.order[self.taken_count..];
            let window = &rest[..rest.len().min(WINDOW_BLOCKS)];
            let (Some(cache), false) = (&mut self.cache, window.is_empty()) else {
                break;
            };
            let (starts, numbers_records) = (&self.block_starts, self.numbers_records);
            let read = |i: usize, block: &mut Batch| -> Result<(), Error> {
                cache.read(window[i] as usize, block)?;
                number(block, starts[window[i] as usize], numbers_records);
                Ok(())
            };
            self.rebatcher.fill_shuffled(window.len(), &mut self.random, read)?;
            self.taken_count += window.len();
        }
        let has_batch = self.rebatcher.finish(&mut self.batch);
        self.shuffled_count += if has_batch { self.batch.record_count() as u64 } else { 0 };
        Ok(has_batch)
    }
}

/// Numbers the records of a batch from `first` on, if they are to be numbered.
fn number(batch: &mut Batch, first: u64, numbers_records: bool) {
    batch.numbers.clear();
    if numbers_records {
        batch.numbers.extend(first..first + batch.record_count() as u64);
    }
}

impl BatchStream for TaskData {
    fn start_epoch(&mut self, epoch: u64) -> Result<(), Error> {
        let first = self.source == EpochSource::Idle;
        self.epoch = self.first_epoch + epoch;
        if first && self.epoch == 0 && !self.is_read_fully {
            self.source = EpochSource::Reader;
            return Ok(());
        }
        self.scan()?;
        self.source = EpochSource::Blocks;
        self.order_blocks();
        Ok(())
    }

    fn next(&mut self) -> Result<Option<&Batch>, Error> {
        Ok(self.advance()?.then_some(&self.batch))
    }

    fn next_into(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        let has_batch = self.advance()?;
        if has_batch {
            std::mem::swap(batch, &mut self.batch);
        }
        Ok(has_batch)
    }

    fn rank_columns(&mut self, keys: &KeySet) -> Result<bool, Error> {
        self.scan()?;
        self.cache.as_mut().map_or(Ok(false), |cache| cache.rank_columns(keys, &mut self.batch))
    }

    fn release_cache(&mut self) {
        // An epoch that reads the cached blocks needs them until its end.
        let is_read = self.source == EpochSource::Blocks && self.taken_count == self.order.len();
        if self.source == EpochSource::Reader || is_read {
            self.cache = None;
        }
    }
}

/// Batches in memory, the same in every epoch, for validation records and tests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryStream {
    batches: Vec<Batch>,
    next: usize,
}

impl MemoryStream {
    pub fn new(batches: Vec<Batch>) -> Self {
        Self { batches, next: 0 }
    }
}

impl BatchStream for MemoryStream {
    fn start_epoch(&mut self, _epoch: u64) -> Result<(), Error> {
        self.next = 0;
        Ok(())
    }

    fn next(&mut self) -> Result<Option<&Batch>, Error> {
        let batch = self.batches.get(self.next);
        self.next += usize::from(batch.is_some());
        Ok(batch)
    }
}

#[cfg(test)]
mod tests;
