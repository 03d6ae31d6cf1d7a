//! Whole numbers that are mostly 0 or small: only those that are not 0, in one to three bytes each.
//!
//! A section is the number of values (u32), then for each value other than 0 a varint `zeros << 2 | kind`, where `zeros`
//! counts the zeros between it and the one before. Kind 0 is the value 1, kind 1 is -1, kind 2 is 2; after kind 3 the
//! value follows as a varint, zigzag encoded. The zeros after the last of them are not written. A varint has seven bits
//! of a number in each byte, the lowest first, and the high bit says that another byte follows.

/// Number of bytes of the number of values.
const COUNT_BYTES: usize = 4;
/// The kind of a value that is written out.
const OTHER: u32 = 3;
/// Values that are skipped at once if all of them are 0.
const SKIPPED: usize = 16;
/// Most values of a section: those of the longest section of exact values.
const LEN_LIMIT: usize = crate::limits::ROW_BYTES / size_of::<i32>();

/// Values in their packed form, which has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    bytes: Vec<u8>,
}

impl Numbers {
    /// Packs values. `None` if that does not make them shorter.
    pub fn pack(values: &[i32]) -> Option<Self> {
        let limit = size_of_val(values);
        if values.len() > LEN_LIMIT {
            return None;
        }
        let mut bytes = (values.len() as u32).to_le_bytes().to_vec();
        let mut zeros = 0u32;
        for chunk in values.chunks(SKIPPED) {
            if chunk.iter().fold(0, |all, value| all | value) == 0 {
                zeros += chunk.len() as u32;
                continue;
            }
            for &value in chunk {
                let kind = match value {
                    0 => {
                        zeros += 1;
                        continue;
                    }
                    1 => 0,
                    -1 => 1,
                    2 => 2,
                    _ => OTHER,
                };
                write_varint(zeros << 2 | kind, &mut bytes);
                if kind == OTHER {
                    write_varint((value << 1 ^ value >> 31).cast_unsigned(), &mut bytes);
                }
                zeros = 0;
            }
            if bytes.len() >= limit {
                return None;
            }
        }
        (bytes.len() < limit).then_some(Self { bytes })
    }

    /// The values.
    pub fn unpack(&self) -> Vec<i32> {
        let mut values = vec![0; self.len()];
        visit(&self.bytes, |at, value| values[at] = value).expect("the form has been checked");
        values
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        len_of(&self.bytes).expect("the form has been checked")
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Zeros for `byte_count` bytes, padded to a multiple of 8, to be read into and trimmed.
    pub(crate) fn with_room(byte_count: usize) -> Self {
        Self { bytes: vec![0; byte_count.next_multiple_of(8)] }
    }

    /// Removes the padding; returns whether it was zero.
    pub(crate) fn trim(&mut self, byte_count: usize) -> bool {
        let is_zero = self.bytes[byte_count..].iter().all(|pad| *pad == 0);
        self.bytes.truncate(byte_count);
        is_zero
    }

    /// Whether received bytes are of this form.
    pub(crate) fn is_valid(&self) -> bool {
        visit(&self.bytes, |_, _| {}).is_some()
    }
}

/// The number of values. A section without bytes has none.
fn len_of(bytes: &[u8]) -> Option<usize> {
    if bytes.is_empty() {
        return Some(0);
    }
    Some(u32::from_le_bytes(*bytes.first_chunk::<COUNT_BYTES>()?) as usize)
}

/// Calls `visit` with the position and the value of each value other than 0. `None` if the bytes have another form.
#[inline]
fn visit(bytes: &[u8], mut visit: impl FnMut(usize, i32)) -> Option<()> {
    let len = len_of(bytes).filter(|len| *len <= LEN_LIMIT)?;
    let (mut bytes, mut next) = (bytes.get(COUNT_BYTES..).unwrap_or_default(), 0usize);
    while !bytes.is_empty() {
        let head = take_varint(&mut bytes)?;
        let at = next + (head >> 2) as usize;
        if at >= len {
            return None;
        }
        let value = match head & 3 {
            0 => 1,
            1 => -1,
            2 => 2,
            _ => {
                let zigzag = take_varint(&mut bytes)?;
                (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed()
            }
        };
        visit(at, value);
        next = at + 1;
    }
    Some(())
}

fn write_varint(mut number: u32, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a varint from the front of `bytes`. `None` if it does not end or is longer than 32 bits.
#[inline]
fn take_varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0u64;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if *byte < 0x80 {
            return u32::try_from(number).ok();
        }
    }
    None
}
