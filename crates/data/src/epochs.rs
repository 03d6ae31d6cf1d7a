//! The data of one task, epoch after epoch: parsed once, kept as blocks, read again in another order.
//!
//! Epoch 0 streams from the reader in the order of the files; what is parsed is kept on the way. Later epochs read the
//! kept blocks. [`TaskData::scan`] parses everything first, so that epoch 0 reads blocks too. The order of an epoch
//! depends on the seed, the task and the epoch alone, not on the epochs before it.

use math::random::{Purpose, RandomStream, stream};

use crate::batch::Batch;
use crate::batch_size::BatchSize;
use crate::cache::{BlockCache, CacheConfig, CacheStats};
use crate::error::Error;
use crate::reader::Reader;
use crate::rebatcher::{Rebatcher, WINDOW_BLOCKS};
use crate::stream::BatchStream;

/// In which order an epoch that reads kept blocks gives its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shuffle {
    /// The order of the files.
    None,
    /// The batches of the files in permuted order.
    Batches,
    /// Records of permuted batches mixed, a window of 16 batches at a time, in new batches.
    Records,
}

/// Where the current epoch gets its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EpochSource {
    /// No epoch has been started.
    Idle,
    /// The reader.
    Reader,
    /// Kept blocks.
    Blocks,
}

/// The batches of one task.
pub struct TaskData {
    reader: Reader,
    /// Whether the reader has given its last record.
    is_read_fully: bool,
    cache: Option<BlockCache>,
    shuffle: Shuffle,
    seed: u64,
    task: u64,
    batch_size: BatchSize,
    /// Epoch 0 has the order of the files, also when it reads kept blocks.
    first_in_order: bool,
    source: EpochSource,
    /// Epochs over these data before this run, which the order of its epochs continues.
    first_epoch: u64,
    epoch: u64,
    /// Records that the reader gave, without those held out.
    read_count: u64,
    /// Records given in this epoch, when they are mixed.
    shuffled_count: u64,
    /// Kept blocks in the order of this epoch, and how many of them are taken.
    order: Vec<u32>,
    taken_count: usize,
    /// The stream of this epoch: first it orders the blocks, then the records of each window.
    random: RandomStream,
    rebatcher: Rebatcher,
    batch: Batch,
}

