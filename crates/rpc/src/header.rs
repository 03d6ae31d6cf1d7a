//! The first 64 bytes of a frame.
//!
//! | at | field | type |
//! |---|---|---|
//! | 0 | magic, the bytes `SRPH` | u32 |
//! | 4 | version | u16 |
//! | 6 | kind | u16 |
//! | 8 | flags | u32 |
//! | 12 | job | u32 |
//! | 16 | request | u64 |
//! | 24 | clock | u64 |
//! | 32 | task | u32 |
//! | 36 | matrix | u32 |
//! | 40 | length of meta, bytes | u32 |
//! | 44 | length of keys, u64s | u32 |
//! | 48 | length of values, elements | u32 |
//! | 52 | index | u32 |
//! | 56 | CRC-32C of the body, 0 when the flag says none | u32 |
//! | 60 | CRC-32C of bytes 0..60 | u32 |

use crate::error::Error;
use crate::kind::{Kind, Uses};
use crate::limits::FrameLimits;
use crate::wire::{ALIGN, ValueType};

/// The bytes `SRPH`.
pub const MAGIC: u32 = u32::from_le_bytes(*b"SRPH");
/// The version of the protocol.
pub const VERSION: u16 = 2;
/// Bytes of a header.
pub const HEADER_BYTES: usize = 64;

/// Flag: the body has a checksum.
const BODY_CHECKSUM: u32 = 1;
/// The position of the three bits of the type of the values.
const TYPE_SHIFT: u32 = 4;
const DEFINED_FLAGS: u32 = BODY_CHECKSUM | 7 << TYPE_SHIFT;
/// Number of bytes that the checksum of the header covers.
const SUMMED: usize = 60;

/// The fixed part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table in the documentation of the module explains the fields")]
pub struct Header {
    pub kind: Kind,
    /// Whether the body has a checksum.
    pub checksum: bool,
    /// The type of the values in the frame, or of the values that it asks for.
    pub value_type: ValueType,
    pub job: u32,
    pub request: u64,
    pub clock: u64,
    pub task: u32,
    pub matrix: u32,
    pub meta_len: u32,
    pub keys_len: u32,
    pub values_len: u32,
    pub index: u32,
    pub body_sum: u32,
}

/// The error for a stream that begins with other bytes than the magic.
pub(crate) fn not_a_frame(first: u32) -> Error {
    if first.to_le_bytes() == *b"HTTP" {
        Error::Http
    } else {
        Error::Magic { expected: MAGIC, actual: first }
    }
}

impl Header {
    /// Number of bytes of the whole frame.
    pub fn frame_bytes(&self) -> u64 {
        let padded = |bytes: u64| bytes.next_multiple_of(ALIGN as u64);
        let values = self.value_type.section_bytes(u64::from(self.values_len));
        HEADER_BYTES as u64 + padded(u64::from(self.meta_len)) + 8 * u64::from(self.keys_len) + padded(values)
    }

