//! How values travel: as they are, packed, or rounded to fewer bytes.
//!
//! | form | bytes a value | largest error |
//! |---|---|---|
//! | `f32` | 4 | none |
//! | `bf16` | 2 | 2^-8 of the value, see [`bf16`] |
//! | `int8` | 1, and 4 for each [`int8::BLOCK`] values | 1/254 of the largest magnitude in its block, see [`int8`] |
//! | `packed` | 0 for a zero, 1 to 3 for most others, see [`packed`] | none |
//!
//! Values of `i32` matrices travel packed where that is shorter, without being asked for.
//!
//! Rounding is deterministic, and finite values stay finite. Only values of `f32` matrices are rounded. The sender of a
//! push keeps what rounding takes from it, the residual ([`WireValues::split`]); a pull is rounded without a residual.

pub mod bf16;
pub mod int8;
pub mod packed;

use matrix::{ElementType, OwnedValues};
use serde::{Deserialize, Serialize};

/// Sections are padded to a multiple of this number of bytes.
pub(crate) const ALIGN: usize = 8;

/// The form in which the values of a matrix travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WireType {
    /// Exact.
    #[default]
    F32,
    /// The upper half of an `f32`, rounded.
    Bf16,
    /// A signed byte, times the scale of its block.
    Int8,
    /// Exact values of an `i32` matrix, packed where that is shorter. No setting names it: these values always are.
    Packed,
}

impl WireType {
    /// The forms that settings name.
    pub const ALL: [Self; 3] = [Self::F32, Self::Bf16, Self::Int8];

    /// The name in settings and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
            Self::Packed => "packed",
        }
    }

    /// Whether values are rounded.
    pub fn is_rounded(self) -> bool {
        matches!(self, Self::Bf16 | Self::Int8)
    }

    /// The form with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|wire| wire.name() == name)
    }
}

/// The type of a section of values, as in the header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    F32,
    F64,
    I64,
    /// `f32` rounded to bf16.
    Bf16,
    /// `f32` rounded to scaled bytes.
    Int8,
    I32,
    U32,
    /// `i32`, packed.
    Packed,
}

impl ValueType {
    /// All types, by code.
    const ALL: [Self; 8] =
        [Self::F32, Self::F64, Self::I64, Self::Bf16, Self::Int8, Self::I32, Self::U32, Self::Packed];

    pub(crate) fn code(self) -> u32 {
        self as u32
    }

    pub(crate) fn from_code(code: u32) -> Option<Self> {
        Self::ALL.get(code as usize).copied()
    }

    /// Whether the section is not the values as they are in memory.
    pub fn is_encoded(self) -> bool {
        matches!(self, Self::Bf16 | Self::Int8 | Self::Packed)
    }

    /// Number of bytes of a section of `len` values, without padding. The length of a packed section is that of its bytes.
    pub(crate) fn section_bytes(self, len: u64) -> u64 {
        match self {
            Self::F32 | Self::I32 | Self::U32 => 4 * len,
            Self::F64 | Self::I64 => 8 * len,
            Self::Bf16 => 2 * len,
            Self::Int8 => int8::section_bytes(len as usize) as u64,
            Self::Packed => len,
        }
    }
}

impl From<ElementType> for ValueType {
    fn from(element: ElementType) -> Self {
        match element {
            ElementType::F32 => Self::F32,
            ElementType::F64 => Self::F64,
            ElementType::I64 => Self::I64,
            ElementType::I32 => Self::I32,
            ElementType::U32 => Self::U32,
        }
    }
}

impl From<WireType> for ValueType {
    fn from(wire: WireType) -> Self {
        match wire {
            WireType::F32 => Self::F32,
            WireType::Bf16 => Self::Bf16,
            WireType::Int8 => Self::Int8,
            WireType::Packed => Self::Packed,
        }
    }
}

/// Values in the form in which they travel.
#[derive(Clone, Debug, PartialEq)]
pub enum WireValues {
    /// Exact.
    Exact(OwnedValues),
    /// Each value rounded to the bits of a bf16.
    Bf16(Vec<u16>),
    /// Rounded to bytes, in blocks with a scale each.
    Int8(int8::Blocks),
    /// Exact values of `i32`, packed.
    Packed(packed::Numbers),
}

impl From<OwnedValues> for WireValues {
    fn from(values: OwnedValues) -> Self {
        Self::Exact(values)
    }
}

impl WireValues {
    /// Brings `values` into the form that `wire` asks for, if they are of its element type and, where they are packed, it
    /// is shorter; otherwise they stay as they are.
    pub fn encode(values: OwnedValues, wire: WireType) -> Self {
        match (wire, values) {
            (WireType::Bf16, OwnedValues::F32(values)) => Self::Bf16(bf16::round(&values)),
            (WireType::Int8, OwnedValues::F32(values)) => Self::Int8(int8::Blocks::round(&values)),
            (WireType::Packed, OwnedValues::I32(values)) => match packed::Numbers::pack(&values) {
                Some(numbers) => Self::Packed(numbers),
                None => Self::Exact(OwnedValues::I32(values)),
            },
            (_, values) => Self::Exact(values),
        }
    }