impl TaskData {
    /// The data that `reader` gives, in batches of `batch_size` records (a number, or a rule over the records of this
    /// task so far, of the epochs before as well). Without `cache` there is one epoch and nothing is kept.
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
            order: Vec::new(),
            taken_count: 0,
            random: stream(seed, Purpose::Shuffle, task, 0),
            rebatcher: Rebatcher::default(),
            batch: Batch::default(),
        }
    }

    /// The order of epochs goes on after so many that an earlier run has made. Where records are given in the order of the
    /// files, all epochs are alike, and the first may be read from the files all the same.
    pub fn set_first_epoch(&mut self, epoch: u64) {
        self.first_epoch = if self.shuffle == Shuffle::None { 0 } else { epoch };
    }

    /// The reader, for its summary.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The reader, for what is taken out of it (hold-out batches, dictionary).
    pub fn reader_mut(&mut self) -> &mut Reader {
        &mut self.reader
    }

    /// How much is kept and where; zeros when nothing is.
    pub fn cache_stats(&self) -> CacheStats {
        self.cache.as_ref().map_or_else(CacheStats::default, BlockCache::stats)
    }

    /// Parses everything that is left into kept blocks. An error without a place to keep them, or when reading fails.
    pub fn scan(&mut self) -> Result<(), Error> {
        while self.scan_step()? {}
        Ok(())
    }

    /// Parses the next batch into a kept block; false when everything is parsed. For those who scan and may be stopped.
    pub fn scan_step(&mut self) -> Result<bool, Error> {
        if self.cache.is_none() {
            return Err(self.not_cached_error());
        }
        self.read_batch()
    }

    /// Scanned data, before their first epoch, become what they would be if they had been made with these settings:
    /// batches of `batch_size`, later epochs in the order of `shuffle`, and epoch 0 in the order of the files unless
    /// `is_scanned`, that is, unless the data would have been scanned with these settings as well.
    ///
    /// # Panics
    /// When an epoch was started.
    pub fn reconfigure(
        &mut self,
        batch_size: BatchSize,
        shuffle: Shuffle,
        is_scanned: bool,
    ) -> Result<(), Error> {
        assert!(self.source == EpochSource::Idle, "settle: an epoch was started");
        (self.shuffle, self.first_in_order) = (shuffle, !is_scanned);
        if std::mem::replace(&mut self.batch_size, batch_size) == batch_size {
            return Ok(());
        }
        self.scan()?;
        let Some(mut old) = self.cache.take() else { return Err(self.not_cached_error()) };
        let mut kept = BlockCache::new(old.config().clone(), self.task);
        let mut records = Rebatcher::default();
        let mut given = 0;
        for block in 0..old.len() {
            records.fill_in_order(|batch| old.read(block, batch))?;
            while records.collect_batch(batch_size.next(given)) {
                records.finish(&mut self.batch);
                given += self.batch.record_count() as u64;
                kept.add(&self.batch)?;
            }
        }
        if records.finish(&mut self.batch) {
            kept.add(&self.batch)?;
        }
        kept.seal();
        self.cache = Some(kept);
        Ok(())
    }

    fn not_cached_error(&self) -> Error {
        Error::NotCached { epoch: self.epoch, task: self.task }
    }

    /// The next batch of the reader into `self.batch`, kept if that is asked for; false at the end.
    fn read_batch(&mut self) -> Result<bool, Error> {
        while !self.is_read_fully {
            let batch_size = self.batch_size.next(self.read_count);
            if !self.reader.next_batch(batch_size, &mut self.batch)? {
                self.is_read_fully = true;
                if let Some(kept) = &mut self.cache {
                    kept.seal();
                }
                break;
            }
            // A batch whose records all went to the hold-out.
            if self.batch.record_count() == 0 {
                continue;
            }
            self.read_count += self.batch.record_count() as u64;
            if let Some(kept) = &mut self.cache {
                kept.add(&self.batch)?;
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// The next batch of this epoch into `self.batch`; false at the end.
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

    /// The next kept block into `self.batch`; false at the end.
    fn next_block(&mut self) -> Result<bool, Error> {
        let (Some(kept), Some(&block)) = (&mut self.cache, self.order.get(self.taken_count)) else {
            return Ok(false);
        };
        self.taken_count += 1;
        kept.read(block as usize, &mut self.batch)?;
        Ok(true)
    }

    /// The next batch of mixed records into `self.batch`; false at the end.
    fn next_shuffled(&mut self) -> Result<bool, Error> {
        let before = self.epoch * self.read_count + self.shuffled_count;
        let batch_size = self.batch_size.next(before);
        while !self.rebatcher.collect_batch(batch_size) {
            let rest = &self.order[self.taken_count..];
            let window = &rest[..rest.len().min(WINDOW_BLOCKS)];
            let (Some(kept), false) = (&mut self.cache, window.is_empty()) else {
                break;
            };
            let read = |i: usize, block: &mut Batch| kept.read(window[i] as usize, block);
            self.rebatcher.fill_shuffled(window.len(), &mut self.random, read)?;
            self.taken_count += window.len();
        }
        let found = self.rebatcher.finish(&mut self.batch);
        self.shuffled_count += if found { self.batch.record_count() as u64 } else { 0 };
        Ok(found)
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
        let found = self.advance()?;
        if found {
            std::mem::swap(batch, &mut self.batch);
        }
        Ok(found)
    }

    fn release_cache(&mut self) {
        // An epoch that reads the kept blocks needs them to its end.
        if self.source == EpochSource::Reader {
            self.cache = None;
        }
    }
}

/// Batches in memory, the same in every epoch: validation records, tests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryStream {
    batches: Vec<Batch>,
    next: usize,
}

impl MemoryStream {
    /// A stream of these batches in this order.
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
