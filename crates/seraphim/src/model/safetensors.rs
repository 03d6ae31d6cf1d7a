//! The safetensors container: an 8-byte little-endian header length, a JSON header `{name: {dtype, shape,
//! data_offsets}}` padded with spaces to 8 bytes, then the tensors, little-endian and row-major, without gaps.
//!
//! Tensors of 8-byte elements are written first, so every tensor begins at a multiple of its element size.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;

use serde::{Deserialize, Serialize};

/// Maximum length of a header that is read: a corrupt length must not cause a large allocation.
const HEADER_LIMIT_BYTES: u64 = 1 << 20;
/// Number of elements that are converted to bytes at once.
const CHUNK_ELEMENTS: usize = 8192;

/// Elements of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements<'a> {
    /// Keys.
    U64(Cow<'a, [u64]>),
    /// 64-bit integers.
    I64(Cow<'a, [i64]>),
    /// 64-bit floats.
    F64(Cow<'a, [f64]>),
    /// 32-bit floats.
    F32(Cow<'a, [f32]>),
}

/// A named tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<'a> {
    pub name: String,
    /// The dimensions; their product is the number of elements.
    pub shape: Vec<u64>,
    /// Row-major.
    pub elements: Elements<'a>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

impl Elements<'_> {
    /// Name of the element type in the header.
    pub fn dtype(&self) -> &'static str {
        match self {
            Self::U64(_) => "U64",
            Self::I64(_) => "I64",
            Self::F64(_) => "F64",
            Self::F32(_) => "F32",
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::U64(x) => x.len(),
            Self::I64(x) => x.len(),
            Self::F64(x) => x.len(),
            Self::F32(x) => x.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn width(&self) -> usize {
        if matches!(self, Self::F32(_)) { 4 } else { 8 }
    }

    fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        match self {
            Self::U64(x) => write_chunks(x, out, u64::to_le_bytes),
            Self::I64(x) => write_chunks(x, out, i64::to_le_bytes),
            Self::F64(x) => write_chunks(x, out, f64::to_le_bytes),
            Self::F32(x) => write_chunks(x, out, f32::to_le_bytes),
        }
    }

    fn read(dtype: &str, bytes: &[u8]) -> Option<Elements<'static>> {
        Some(match dtype {
            "U64" => Elements::U64(read_all(bytes, u64::from_le_bytes)?.into()),
            "I64" => Elements::I64(read_all(bytes, i64::from_le_bytes)?.into()),
            "F64" => Elements::F64(read_all(bytes, f64::from_le_bytes)?.into()),
            "F32" => Elements::F32(read_all(bytes, f32::from_le_bytes)?.into()),
            _ => return None,
        })
    }
}

fn write_chunks<T: Copy, const N: usize>(
    items: &[T],
    out: &mut impl Write,
    bytes_of: impl Fn(T) -> [u8; N],
) -> std::io::Result<()> {
    let mut bytes = vec![[0; N]; CHUNK_ELEMENTS.min(items.len())];
    for chunk in items.chunks(CHUNK_ELEMENTS) {
        for (bytes, &item) in bytes.iter_mut().zip(chunk) {
            *bytes = bytes_of(item);
        }
        out.write_all(bytes[..chunk.len()].as_flattened())?;
    }
    Ok(())
}

fn read_all<T, const N: usize>(bytes: &[u8], value_of: impl Fn([u8; N]) -> T) -> Option<Vec<T>> {
    let (chunks, rest) = bytes.as_chunks::<N>();
    rest.is_empty().then(|| chunks.iter().map(|chunk| value_of(*chunk)).collect())
}

/// Writes tensors in the order of their element sizes, largest first, then in the given order.
pub fn write(tensors: &[Tensor<'_>], out: &mut impl Write) -> std::io::Result<()> {
    let mut order: Vec<&Tensor<'_>> = tensors.iter().collect();
    order.sort_by_key(|tensor| std::cmp::Reverse(tensor.elements.width()));
    let mut header = BTreeMap::new();
    let mut end = 0;
    for tensor in &order {
        debug_assert_eq!(tensor.shape.iter().product::<u64>(), tensor.elements.len() as u64);
        let start = end;
        end += (tensor.elements.len() * tensor.elements.width()) as u64;
        let dtype = tensor.elements.dtype().to_owned();
        header.insert(&tensor.name, Entry { dtype, shape: tensor.shape.clone(), data_offsets: [start, end] });
    }
    let mut text = serde_json::to_vec(&header)?;
    text.resize(text.len().next_multiple_of(8), b' ');
    out.write_all(&(text.len() as u64).to_le_bytes())?;
    out.write_all(&text)?;
    order.iter().try_for_each(|tensor| tensor.elements.write(out))
}

/// Parses all tensors of a file, by name. Any byte sequence gives either tensors or an error that describes the fault.
pub fn read(bytes: &[u8]) -> Result<BTreeMap<String, Tensor<'static>>, String> {
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or("shorter than its header length")?;
    let length = u64::from_le_bytes(*length);
    if length > HEADER_LIMIT_BYTES || length > rest.len() as u64 {
        return Err(format!("header of {length} bytes in a file of {}", bytes.len()));
    }
    let (header, data) = rest.split_at(length as usize);
    let header: BTreeMap<String, serde_json::Value> =
        serde_json::from_slice(header).map_err(|e| format!("header is not JSON: {e}"))?;
    let mut tensors = BTreeMap::new();
    for (name, value) in header.into_iter().filter(|(name, _)| name != "__metadata__") {
        let entry: Entry = serde_json::from_value(value).map_err(|e| format!("tensor {name:?}: {e}"))?;
        let tensor = read_tensor(&name, entry, data)?;
        tensors.insert(name, tensor);
    }
    Ok(tensors)
}

fn read_tensor(name: &str, entry: Entry, data: &[u8]) -> Result<Tensor<'static>, String> {
    let [start, end] = entry.data_offsets;
    let bytes = usize::try_from(start)
        .ok()
        .zip(usize::try_from(end).ok())
        .and_then(|(start, end)| data.get(start..end))
        .ok_or_else(|| format!("tensor {name:?}: bytes {start}..{end} of {}", data.len()))?;
    let elements = Elements::read(&entry.dtype, bytes)
        .ok_or_else(|| format!("tensor {name:?}: {} bytes of type {}", bytes.len(), entry.dtype))?;
    let count = entry.shape.iter().try_fold(1u64, |product, &size| product.checked_mul(size));
    if count != Some(elements.len() as u64) {
        return Err(format!("tensor {name:?}: {} elements for shape {:?}", elements.len(), entry.shape));
    }
    Ok(Tensor { name: name.to_owned(), shape: entry.shape, elements })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let tensors = [
            Tensor { name: "w".into(), shape: vec![2, 1], elements: Elements::F32(vec![0.5, -1.0].into()) },
            Tensor { name: "keys".into(), shape: vec![2], elements: Elements::U64(vec![3, 1 << 40].into()) },
        ];
        let mut bytes = Vec::new();
        write(&tensors, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let tensors = read(&sample()).unwrap();
        assert_eq!(tensors["keys"].elements, Elements::U64(vec![3, 1 << 40].into()));
        assert_eq!(tensors["w"].elements, Elements::F32(vec![0.5, -1.0].into()));
        assert_eq!(tensors["w"].shape, [2, 1]);
    }

    #[test]
    fn tensors_are_aligned_to_their_elements() {
        let bytes = sample();
        let header = u64::from_le_bytes(*bytes.first_chunk().unwrap());
        assert_eq!(header % 8, 0);
        let text = std::str::from_utf8(&bytes[8..8 + header as usize]).unwrap();
        assert!(text.contains(r#""keys":{"dtype":"U64","shape":[2],"data_offsets":[0,16]}"#), "{text}");
    }

    #[test]
    fn no_byte_sequence_panics() {
        let bytes = sample();
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
    fn a_shape_whose_product_overflows_is_an_error() {
        let header = br#"{"a":{"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,0]}}    "#;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header);
        assert!(read(&bytes).unwrap_err().contains("shape"));
    }
}
