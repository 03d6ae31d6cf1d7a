//! Signed bytes with one `f32` scale for each [`BLOCK`] values: value = byte x scale.
//!
//! The scale of a block is its largest absolute value divided by 127, so a value changes by at most half a scale. Bytes
//! are rounded to the nearest, ties to even, from -127 to 127. A block whose largest absolute value is below
//! [`SMALLEST`] becomes zeros with scale 0; a block with a NaN or an infinity becomes NaN as a whole. Blocks follow the
//! order of the values in a frame, whatever their keys; the last one may be shorter.
//!
//! A section is all scales, then all bytes.

/// Number of values of a block.
pub const BLOCK: usize = 256;
/// Below this value the scale would be subnormal, and the error of its quotients would have no bound.
pub const SMALLEST: f32 = f32::MIN_POSITIVE * LEVELS;
/// Largest byte.
const LEVELS: f32 = 127.0;
/// Adding and subtracting it rounds a number below 2^22 to the nearest integer, ties to even; adding it alone leaves
/// that integer in the lowest bits.
const ROUNDER: f32 = 12_582_912.0;

/// Number of bytes of `len` values with their scales.
pub(crate) fn section_bytes(len: usize) -> usize {
    4 * len.div_ceil(BLOCK) + len
}

/// Values in blocks with a scale each.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks {
    len: usize,
    /// The scales, then the values.
    bytes: Vec<u8>,
}

/// The scale of a block: finite, also times 127, when all values are finite; NaN when one is not.
fn scale_of(values: &[f32]) -> f32 {
    // The bits of absolute values, compared as integers, have the order of the floats; NaN and infinity are largest.
    let largest = values.iter().fold(0, |largest: u32, value| largest.max(value.to_bits() & 0x7FFF_FFFF));
    let largest = f32::from_bits(largest);
    if !largest.is_finite() {
        return f32::NAN;
    }
    if largest < SMALLEST {
        return 0.0;
    }
    let scale = largest / LEVELS;
    if (scale * LEVELS).is_finite() { scale } else { scale.next_down() }
}

/// The byte of a value, an integer from -127 to 127, and the value that the receiver computes from it.
#[inline]
fn level(value: f32, scale: f32) -> (u8, f32) {
    let shifted = (value / scale).clamp(-LEVELS, LEVELS) + ROUNDER;
    (shifted.to_bits() as u8, (shifted - ROUNDER) * scale)
}

impl Blocks {
    /// Rounds values.
    pub fn round(values: &[f32]) -> Self {
        let mut blocks = Self::empty(values.len());
        let (scales, bytes) = blocks.parts_mut();
        for ((values, bytes), place) in values.chunks(BLOCK).zip(bytes.chunks_mut(BLOCK)).zip(scales) {
            let scale = scale_of(values);
            *place = scale.to_le_bytes();
            if scale > 0.0 {
                for (byte, value) in bytes.iter_mut().zip(values) {
                    *byte = level(*value, scale).0;
                }
            }
        }
        blocks
    }

    /// Rounds values and leaves the rounding error in `values`. The error is exact, because a value is between half and
    /// twice its rounded value, unless that is 0.
    pub fn split(values: &mut [f32]) -> Self {
        let mut blocks = Self::empty(values.len());
        let (scales, bytes) = blocks.parts_mut();
        for ((values, bytes), place) in values.chunks_mut(BLOCK).zip(bytes.chunks_mut(BLOCK)).zip(scales) {
            let scale = scale_of(values);
            *place = scale.to_le_bytes();
            if scale > 0.0 {
                for (byte, value) in bytes.iter_mut().zip(values) {
                    let (whole, nearest) = level(*value, scale);
                    *byte = whole;
                    *value -= nearest;
                }
            }
        }
        blocks
    }

    pub fn widen(&self) -> Vec<f32> {
        let (scales, bytes) = self.bytes.split_at(self.bytes.len() - self.len);
        let (scales, _) = scales.as_chunks::<4>();
        let mut values = vec![0.0; self.len];
        for ((values, bytes), scale) in values.chunks_mut(BLOCK).zip(bytes.chunks(BLOCK)).zip(scales) {
            let scale = f32::from_le_bytes(*scale);
            for (value, byte) in values.iter_mut().zip(bytes) {
                *value = f32::from(byte.cast_signed()) * scale;
            }
        }
        values
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn empty(len: usize) -> Self {
        Self { len, bytes: vec![0; section_bytes(len)] }
    }

    /// The memory of the scales, and that of the bytes.
    fn parts_mut(&mut self) -> (&mut [[u8; 4]], &mut [u8]) {
        let scales_len = self.bytes.len() - self.len;
        let (scales, bytes) = self.bytes.split_at_mut(scales_len);
        (scales.as_chunks_mut::<4>().0, bytes)
    }

    /// Zeros for `len` values, padded to a multiple of 8 bytes, to be read into and trimmed.
    pub(crate) fn with_room(len: usize) -> Self {
        Self { len, bytes: vec![0; section_bytes(len).next_multiple_of(8)] }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Removes the padding; returns whether it was zero.
    pub(crate) fn trim(&mut self) -> bool {
        let len = section_bytes(self.len);
        let is_zero = self.bytes[len..].iter().all(|pad| *pad == 0);
        self.bytes.truncate(len);
        is_zero
    }
}
