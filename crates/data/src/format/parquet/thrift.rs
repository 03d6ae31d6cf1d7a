//! The compact protocol of Thrift, as far as the metadata of Parquet use it.
//!
//! ```text
//! struct = { field } 0
//! field  = byte(delta of the number << 4 | type) value | byte(type) zigzag(number) value
//! list   = byte(count << 4 | type) { item }            | byte(0xf0 | type) varint(count) { item }
//! ```

/// Limit of nested structures and lists: the metadata of Parquet have eight levels.
const DEPTH_LIMIT: u32 = 16;

/// Why the reading of a header stops.
pub(super) enum ThriftError {
    /// The bytes end.
    UnexpectedEnd,
    Invalid(String),
}

/// Types of fields.
const TRUE: u8 = 1;
pub(super) const FALSE: u8 = 2;
const BYTE: u8 = 3;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

pub(super) struct ThriftReader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> ThriftReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Number of bytes that were read.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    fn byte(&mut self) -> Result<u8, ThriftError> {
        let byte = *self.bytes.get(self.position).ok_or(ThriftError::UnexpectedEnd)?;
        self.position += 1;
        Ok(byte)
    }

    fn advance(&mut self, count: u64) -> Result<(), ThriftError> {
        let end = usize::try_from(count).ok().and_then(|count| self.position.checked_add(count));
        self.position = end.filter(|end| *end <= self.bytes.len()).ok_or(ThriftError::UnexpectedEnd)?;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, ThriftError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ThriftError::Invalid("a number of more than 64 bits".to_owned()))
    }

    fn zigzag(&mut self) -> Result<i64, ThriftError> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads the value of a field that is an integer.
    pub(super) fn integer(&mut self, kind: u8) -> Result<i64, ThriftError> {
        match kind {
            BYTE => Ok(i64::from(self.byte()? as i8)),
            4..=6 => self.zigzag(),
            other => Err(ThriftError::Invalid(format!("type {other} instead of an integer"))),
        }
    }

    /// Calls `each` with the number and type of every field; `each` must read the value.
    pub(super) fn fields(
        &mut self,
        mut each: impl FnMut(&mut Self, i64, u8) -> Result<(), ThriftError>,
    ) -> Result<(), ThriftError> {
        let mut number = 0;
        loop {
            let head = self.byte()?;
            let kind = head & 0x0f;
            if kind == 0 {
                return Ok(());
            }
            number = match head >> 4 {
                0 => self.zigzag()?,
                delta => number + i64::from(delta),
            };
            each(self, number, kind)?;
        }
    }

    pub(super) fn structure(
        &mut self,
        kind: u8,
        each: impl FnMut(&mut Self, i64, u8) -> Result<(), ThriftError>,
    ) -> Result<(), ThriftError> {
        if kind == STRUCT {
            self.fields(each)
        } else {
            Err(ThriftError::Invalid("no structure where one is required".to_owned()))
        }
    }

    /// Skips the value of a field.
    pub(super) fn skip(&mut self, kind: u8, depth: u32) -> Result<(), ThriftError> {
        if depth > DEPTH_LIMIT {
            return Err(ThriftError::Invalid(format!("more than {DEPTH_LIMIT} nested structures")));
        }
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.advance(1),
            4..=6 => self.varint().map(drop),
            DOUBLE => self.advance(8),
            BINARY => {
                let length = self.varint()?;
                self.advance(length)
            }
            LIST | SET => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                // A boolean of a list takes a byte, one of a structure none.
                let item = if matches!(head & 0x0f, TRUE | FALSE) { BYTE } else { head & 0x0f };
                (0..count).try_for_each(|_| self.skip(item, depth + 1))
            }
            STRUCT => self.fields(|cursor, _, kind| cursor.skip(kind, depth + 1)),
            other => Err(ThriftError::Invalid(format!("a value of type {other}"))),
        }
    }
}

/// Whether the structure at the start of `bytes` has a field of this number.
pub(super) fn has_field(bytes: &[u8], wanted: i64) -> bool {
    let (mut cursor, mut has) = (ThriftReader::new(bytes), false);
    let read = cursor.fields(|cursor, number, kind| {
        has |= number == wanted;
        cursor.skip(kind, 0)
    });
    read.is_ok() && has
}

#[cfg(test)]
mod tests;
