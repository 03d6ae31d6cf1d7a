//! Tensors in the safetensors format. The crate of that name reads and checks them.
//!
//! Its writer needs all elements at once, and here they arrive in pieces; so only the entries of the header are from the
//! crate. The header is sorted by names.

use std::collections::BTreeMap;

#[cfg(test)]
pub use safetensors::tensor::SafeTensors;
pub use safetensors::tensor::{Dtype, TensorInfo};

/// The length of a header is a multiple of this number of bytes.
const HEADER_ALIGNMENT: usize = 8;

#[cfg(not(target_endian = "little"))]
compile_error!("tensors are written as they are in memory, and the format is little-endian");

/// The bytes before the elements: the length of the header, and the header. `tensors` have name, type of elements,
/// dimensions and size in bytes, in the order of the file.
pub fn header<'a>(
    tensors: impl Iterator<Item = (&'a str, Dtype, Vec<usize>, u64)>,
) -> Result<Vec<u8>, serde_json::Error> {
    let mut entries = BTreeMap::new();
    let mut end = 0;
    for (name, dtype, shape, size_bytes) in tensors {
        let start = end;
        end += size_bytes as usize;
        entries.insert(name, TensorInfo { dtype, shape, data_offsets: (start, end) });
    }
    let mut text = serde_json::to_vec(&entries)?;
    text.resize(text.len().next_multiple_of(HEADER_ALIGNMENT), b' ');
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text);
    Ok(bytes)
}

/// The entries of the text of a header. The tensors must follow each other and fill the `data_bytes` after the header; the
/// error says what does not fit.
pub fn entries(text: &[u8], data_bytes: u64) -> Result<BTreeMap<String, TensorInfo>, String> {
    let members = |text| -> Result<BTreeMap<String, TensorInfo>, serde_json::Error> {
        let mut members: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(text)?;
        members.remove("__metadata__");
        members.into_iter().map(|(name, info)| Ok((name, serde_json::from_value(info)?))).collect()
    };
    let entries = members(text).map_err(|error| format!("its header is bad: {error}"))?;
    check_entries(&entries, data_bytes)?;
    Ok(entries)
}

fn check_entries(entries: &BTreeMap<String, TensorInfo>, data_bytes: u64) -> Result<(), String> {
    let mut order: Vec<_> = entries.iter().collect();
    order.sort_by_key(|(_, info)| info.data_offsets);
    let mut end = 0;
    for (name, info) in order {
        let count = info.shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
        let bytes = count.and_then(|count| count.checked_mul(info.dtype.bitsize() / 8));
        let (start, stop) = info.data_offsets;
        if start != end || bytes.is_none_or(|bytes| start.checked_add(bytes) != Some(stop)) {
            return Err(format!(
                "tensor {name:?} is at {start}..{stop}, which does not fit its shape or its place"
            ));
        }
        end = stop;
    }
    if end as u64 == data_bytes {
        return Ok(());
    }
    Err(format!("its tensors have {end} bytes, and the file has {data_bytes} after its header"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let values: Vec<u8> = [0.5f32, -1.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let keys: Vec<u8> = [3u64, 1 << 40].iter().flat_map(|x| x.to_le_bytes()).collect();
        let tensors = [("keys", Dtype::U64, vec![2], 16), ("w", Dtype::F32, vec![2, 1], 8)];
        let mut bytes = header(tensors.into_iter()).unwrap();
        bytes.extend(keys);
        bytes.extend(values);
        bytes
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
}
