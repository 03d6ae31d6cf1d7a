//! The tensors of a file in the safetensors format, read in pieces.
//!
//! The crate of that name needs the whole file in memory; here only its header is.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use matrix::{ElementType, OwnedValues};

use super::tensors::{Dtype, TensorInfo, entries};
use crate::error::Error;
use crate::matrix_plan::dtype_of;

/// Bytes of the length of the header.
const LENGTH_BYTES: u64 = 8;
/// The largest header: that of thousands of tensors.
const HEADER_LIMIT: u64 = 100 << 20;

/// A tensor in a file.
#[derive(Clone, Debug)]
pub(crate) struct StoredTensor {
    path: PathBuf,
    name: String,
    file: Arc<File>,
    pub(crate) dtype: Dtype,
    /// Number of elements.
    pub(crate) len: u64,
    start: u64,
}

impl StoredTensor {
    /// Fills `bytes` with those of the elements from `first` on.
    fn read(&self, first: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let start = self.start + first * self.dtype.bitsize() as u64 / 8;
        self.file.read_exact_at(bytes, start).map_err(Error::io("read", &self.path))
    }

    /// These elements as values of a matrix or a slot.
    pub(crate) fn values(&self, range: Range<u64>) -> Result<OwnedValues, Error> {
        let Some(element) = ElementType::ALL.iter().find(|element| dtype_of(**element) == self.dtype) else {
            return Err(self.unfit("must be F32, F64, I64, I32 or U32"));
        };
        let mut values = OwnedValues::zeros(*element, (range.end - range.start) as usize);
        self.read(range.start, values.bytes_mut())?;
        Ok(values)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// These elements as whole numbers.
    pub(crate) fn numbers(&self, range: Range<u64>) -> Result<Vec<u64>, Error> {
        if self.dtype != Dtype::U64 {
            return Err(self.unfit("must be U64"));
        }
        let mut numbers = vec![0u64; (range.end - range.start) as usize];
        self.read(range.start, bytemuck::cast_slice_mut(&mut numbers))?;
        Ok(numbers)
    }

    /// These elements as keys of rows, which must ascend.
    pub(crate) fn keys(&self, range: Range<u64>) -> Result<Vec<u64>, Error> {
        // The key before them is compared too.
        let before = u64::from(range.start > 0);
        let mut keys = self.numbers(range.start - before..range.end)?;
        if !keys.is_sorted_by(|a, b| a < b) {
            let what = format!("keys of tensor {:?} must ascend", self.name);
            return Err(Error::BadModel { path: self.path.clone(), what });
        }
        keys.drain(..before as usize);
        Ok(keys)
    }

    fn unfit(&self, what: &str) -> Error {
        let what = format!("tensor {:?} {what}", self.name);
        Error::BadModel { path: self.path.clone(), what }
    }
}

/// Reads the header of a file; `size_bytes` is its length.
pub(crate) fn open(path: &Path, size_bytes: u64) -> Result<BTreeMap<String, StoredTensor>, Error> {
    let file = File::open(path).map_err(Error::io("read", path))?;
    let (entries, first) = header(&file, size_bytes).map_err(|what| match what {
        HeaderFault::Io(source) => Error::io("read", path)(source),
        HeaderFault::Bad(what) => Error::BadModel { path: path.into(), what },
    })?;
    let file = Arc::new(file);
    let tensor = |(name, info): (String, TensorInfo)| {
        let TensorInfo { dtype, shape, data_offsets: (start, _) } = info;
        let len = shape.iter().product::<usize>() as u64;
        let start = first + start as u64;
        (name.clone(), StoredTensor { path: path.into(), name, file: Arc::clone(&file), dtype, len, start })
    };
    Ok(entries.into_iter().map(tensor).collect())
}

enum HeaderFault {
    Io(std::io::Error),
    Bad(String),
}

/// The entries of the header, and the position of the first element.
fn header(file: &File, size_bytes: u64) -> Result<(BTreeMap<String, TensorInfo>, u64), HeaderFault> {
    let bad = |what: &str| HeaderFault::Bad(format!("its header {what}"));
    if size_bytes < LENGTH_BYTES {
        return Err(bad("is missing"));
    }
    let mut length = [0; LENGTH_BYTES as usize];
    file.read_exact_at(&mut length, 0).map_err(HeaderFault::Io)?;
    let length = u64::from_le_bytes(length);
    if length > HEADER_LIMIT.min(size_bytes - LENGTH_BYTES) {
        return Err(bad("is longer than the file, or than 100 MiB"));
    }
    let mut text = vec![0; length as usize];
    file.read_exact_at(&mut text, LENGTH_BYTES).map_err(HeaderFault::Io)?;
    let entries = entries(&text, size_bytes - LENGTH_BYTES - length).map_err(HeaderFault::Bad)?;
    Ok((entries, LENGTH_BYTES + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let tensors = [("keys", Dtype::U64, vec![2], 16), ("w", Dtype::F32, vec![2, 1], 8)];
        let mut bytes = crate::tensors::header(tensors.into_iter()).unwrap();
        bytes.extend([3u64, 1 << 40].iter().flat_map(|x| x.to_le_bytes()));
        bytes.extend([0.5f32, -1.0].iter().flat_map(|x| x.to_le_bytes()));
        bytes
    }

    /// Reads all tensors of a file with these bytes.
    fn read(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let tensors = open(file.path(), bytes.len() as u64)?;
        let bytes = |tensor: &StoredTensor| {
            let mut bytes = vec![0; (tensor.len * tensor.dtype.bitsize() as u64 / 8) as usize];
            tensor.read(0, &mut bytes).map(|()| bytes)
        };
        tensors.values().map(bytes).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes = sample();
        std::fs::write(file.path(), &bytes).unwrap();
        let tensors = open(file.path(), bytes.len() as u64).unwrap();
        let (keys, weights) = (&tensors["keys"], &tensors["w"]);
        assert_eq!((keys.keys(0..2).unwrap(), keys.keys(1..2).unwrap()), (vec![3, 1 << 40], vec![1 << 40]));
        assert_eq!(weights.values(0..2).unwrap(), OwnedValues::F32(vec![0.5, -1.0]));
        assert_eq!(weights.values(1..2).unwrap(), OwnedValues::F32(vec![-1.0]));
        assert!(weights.keys(0..2).is_err() && keys.values(0..2).is_err(), "of another type");
        assert!(crate::tensors::SafeTensors::deserialize(&bytes).is_ok(), "other programs read it");
    }

    #[test]
    fn keys_that_do_not_ascend_are_refused_also_from_one_piece_to_the_next() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut bytes = crate::tensors::header([("keys", Dtype::U64, vec![3], 24)].into_iter()).unwrap();
        bytes.extend([5u64, 7, 7].iter().flat_map(|x| x.to_le_bytes()));
        std::fs::write(file.path(), &bytes).unwrap();
        let keys = &open(file.path(), bytes.len() as u64).unwrap()["keys"];
        assert_eq!(keys.keys(0..2).unwrap(), [5, 7]);
        assert!(keys.keys(2..3).unwrap_err().to_string().contains("must ascend"));
    }

    #[test]
    fn no_byte_sequence_panics() {
        let bytes = sample();
        assert_eq!(read(&bytes).unwrap().len(), 2);
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_err(), "cut at {length}");
        }
        for position in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[position] ^= 0x11;
            let _ = read(&broken);
        }
    }

    #[test]
    fn a_header_that_cannot_be_is_an_error() {
        for header in [
            r#"{"a":{"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,0]}}"#,
            r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}"#,
            r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#,
            r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#,
        ] {
            let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
            bytes.extend_from_slice(header.as_bytes());
            bytes.extend_from_slice(&[0; 8]);
            assert!(read(&bytes).is_err(), "{header}");
        }
        for length in [u64::MAX, 3] {
            let mut bytes = length.to_le_bytes().to_vec();
            bytes.extend_from_slice(b"{}");
            let error = read(&bytes).unwrap_err().to_string();
            assert!(error.contains("longer than the file"), "{error}");
        }
        assert!(read(&[2, 0, 0]).unwrap_err().to_string().contains("is missing"));
    }
}
