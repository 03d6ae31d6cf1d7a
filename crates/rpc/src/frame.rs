//! A frame in memory: the header and the sections. The bytes of the sections are accessed without a copy.

use bytemuck::cast_slice_mut;
use matrix::OwnedValues;

use crate::error::Error;
use crate::header::Header;
use crate::wire::{ALIGN, WireValues};

#[cfg(not(target_endian = "little"))]
compile_error!("frames are little-endian and their sections are written as they lie in memory");

/// A section grows by at most this many bytes at a time while it is read: the new bytes are still in the cache when the
/// received bytes overwrite them.
const GROWTH_BYTES: usize = 128 << 10;

/// A frame that was received.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub header: Header,
    /// Its layout depends on the kind.
    pub meta: Vec<u8>,
    pub keys: Vec<u64>,
    pub values: WireValues,
}

/// Number of bytes up to the next multiple of 8.
pub(crate) fn padding(len: usize) -> usize {
    len.wrapping_neg() % ALIGN
}

impl Frame {
    /// A frame with room for all sections with padding. The header must have been checked, because its lengths are
    /// allocated.
    pub(crate) fn with_room(header: Header) -> Self {
        let meta_len = header.meta_len as usize;
        Self {
            header,
            meta: vec![0; meta_len + padding(meta_len)],
            keys: Vec::with_capacity(header.keys_len as usize),
            values: WireValues::with_room(header.value_type, header.values_len as usize),
        }
    }

    /// Number of bytes from byte `at` of the padded body to the end of its section; 0 at the end of the body.
    pub(crate) fn section_len_from(&self, at: usize) -> usize {
        let keys_at = self.meta.len();
        let values_at = keys_at + self.header.keys_len as usize * 8;
        let end = if at < keys_at {
            keys_at
        } else if at < values_at {
            values_at
        } else {
            let values_len = self.header.value_type.section_bytes(u64::from(self.header.values_len)) as usize;
            values_at + values_len + padding(values_len)
        };
        end - at
    }

    /// The bytes from byte `at` of the padded body on, at most to the end of its section; fewer when the section still
    /// has to grow. Empty at the end of the body. All bytes before `at` must have been filled.
    pub(crate) fn section_from(&mut self, at: usize) -> &mut [u8] {
        let count = self.section_len_from(at).min(GROWTH_BYTES);
        let keys_at = self.meta.len();
        let values_at = keys_at + self.header.keys_len as usize * 8;
        if at < keys_at {
            return &mut self.meta[at..at + count];
        }
        if at < values_at {
            let start = at - keys_at;
            let end = start + count;
            if self.keys.len() * 8 < end {
                self.keys.resize(end.div_ceil(8), 0);
            }
            return &mut cast_slice_mut(&mut self.keys)[start..end];
        }
        let start = at - values_at;
        self.values.grow(start + count);
        &mut self.values.bytes_mut()[start..start + count]
    }

    /// Ends the reading when all bytes have arrived: compares their checksum `sum` with the header and removes the
    /// padding.
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
        if !self.values.is_valid() {
            let expected = "a count, and as many values at most";
            return Err(crate::header::field(kind, "packed values", "other bytes", expected));
        }
        Ok(())
    }

    /// The values of a kind that allows exact values only; the check of the header has ensured that.
    pub(crate) fn into_exact(self) -> OwnedValues {
        self.values.into_values()
    }
}