    /// Rounds `values` and leaves the residual in them: each value is exactly its rounded value plus its residual.
    pub fn split(values: &mut [f32], wire: WireType) -> Self {
        match wire {
            WireType::F32 | WireType::Packed => {
                let exact = values.to_vec();
                values.fill(0.0);
                Self::Exact(OwnedValues::F32(exact))
            }
            WireType::Bf16 => Self::Bf16(bf16::split(values)),
            WireType::Int8 => Self::Int8(int8::Blocks::split(values)),
        }
    }

    /// The values; rounded ones are converted back to `f32`, packed ones to `i32`.
    pub fn into_values(self) -> OwnedValues {
        match self {
            Self::Exact(values) => values,
            Self::Bf16(bits) => OwnedValues::F32(bf16::widen(&bits)),
            Self::Int8(blocks) => OwnedValues::F32(blocks.widen()),
            Self::Packed(numbers) => OwnedValues::I32(numbers.unpack()),
        }
    }

    pub fn value_type(&self) -> ValueType {
        match self {
            Self::Exact(values) => values.element_type().into(),
            Self::Bf16(_) => ValueType::Bf16,
            Self::Int8(_) => ValueType::Int8,
            Self::Packed(_) => ValueType::Packed,
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Exact(values) => values.len(),
            Self::Bf16(bits) => bits.len(),
            Self::Int8(blocks) => blocks.len(),
            Self::Packed(numbers) => numbers.len(),
        }
    }

    /// The length of the section in the header: the number of values, or of packed bytes.
    pub(crate) fn section_len(&self) -> usize {
        match self {
            Self::Exact(_) | Self::Bf16(_) | Self::Int8(_) => self.len(),
            Self::Packed(numbers) => numbers.bytes().len(),
        }
    }

    /// Whether bytes that were received are a section of their type.
    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::Exact(_) | Self::Bf16(_) | Self::Int8(_) => true,
            Self::Packed(numbers) => numbers.is_valid(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of bytes of the section, without padding.
    pub fn byte_count(&self) -> usize {
        self.bytes().len()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Exact(values) => values.as_values().bytes(),
            Self::Bf16(bits) => bytemuck::cast_slice(bits),
            Self::Int8(blocks) => blocks.bytes(),
            Self::Packed(numbers) => numbers.bytes(),
        }
    }

    /// Room for a section of `len` values with its padding to a multiple of 8 bytes. Exact values are added by
    /// [`Self::grow`]; encoded ones are zeros.
    pub(crate) fn with_room(value_type: ValueType, len: usize) -> Self {
        let exact = |element: ElementType| {
            let len = len.next_multiple_of(ALIGN / element.size());
            Self::Exact(OwnedValues::with_capacity(element, len))
        };
        match value_type {
            ValueType::F32 => exact(ElementType::F32),
            ValueType::F64 => exact(ElementType::F64),
            ValueType::I64 => exact(ElementType::I64),
            ValueType::I32 => exact(ElementType::I32),
            ValueType::U32 => exact(ElementType::U32),
            ValueType::Bf16 => Self::Bf16(vec![0; len.next_multiple_of(4)]),
            ValueType::Int8 => Self::Int8(int8::Blocks::with_room(len)),
            ValueType::Packed => Self::Packed(packed::Numbers::with_room(len)),
        }
    }

    /// Appends zeros until there are `byte_count` bytes.
    pub(crate) fn grow(&mut self, byte_count: usize) {
        let Self::Exact(values) = self else { return };
        let len = byte_count.div_ceil(values.element_type().size());
        if values.len() < len {
            values.resize(len);
        }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Exact(values) => values.bytes_mut(),
            Self::Bf16(bits) => bytemuck::cast_slice_mut(bits),
            Self::Int8(blocks) => blocks.bytes_mut(),
            Self::Packed(numbers) => numbers.bytes_mut(),
        }
    }

    /// Removes the padding after `len` values; returns whether it was zero.
    pub(crate) fn trim(&mut self, len: usize) -> bool {
        match self {
            Self::Exact(values) => {
                let is_zero = values.as_values().slice(len..values.len()).bytes().iter().all(|pad| *pad == 0);
                values.truncate(len);
                is_zero
            }
            Self::Bf16(bits) => {
                let is_zero = bits[len..].iter().all(|pad| *pad == 0);
                bits.truncate(len);
                is_zero
            }
            Self::Int8(blocks) => blocks.trim(),
            Self::Packed(numbers) => numbers.trim(len),
        }
    }
}

#[cfg(test)]
mod tests;
