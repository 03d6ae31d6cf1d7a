//! Tensors in the safetensors format. The crate of that name reads and checks them.
//!
//! Its writer makes a file of its own, and sums of the bytes have to be computed while they are written; so only the
//! entries of the header are from the crate here. The header is sorted by names. Tensors of 8-byte elements are written
//! first, so every tensor begins at a multiple of its element size.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;

use matrix::OwnedValues;
pub use safetensors::tensor::{Dtype, SafeTensors, TensorInfo, TensorView};

/// The length of a header is a multiple of this number of bytes.
const HEADER_ALIGNMENT: usize = 8;

#[cfg(not(target_endian = "little"))]
compile_error!("tensors are written as they are in memory, and the format is little-endian");

/// A named tensor that is written.
#[derive(Clone, Debug)]
pub struct Tensor<'a> {
    pub name: String,
    pub dtype: Dtype,
    /// The dimensions; their product is the number of elements.
    pub shape: Vec<usize>,
    /// The elements, row-major.
    pub bytes: Cow<'a, [u8]>,
}

/// Writes tensors in the order of their element sizes, largest first, then in the given order.
pub fn write(tensors: &[Tensor<'_>], out: &mut impl Write) -> std::io::Result<()> {
    let mut order: Vec<&Tensor<'_>> = tensors.iter().collect();
    order.sort_by_key(|tensor| Reverse(tensor.dtype.bitsize()));
    let mut header = BTreeMap::new();
    let mut end = 0;
    for Tensor { name, dtype, shape, bytes } in &order {
        let start = end;
        end += bytes.len();
        header.insert(name, TensorInfo { dtype: *dtype, shape: shape.clone(), data_offsets: (start, end) });
    }
    let mut text = serde_json::to_vec(&header)?;
    text.resize(text.len().next_multiple_of(HEADER_ALIGNMENT), b' ');
    out.write_all(&(text.len() as u64).to_le_bytes())?;
    out.write_all(&text)?;
    order.iter().try_for_each(|tensor| out.write_all(&tensor.bytes))
}

/// The values of a matrix or slot; `None` for other types of elements.
pub fn values(tensor: &TensorView<'_>) -> Option<OwnedValues> {
    match tensor.dtype() {
        Dtype::F32 => Some(OwnedValues::F32(elements(tensor.data(), f32::from_le_bytes))),
        Dtype::F64 => Some(OwnedValues::F64(elements(tensor.data(), f64::from_le_bytes))),
        Dtype::I64 => Some(OwnedValues::I64(elements(tensor.data(), i64::from_le_bytes))),
        _ => None,
    }
}

/// The keys of rows; `None` for other types of elements.
pub fn keys(tensor: &TensorView<'_>) -> Option<Vec<u64>> {
    (tensor.dtype() == Dtype::U64).then(|| elements(tensor.data(), u64::from_le_bytes))
}

fn elements<T, const N: usize>(bytes: &[u8], of_bytes: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|chunk| of_bytes(*chunk)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let values: Vec<u8> = [0.5f32, -1.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let keys: Vec<u8> = [3u64, 1 << 40].iter().flat_map(|x| x.to_le_bytes()).collect();
        let tensors = [
            Tensor { name: "w".into(), dtype: Dtype::F32, shape: vec![2, 1], bytes: values.into() },
            Tensor { name: "keys".into(), dtype: Dtype::U64, shape: vec![2], bytes: keys.into() },
        ];
        let mut bytes = Vec::new();
        write(&tensors, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = sample();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(keys(&tensors.tensor("keys").unwrap()), Some(vec![3, 1 << 40]));
        let weights = tensors.tensor("w").unwrap();
        assert_eq!(values(&weights), Some(OwnedValues::F32(vec![0.5, -1.0])));
        assert_eq!(weights.shape(), [2, 1]);
        assert_eq!((keys(&weights), values(&tensors.tensor("keys").unwrap())), (None, None));
    }

    /// The bytes that all versions have written so far.
    #[test]
    fn the_bytes_of_a_file_stay_as_they_are() {
        let bytes = sample();
        let header = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
        assert_eq!(header % 8, 0);
        let text = r#"{"keys":{"dtype":"U64","shape":[2],"data_offsets":[0,16]},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[16,24]}}"#;
        assert_eq!(std::str::from_utf8(&bytes[8..8 + header]).unwrap().trim_end(), text);
        let data = [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 63, 0, 0, 128, 191];
        assert_eq!(bytes[8 + header..], data);
    }

    #[test]
    fn no_byte_sequence_panics() {
        let read = |bytes: &[u8]| {
            let tensors = SafeTensors::deserialize(bytes).ok()?;
            Some(tensors.iter().map(|(_, tensor)| (keys(&tensor), values(&tensor))).collect::<Vec<_>>())
        };
        let bytes = sample();
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_none(), "cut at {length}");
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
            assert!(SafeTensors::deserialize(&bytes).is_err(), "{header}");
        }
        let mut length = u64::MAX.to_le_bytes().to_vec();
        length.extend_from_slice(b"{}");
        assert!(SafeTensors::deserialize(&length).is_err(), "a header longer than the file");
    }
}
