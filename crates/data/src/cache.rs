//! The block cache: stores the parsed records of a task as blocks for later epochs, in memory up to a limit and then in
//! one file.

mod disk;

use std::path::PathBuf;

use crate::batch::Batch;
use crate::block;
use crate::error::Error;
use crate::key_set::KeySet;
use disk::BlockFile;

/// Where one task stores its cached blocks, and its memory limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Memory limit for the blocks of this task, in bytes. The remaining blocks are stored in a file.
    pub memory_limit_bytes: u64,
    /// Folder of the cache file.
    pub folder: PathBuf,
}

/// Size of a block cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CacheStats {
    pub block_count: u64,
    pub memory_bytes: u64,
    pub disk_bytes: u64,
}

#[derive(Debug)]
enum BlockLocation {
    Memory(Box<[u8]>),
    Disk { offset: u64, size_bytes: usize },
}

/// The cached blocks of one task, in the order in which they were added.
#[derive(Debug)]
pub struct BlockCache {
    config: CacheConfig,
    task: u64,
    locations: Vec<BlockLocation>,
    disk: Option<BlockFile>,
    memory_bytes: u64,
    scratch: Vec<u8>,
}

impl BlockCache {
    /// Makes an empty cache. It creates its file with the first block that needs one.
    pub fn new(config: CacheConfig, task: u64) -> Self {
        Self { config, task, locations: Vec::new(), disk: None, memory_bytes: 0, scratch: Vec::new() }
    }

    pub fn config(&self) -> &CacheConfig {
        &self.config
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.locations.len()
    }

    pub fn is_empty(&self) -> bool {
        self.locations.is_empty()
    }

    pub fn stats(&self) -> CacheStats {
        CacheStats {
            block_count: self.locations.len() as u64,
            memory_bytes: self.memory_bytes,
            disk_bytes: self.disk.as_ref().map_or(0, BlockFile::size_bytes),
        }
    }

    /// Encodes `batch` and stores it as the last block.
    pub fn add(&mut self, batch: &Batch) -> Result<(), Error> {
        self.scratch.clear();
        block::encode(batch, &mut self.scratch);
        let fits = self.memory_bytes + self.scratch.len() as u64 <= self.config.memory_limit_bytes;
        // Once a block is on disk, all later ones go there too, so that the order of reading is the order of the file.
        let location =
            if fits && self.disk.is_none() { self.store_in_memory() } else { self.store_on_disk()? };
        self.locations.push(location);
        Ok(())
    }

    fn store_in_memory(&mut self) -> BlockLocation {
        self.memory_bytes += self.scratch.len() as u64;
        BlockLocation::Memory(self.scratch.as_slice().into())
    }

    fn store_on_disk(&mut self) -> Result<BlockLocation, Error> {
        let disk = match &mut self.disk {
            Some(disk) => disk,
            empty => empty.insert(BlockFile::create(&self.config.folder, self.task)?),
        };
        let offset = disk.append(&self.scratch)?;
        Ok(BlockLocation::Disk { offset, size_bytes: self.scratch.len() })
    }

    /// Ends the adding of blocks and frees the memory that only adding needs.
    pub fn seal(&mut self) {
        self.scratch = Vec::new();
        self.locations.shrink_to_fit();
    }

    /// Decodes block `index` into `out`, whose memory is reused.
    ///
    /// # Panics
    /// When there is no such block.
    pub fn read(&mut self, index: usize, out: &mut Batch) -> Result<(), Error> {
        let result = match &self.locations[index] {
            BlockLocation::Memory(bytes) => block::decode(bytes, out),
            BlockLocation::Disk { offset, size_bytes } => {
                let disk = self.disk.as_mut().expect("a block lies on disk, so there is a file");
                let result = block::decode(disk.block(*offset, *size_bytes)?, out);
                disk.release(*offset, *size_bytes);
                result
            }
        };
        result.map_err(|fault| Error::DamagedBlock { index, place: self.location_name(index), fault })
    }

    /// Replaces the columns of all blocks by their ranks in `keys`, if all blocks are in memory, and returns whether they
    /// are.
    pub(crate) fn rank_columns(&mut self, keys: &KeySet, batch: &mut Batch) -> Result<bool, Error> {
        if self.disk.is_some() {
            return Ok(false);
        }
        let mut ranks = Vec::new();
        for index in 0..self.len() {
            self.read(index, batch)?;
            keys.ranks(&batch.columns, &mut ranks);
            batch.columns.clear();
            batch.columns.extend(ranks.iter().map(|&rank| u64::from(rank)));
            self.scratch.clear();
            block::encode(batch, &mut self.scratch);
            if let BlockLocation::Memory(bytes) = &self.locations[index] {
                self.memory_bytes -= bytes.len() as u64;
            }
            self.locations[index] = self.store_in_memory();
        }
        self.seal();
        Ok(true)
    }

    fn location_name(&self, index: usize) -> String {
        match (&self.locations[index], &self.disk) {
            (BlockLocation::Disk { offset, .. }, Some(disk)) => {
                format!("{} at byte {offset}", disk.path().display())
            }
            _ => "memory".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
