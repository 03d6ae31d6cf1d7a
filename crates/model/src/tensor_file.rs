//! A file of tensors whose shapes are known and whose elements arrive in pieces, of all tensors in turn.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::disk_sync::{BUFFER_BYTES, DiskSync};
use super::manifest::FileEntry;
use super::tensors::{Dtype, header};
use crate::error::Error;

/// A tensor before its elements are known.
#[derive(Clone, Debug)]
pub(crate) struct PlannedTensor {
    pub(crate) name: String,
    pub(crate) dtype: Dtype,
    /// The dimensions; their product is the number of elements.
    pub(crate) shape: Vec<usize>,
}

impl PlannedTensor {
    fn size_bytes(&self) -> u64 {
        self.shape.iter().product::<usize>() as u64 * self.dtype.bitsize() as u64 / 8
    }
}

/// The place of a tensor in the file.
struct Region {
    name: String,
    file: BufWriter<File>,
    size_bytes: u64,
    written_bytes: u64,
    crc32c: u32,
}

/// A file of tensors that is being written.
pub(crate) struct TensorFile<'a> {
    name: &'static str,
    path: PathBuf,
    sync: &'a DiskSync,
    header_bytes: u64,
    header_crc32c: u32,
    /// In the order of the file.
    regions: Vec<Region>,
}

impl<'a> TensorFile<'a> {
    /// Creates the file in `folder` with places for these tensors, and writes its header.
    pub(crate) fn create(
        folder: &Path,
        name: &'static str,
        mut tensors: Vec<PlannedTensor>,
        sync: &'a DiskSync,
    ) -> Result<Self, Error> {
        let path = folder.join(name);
        // Tensors of 8-byte elements are first, so every tensor begins at a multiple of its element size.
        tensors.sort_by_key(|tensor| std::cmp::Reverse(tensor.dtype.bitsize()));
        let header =
            header(tensors.iter().map(|t| (t.name.as_str(), t.dtype, t.shape.clone(), t.size_bytes())))
                .map_err(|error| Error::io("write", &path)(error.into()))?;
        let mut file = File::create(&path).map_err(Error::io("create", &path))?;
        file.write_all(&header).map_err(Error::io("write", &path))?;
        let mut start = header.len() as u64;
        let mut regions = Vec::new();
        for tensor in tensors {
            let size_bytes = tensor.size_bytes();
            let mut file = OpenOptions::new().write(true).open(&path).map_err(Error::io("write", &path))?;
            file.seek(SeekFrom::Start(start)).map_err(Error::io("write", &path))?;
            let file = BufWriter::with_capacity(BUFFER_BYTES.min(size_bytes as usize), file);
            regions.push(Region { name: tensor.name, file, size_bytes, written_bytes: 0, crc32c: 0 });
            start += size_bytes;
        }
        let (header_bytes, header_crc32c) = (header.len() as u64, crc32c::crc32c(&header));
        Ok(Self { name, path, sync, header_bytes, header_crc32c, regions })
    }

    /// Writes the next elements of a tensor.
    ///
    /// # Panics
    /// If the file has no such tensor.
    pub(crate) fn append(&mut self, tensor: &str, bytes: &[u8]) -> Result<(), Error> {
        let region = self.regions.iter_mut().find(|region| region.name == tensor);
        let region = region.expect("the plan has the tensor");
        region.written_bytes += bytes.len() as u64;
        if region.written_bytes > region.size_bytes {
            return Err(self.changed());
        }
        region.crc32c = crc32c::crc32c_append(region.crc32c, bytes);
        region.file.write_all(bytes).map_err(Error::io("write", &self.path))
    }

    fn changed(&self) -> Error {
        let source = std::io::Error::other("the rows have changed while they were written");
        Error::io("write", &self.path)(source)
    }

    /// Waits until the file is on the disk.
    pub(crate) fn finish(mut self) -> Result<FileEntry, Error> {
        let (mut size_bytes, mut crc32c) = (self.header_bytes, self.header_crc32c);
        for region in &mut self.regions {
            if region.written_bytes != region.size_bytes {
                return Err(self.changed());
            }
            region.file.flush().map_err(Error::io("write", &self.path))?;
            crc32c = crc32c::crc32c_combine(crc32c, region.crc32c, region.size_bytes as usize);
            size_bytes += region.size_bytes;
        }
        let file = OpenOptions::new().write(true).open(&self.path);
        file.and_then(|file| self.sync.file(&file)).map_err(Error::io("write", &self.path))?;
        Ok(FileEntry { name: self.name.into(), size_bytes, crc32c })
    }
}