    /// A header of a kind; all other fields are 0.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            checksum: false,
            value_type: ValueType::F32,
            job: 0,
            request: 0,
            clock: 0,
            task: 0,
            matrix: 0,
            meta_len: 0,
            keys_len: 0,
            values_len: 0,
            index: 0,
            body_sum: 0,
        }
    }

    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let flags = u32::from(self.checksum) | self.value_type.code() << TYPE_SHIFT;
        let mut bytes = [0; HEADER_BYTES];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&MAGIC.to_le_bytes());
        put(&VERSION.to_le_bytes());
        put(&(self.kind as u16).to_le_bytes());
        put(&flags.to_le_bytes());
        put(&self.job.to_le_bytes());
        put(&self.request.to_le_bytes());
        put(&self.clock.to_le_bytes());
        for field in
            [self.task, self.matrix, self.meta_len, self.keys_len, self.values_len, self.index, self.body_sum]
        {
            put(&field.to_le_bytes());
        }
        let sum = crc32c::crc32c(&bytes[..SUMMED]);
        bytes[SUMMED..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Parses and checks a header. The magic and the version come first, so that another protocol or another release is
    /// not reported as damage.
    pub fn from_bytes(bytes: &[u8; HEADER_BYTES], limits: &FrameLimits) -> Result<Self, Error> {
        let magic = u32_at(bytes, 0);
        if magic != MAGIC {
            return Err(not_a_frame(magic));
        }
        let (version, kind) = (u16_at(bytes, 4), u16_at(bytes, 6));
        if version != VERSION {
            return Err(Error::Version { expected: VERSION, actual: version });
        }
        let (expected, actual) = (u32_at(bytes, SUMMED), crc32c::crc32c(&bytes[..SUMMED]));
        if expected != actual {
            return Err(Error::Checksum { part: "the header", kind, expected, actual });
        }
        let kind = Kind::from_code(kind)?;
        let flags = u32_at(bytes, 8);
        let value_type = ValueType::from_code(flags >> TYPE_SHIFT & 7);
        let (Some(value_type), 0) = (value_type, flags & !DEFINED_FLAGS) else {
            let expected = "bit 0, a type of values in bits 4 to 6";
            return Err(field(kind, "flags", flags, expected));
        };
        let header = Self {
            kind,
            checksum: flags & BODY_CHECKSUM != 0,
            value_type,
            job: u32_at(bytes, 12),
            request: u64_at(bytes, 16),
            clock: u64_at(bytes, 24),
            task: u32_at(bytes, 32),
            matrix: u32_at(bytes, 36),
            meta_len: u32_at(bytes, 40),
            keys_len: u32_at(bytes, 44),
            values_len: u32_at(bytes, 48),
            index: u32_at(bytes, 52),
            body_sum: u32_at(bytes, 56),
        };
        header.check_unused()?;
        header.check_lengths(limits)?;
        Ok(header)
    }

    /// Checks that fields that the kind does not have are 0, so that a later version may use them.
    fn check_unused(&self) -> Result<(), Error> {
        let uses = self.kind.uses();
        let fields = [
            (Uses::JOB, "job", u64::from(self.job)),
            (Uses::CLOCK, "clock", self.clock),
            (Uses::TASK, "task", u64::from(self.task)),
            (Uses::MATRIX, "matrix", u64::from(self.matrix)),
            (Uses::INDEX, "index", u64::from(self.index)),
            (Uses::META, "length of meta", u64::from(self.meta_len)),
            (Uses::KEYS, "length of keys", u64::from(self.keys_len)),
            (Uses::VALUES, "length of values", u64::from(self.values_len)),
        ];
        for (part, name, value) in fields {
            if !uses.has(part) && value != 0 {
                return Err(field(self.kind, name, value, "0: this kind has none"));
            }
        }
        let (code, rounds) = (self.value_type.code(), uses.has(Uses::ROUNDED));
        if !uses.has(Uses::VALUES) && !rounds && code != 0 {
            return Err(field(self.kind, "type of values", code, "0: this kind has none"));
        }
        if self.value_type.is_encoded() && !rounds {
            return Err(field(
                self.kind,
                "type of values",
                code,
                "0 to 2, 5 or 6: this kind has exact values only",
            ));
        }
        if !self.checksum && self.body_sum != 0 {
            return Err(field(
                self.kind,
                "CRC-32C of the body",
                self.body_sum,
                "0: the flags declare no checksum of the body",
            ));
        }
        Ok(())
    }

    /// Number of bytes after the header, padding included.
    pub(crate) fn body_len(&self) -> usize {
        let padded = |bytes: usize| bytes.next_multiple_of(ALIGN);
        let values = self.value_type.section_bytes(u64::from(self.values_len)) as usize;
        padded(self.meta_len as usize) + self.keys_len as usize * 8 + padded(values)
    }

    /// Checks that no section exceeds its limit. Callers check this before they allocate or send anything.
    pub fn check_lengths(&self, limits: &FrameLimits) -> Result<(), Error> {
        let uses = self.kind.uses();
        let meta = if uses.has(Uses::JSON) {
            limits.control_bytes
        } else if uses.has(Uses::FRAMES) {
            limits.batch_bytes
        } else if uses.has(Uses::FUNCTION) {
            limits.function_bytes
        } else {
            limits.meta_bytes
        };
        let values = if uses.has(Uses::SUM) { limits.sum_bytes } else { limits.values_bytes };
        let lengths = [
            ("meta", u64::from(self.meta_len), meta),
            ("keys", u64::from(self.keys_len) * 8, limits.keys_bytes),
            ("values", self.value_type.section_bytes(u64::from(self.values_len)), values),
        ];
        for (section, bytes, limit) in lengths {
            if bytes > limit {
                return Err(Error::TooLong { kind: self.kind.name(), section, bytes, limit });
            }
        }
        Ok(())
    }
}

/// The error for a field of a header with an impossible value.
pub(crate) fn field(
    kind: Kind,
    field: &'static str,
    actual: impl std::fmt::Display,
    expected: impl Into<String>,
) -> Error {
    Error::Field { kind: kind.name(), field, actual: actual.to_string(), expected: expected.into() }
}

fn u16_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
