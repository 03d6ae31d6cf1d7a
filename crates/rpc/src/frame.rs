//! A frame in memory: header and sections, and the bytes of the sections without a copy.

use bytemuck::cast_slice_mut;
use matrix::OwnedValues;

use crate::error::Error;
use crate::header::{ALIGN, Header};
use crate::wire::WireValues;

#[cfg(not(target_endian = "little"))]
compile_error!("frames are little-endian and their sections are written as they lie in memory");

/// A frame that was received.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The header.
    pub header: Header,
    /// As its kind says.
    pub meta: Vec<u8>,
    /// The keys.
    pub keys: Vec<u64>,
    /// The values.
    pub values: WireValues,
}

/// Bytes up to the next multiple of eight.
pub(crate) fn padding(len: usize) -> usize {
    len.wrapping_neg() % ALIGN
}

impl Frame {
    /// With room for all sections, padded; the lengths are those of a checked header.
    pub(crate) fn with_room(header: Header) -> Self {
        let meta_len = header.meta_len as usize;
        let values_len = header.values_len as usize;
        let values = WireValues::with_room(header.value_type, values_len);
        Self {
            header,
            meta: vec![0; meta_len + padding(meta_len)],
            keys: vec![0; header.keys_len as usize],
            values,
        }
    }

    /// The section in which byte `at` of the padded body lies, from that byte on. Empty at the end.
    pub(crate) fn body_from(&mut self, at: usize) -> &mut [u8] {
        let keys_at = self.meta.len();
        let values_at = keys_at + self.keys.len() * 8;
        if at < keys_at {
            return &mut self.meta[at..];
        }
        if at < values_at {
            return &mut cast_slice_mut(&mut self.keys)[at - keys_at..];
        }
        &mut self.values.bytes_mut()[at - values_at..]
    }

    /// All bytes are there and summed up to `sum`: checks it and takes the padding off.
    pub(crate) fn finish(&mut self, sum: u32) -> Result<(), Error> {
        let kind = self.header.kind;
        if self.header.checksum && self.header.body_sum != sum {
            let (expected, actual) = (self.header.body_sum, sum);
            return Err(Error::Checksum { part: "the body", kind: kind as u16, expected, actual });
        }
        let padded = self.meta.split_off(self.header.meta_len as usize);
        let mut is_zero = padded.iter().all(|byte| *byte == 0);
        is_zero &= self.values.trim(self.header.values_len as usize);
        if !is_zero {
            return Err(crate::header::field(
                kind,
                "padding",
                "not zero",
                "zeros up to a multiple of 8 bytes",
            ));
        }
        Ok(())
    }

    /// The values of a kind that has exact ones only, which the header was checked for.
    pub(crate) fn into_exact(self) -> OwnedValues {
        self.values.into_values()
    }
}
