//! Writing and reading a binary meta section, bounds-checked.

use crate::error::Error;
use crate::header::field;
use crate::kind::Kind;

/// Reads the fields of a meta section in order.
pub(super) struct MetaReader<'a> {
    kind: Kind,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> MetaReader<'a> {
    pub(super) fn new(kind: Kind, bytes: &'a [u8]) -> Self {
        Self { kind, bytes, at: 0 }
    }

    pub(super) fn take(&mut self, name: &'static str, count: usize) -> Result<&'a [u8], Error> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..count) else {
            return Err(self.ends(name, self.at.saturating_add(count)));
        };
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, name: &'static str) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(name, N)?);
        Ok(array)
    }

    pub(super) fn u16(&mut self, name: &'static str) -> Result<u16, Error> {
        Ok(u16::from_le_bytes(self.array(name)?))
    }

    pub(super) fn u32(&mut self, name: &'static str) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array(name)?))
    }

    pub(super) fn u64(&mut self, name: &'static str) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array(name)?))
    }

    pub(super) fn u128(&mut self, name: &'static str) -> Result<u128, Error> {
        Ok(u128::from_le_bytes(self.array(name)?))
    }

    /// Reads a field that must be 0, reserved for later versions.
    pub(super) fn zero(&mut self, name: &'static str) -> Result<(), Error> {
        match self.u32(name)? {
            0 => Ok(()),
            actual => Err(field(self.kind, name, actual, "0")),
        }
    }

    /// Reads the last field, which is left out where it is 0, also by programs that are older than the field. Thus each
    /// message has one form.
    pub(super) fn last_u64(&mut self, name: &'static str) -> Result<u64, Error> {
        if self.at == self.bytes.len() {
            return Ok(0);
        }
        let value = self.u64(name)?;
        self.end(name)?;
        if value == 0 {
            Err(field(self.kind, name, value, "a number above 0: 0 is left out"))
        } else {
            Ok(value)
        }
    }

    /// Checks that no bytes follow the field `name`.
    pub(super) fn end(&self, name: &'static str) -> Result<(), Error> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.ends(name, self.at)) }
    }

    fn ends(&self, field: &'static str, expected: usize) -> Error {
        Error::MetaLength { kind: self.kind.name(), field, expected, actual: self.bytes.len() }
    }
}
