//! Where a task keeps its parsed records between epochs: as blocks in memory, in one file, or in memory up to a limit
//! and then in the file.

mod disk;

use std::path::PathBuf;

use crate::batch::Batch;
use crate::block;
use crate::error::Error;
use disk::DiskBlocks;

/// Where blocks are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// In memory; reaching the limit is an error.
    Memory,
    /// In a file.
    Disk,
    /// In memory up to the limit, the rest in a file.
    Both,
}

/// Where and how much one task keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeepConfig {
    /// Where blocks are kept.
    pub mode: Keep,
    /// The most that blocks of this task may take in memory, in bytes.
    pub memory_limit_bytes: u64,
    /// Where the file is made, when one is needed.
    pub folder: PathBuf,
}

/// How much is kept and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct KeptStats {
    /// Number of blocks.
    pub block_count: u64,
    /// Bytes of the blocks in memory.
    pub memory_bytes: u64,
    /// Bytes of the blocks on disk.
    pub disk_bytes: u64,
}

/// Where one block lies.
#[derive(Debug)]
enum Place {
    Memory(Box<[u8]>),
    Disk { offset: u64, size_bytes: usize },
}

/// The kept blocks of one task, in the order in which they were added.
#[derive(Debug)]
pub struct KeptBlocks {
    config: KeepConfig,
    task: u64,
    places: Vec<Place>,
    disk: Option<DiskBlocks>,
    memory_bytes: u64,
    scratch: Vec<u8>,
}

impl KeptBlocks {
    /// Nothing kept yet; no file is made before a block needs it.
    pub fn new(config: KeepConfig, task: u64) -> Self {
        Self { config, task, places: Vec::new(), disk: None, memory_bytes: 0, scratch: Vec::new() }
    }

    /// Where and how much is kept.
    pub fn config(&self) -> &KeepConfig {
        &self.config
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is no block.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How much is kept and where.
    pub fn stats(&self) -> KeptStats {
        KeptStats {
            block_count: self.places.len() as u64,
            memory_bytes: self.memory_bytes,
            disk_bytes: self.disk.as_ref().map_or(0, DiskBlocks::size_bytes),
        }
    }

    /// Keeps a copy of `batch` as the last block.
    pub fn add(&mut self, batch: &Batch) -> Result<(), Error> {
        self.scratch.clear();
        block::encode(batch, &mut self.scratch);
        let wanted_bytes = self.scratch.len() as u64;
        let fits = self.memory_bytes + wanted_bytes <= self.config.memory_limit_bytes;
        let place = match self.config.mode {
            Keep::Memory if !fits => {
                return Err(Error::KeepLimit {
                    limit_bytes: self.config.memory_limit_bytes,
                    kept_bytes: self.memory_bytes,
                    wanted_bytes,
                });
            }
            // Once a block went to disk all later ones do, so that the order on disk is the order of the file.
            Keep::Both if fits && self.disk.is_none() => self.in_memory(),
            Keep::Memory => self.in_memory(),
            Keep::Both | Keep::Disk => self.on_disk()?,
        };
        self.places.push(place);
        Ok(())
    }

    fn in_memory(&mut self) -> Place {
        self.memory_bytes += self.scratch.len() as u64;
        Place::Memory(self.scratch.as_slice().into())
    }

    fn on_disk(&mut self) -> Result<Place, Error> {
        let disk = match &mut self.disk {
            Some(disk) => disk,
            empty => empty.insert(DiskBlocks::create(&self.config.folder, self.task)?),
        };
        let offset = disk.append(&self.scratch)?;
        Ok(Place::Disk { offset, size_bytes: self.scratch.len() })
    }

    /// Ends the adding: from now on blocks are only read, and memory used for adding is given back.
    pub fn seal(&mut self) {
        self.scratch = Vec::new();
        self.places.shrink_to_fit();
    }

    /// Reads block `index` into `out`, whose memory is reused.
    ///
    /// # Panics
    /// When there is no such block.
    pub fn read(&mut self, index: usize, out: &mut Batch) -> Result<(), Error> {
        let result = match &self.places[index] {
            Place::Memory(bytes) => block::decode(bytes, out),
            Place::Disk { offset, size_bytes } => {
                let disk = self.disk.as_mut().expect("a block lies on disk, so there is a file");
                let result = block::decode(disk.block(*offset, *size_bytes)?, out);
                disk.release(*offset, *size_bytes);
                result
            }
        };
        result.map_err(|fault| Error::KeptBlock { index, place: self.place_name(index), fault })
    }

    fn place_name(&self, index: usize) -> String {
        match (&self.places[index], &self.disk) {
            (Place::Disk { offset, .. }, Some(disk)) => format!("{} at byte {offset}", disk.path().display()),
            _ => "memory".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
