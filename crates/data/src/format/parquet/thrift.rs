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
mod tests {
    use super::*;

    /// A structure with a field of every type, each after the one before, and number 20 at the end.
    fn all_types() -> Vec<u8> {
        let mut bytes = vec![
            0x11, // 1: true
            0x12, // 2: false
            0x13, 0x85, // 3: the byte -123
            0x14, 0x81, 0x01, // 4: the 16-bit number -65
            0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, // 5: the 32-bit number 2^31 - 1
            0x16, 0x03, // 6: the 64-bit number -2
            0x17, 1, 2, 3, 4, 5, 6, 7, 8, // 7: a double
            0x18, 3, b'a', b'b', b'c', // 8: bytes
            0x19, 0x25, 0x02, 0x04, // 9: a list of two 32-bit numbers
            0x1a, 0x31, 1, 2, 1, // 10: a set of three booleans
            0x19, 0xf3, 0x10, // 11: a long list of 16 bytes
        ];
        bytes.extend([0; 16]);
        bytes.extend([0x1c, 0x15, 0x02, 0x1c, 0x00, 0x00]); // 12: a structure with a number and an empty structure
        bytes.extend([0x05, 0x28, 0x0a]); // 20, whose number is written: 5
        bytes.push(0);
        bytes
    }

    fn outcome<T>(result: Result<T, ThriftError>) -> Result<T, String> {
        result.map_err(|error| match error {
            ThriftError::UnexpectedEnd => "the end".to_owned(),
            ThriftError::Invalid(reason) => reason,
        })
    }

    #[test]
    fn every_type_is_skipped_to_its_end() {
        let bytes = all_types();
        let mut reader = ThriftReader::new(&bytes);
        let (mut numbers, mut ends) = (Vec::new(), Vec::new());
        let read = reader.fields(|reader, number, kind| {
            numbers.push((number, kind));
            reader.skip(kind, 0)?;
            ends.push(reader.position());
            Ok(())
        });
        assert_eq!(outcome(read), Ok(()));
        let kinds = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 9, 12, 5];
        let expected: Vec<_> = (1..=12).chain([20]).zip(kinds).collect();
        assert_eq!(numbers, expected);
        assert_eq!(ends, [1, 2, 4, 7, 13, 15, 24, 29, 33, 38, 57, 63, 66]);
        assert_eq!(reader.position(), bytes.len());
        for number in 0..22 {
            let is_there = (1..=12).contains(&number) || number == 20;
            assert_eq!(has_field(&bytes, number), is_there, "{number}");
        }
    }

    #[test]
    fn integers_are_those_that_are_written() {
        let bytes = all_types();
        let mut found = Vec::new();
        let read = ThriftReader::new(&bytes).fields(|reader, number, kind| {
            if (3..=6).contains(&number) || number == 20 {
                found.push(reader.integer(kind)?);
                return Ok(());
            }
            reader.skip(kind, 0)
        });
        assert_eq!(outcome(read), Ok(()));
        assert_eq!(found, [-123, -65, 2_147_483_647, -2, 5]);
        let text = outcome(ThriftReader::new(&[1]).integer(BINARY)).unwrap_err();
        assert_eq!(text, "type 8 instead of an integer");
    }

    #[test]
    fn a_structure_that_is_cut_off_anywhere_ends_unexpectedly() {
        let bytes = all_types();
        for end in 0..bytes.len() {
            let mut reader = ThriftReader::new(&bytes[..end]);
            let read = reader.fields(|reader, _, kind| reader.skip(kind, 0));
            assert_eq!(outcome(read), Err("the end".to_owned()), "{end} bytes");
            assert!(!has_field(&bytes[..end], 1));
        }
    }

    #[test]
    fn nesting_and_numbers_have_limits() {
        let nested = |depth: usize| [vec![0x1c; depth], vec![0; depth + 1]].concat();
        let skip =
            |bytes: &[u8]| outcome(ThriftReader::new(bytes).fields(|reader, _, kind| reader.skip(kind, 0)));
        assert_eq!(skip(&nested(DEPTH_LIMIT as usize + 1)), Ok(()));
        assert!(skip(&nested(DEPTH_LIMIT as usize + 2)).unwrap_err().contains("nested structures"));
        let long = [&[0x15][..], &[0xff; 10], &[0]].concat();
        assert_eq!(skip(&long), Err("a number of more than 64 bits".to_owned()));
        assert_eq!(skip(&[0x1d, 0]), Err("a value of type 13".to_owned()));
        let huge = [0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0];
        assert_eq!(skip(&huge), Err("the end".to_owned()), "more bytes than there are");
    }
}
