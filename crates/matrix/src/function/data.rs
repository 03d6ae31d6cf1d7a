//! Arguments and answers of functions as plain bytes, with a small typed layer over them.
//!
//! Numbers are little-endian, lists and texts begin with their length (u64). Nothing is named and nothing is aligned: both
//! ends know the type from the function, whose version changes when the type does.

use crate::element::OwnedValues;
use crate::function::FunctionFault;

/// A type that travels as an argument or answer: numbers, texts, lists, tuples of such.
pub trait Data: Sized {
    /// Puts the bytes of this value behind `out`.
    fn pack(&self, out: &mut Vec<u8>);
    /// Takes a value off the front of `bytes`.
    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault>;
    /// Whether no number in it is NaN or infinite. An answer in which one is is refused.
    fn is_finite(&self) -> bool;
}

/// The bytes of a value.
pub fn pack(value: &impl Data) -> Vec<u8> {
    let mut out = Vec::new();
    value.pack(&mut out);
    out
}

/// The value of which `bytes` are the bytes, all of them.
pub fn unpack<T: Data>(mut bytes: &[u8]) -> Result<T, FunctionFault> {
    let value = T::unpack(&mut bytes)?;
    if bytes.is_empty() {
        return Ok(value);
    }
    let actual = format!("{} bytes too many", bytes.len());
    Err(FunctionFault::argument("its bytes", actual, "those of the type of the function"))
}

fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Result<&'a [u8], FunctionFault> {
    let Some((own, rest)) = bytes.split_at_checked(len) else {
        let actual = format!("{} bytes at their end", bytes.len());
        return Err(FunctionFault::argument("its bytes", actual, format!("{len} more")));
    };
    *bytes = rest;
    Ok(own)
}

macro_rules! number {
    ($($type:ty, $finite:expr;)*) => { $(
        impl Data for $type {
            fn pack(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
                let own = take(bytes, size_of::<Self>())?;
                Ok(Self::from_le_bytes(own.try_into().expect("take gives as many as asked")))
            }

            fn is_finite(&self) -> bool {
                let finite: fn($type) -> bool = $finite;
                finite(*self)
            }
        }
    )* };
}

number! {
    u8, |_| true;
    u32, |_| true;
    u64, |_| true;
    i64, |_| true;
    f32, f32::is_finite;
    f64, f64::is_finite;
}

impl Data for () {
    fn pack(&self, _out: &mut Vec<u8>) {}

    fn unpack(_bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        Ok(())
    }

    fn is_finite(&self) -> bool {
        true
    }
}

impl Data for bool {
    fn pack(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        match u8::unpack(bytes)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(FunctionFault::argument("a truth value", other.to_string(), "0 or 1")),
        }
    }

    fn is_finite(&self) -> bool {
        true
    }
}

impl Data for String {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.len() as u64).pack(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        let len = u64::unpack(bytes)?;
        let own = take(bytes, usize::try_from(len).unwrap_or(usize::MAX))?;
        String::from_utf8(own.to_vec()).map_err(|error| {
            FunctionFault::argument(
                "a text",
                format!("a bad byte at {}", error.utf8_error().valid_up_to()),
                "UTF-8",
            )
        })
    }

    fn is_finite(&self) -> bool {
        true
    }
}

impl<T: Data> Data for Vec<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.len() as u64).pack(out);
        for value in self {
            value.pack(out);
        }
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        let len = u64::unpack(bytes)?;
        // Every element takes a byte at least, so that a length that lies asks for no memory.
        if len > bytes.len() as u64 {
            let actual = format!("{len} elements in {} bytes", bytes.len());
            return Err(FunctionFault::argument("a list", actual, "at least a byte an element"));
        }
        (0..len).map(|_| T::unpack(bytes)).collect()
    }

    fn is_finite(&self) -> bool {
        self.iter().all(Data::is_finite)
    }
}

impl<T: Data> Data for Option<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        self.is_some().pack(out);
        if let Some(value) = self {
            value.pack(out);
        }
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        if bool::unpack(bytes)? { T::unpack(bytes).map(Some) } else { Ok(None) }
    }

    fn is_finite(&self) -> bool {
        self.as_ref().is_none_or(Data::is_finite)
    }
}

macro_rules! tuple {
    ($($name:ident $at:tt),*) => {
        impl<$($name: Data),*> Data for ($($name,)*) {
            fn pack(&self, out: &mut Vec<u8>) {
                $(self.$at.pack(out);)*
            }

            fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
                Ok(($($name::unpack(bytes)?,)*))
            }

            fn is_finite(&self) -> bool {
                $(self.$at.is_finite())&&*
            }
        }
    };
}

tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, F 4);

impl Data for OwnedValues {
    fn pack(&self, out: &mut Vec<u8>) {
        let kind: u8 = match self {
            OwnedValues::F32(_) => 0,
            OwnedValues::F64(_) => 1,
            OwnedValues::I64(_) => 2,
        };
        kind.pack(out);
        match self {
            OwnedValues::F32(values) => values.pack(out),
            OwnedValues::F64(values) => values.pack(out),
            OwnedValues::I64(values) => values.pack(out),
        }
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        match u8::unpack(bytes)? {
            0 => Vec::unpack(bytes).map(OwnedValues::F32),
            1 => Vec::unpack(bytes).map(OwnedValues::F64),
            2 => Vec::unpack(bytes).map(OwnedValues::I64),
            other => {
                Err(FunctionFault::argument("an element type", other.to_string(), "0 f32, 1 f64 or 2 i64"))
            }
        }
    }

    fn is_finite(&self) -> bool {
        match self {
            OwnedValues::F32(values) => values.is_finite(),
            OwnedValues::F64(values) => values.is_finite(),
            OwnedValues::I64(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type All = (Vec<f64>, String, Option<(u64, i64)>, Vec<Vec<u32>>, bool);

    proptest! {
        #[test]
        fn what_is_packed_comes_out_again(
            reals in prop::collection::vec(any::<f32>(), 0..9),
            text in ".*",
            pair in prop::option::of((any::<u64>(), any::<i64>())),
            lists in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..4), 0..4),
            truth in any::<bool>(),
        ) {
            let reals: Vec<f64> = reals.into_iter().filter(Data::is_finite).map(f64::from).collect();
            let value: All = (reals, text, pair, lists, truth);
            prop_assert_eq!(unpack::<All>(&pack(&value)), Ok(value.clone()));
            let bytes = pack(&value);
            for len in 0..bytes.len() {
                prop_assert!(unpack::<All>(&bytes[..len]).is_err(), "cut to {} bytes", len);
            }
        }

        #[test]
        fn rubbish_is_an_error_and_takes_no_memory(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = unpack::<All>(&bytes);
            let _ = unpack::<OwnedValues>(&bytes);
        }
    }

    #[test]
    fn a_length_that_lies_and_bytes_too_many_are_refused() {
        assert!(unpack::<Vec<f64>>(&u64::MAX.to_le_bytes()).is_err());
        assert!(unpack::<u32>(&[0; 5]).is_err());
        assert!(unpack::<bool>(&[2]).is_err());
    }

    #[test]
    fn values_of_all_types_travel() {
        for values in [OwnedValues::F32(vec![1.5]), OwnedValues::F64(vec![]), OwnedValues::I64(vec![-3])] {
            assert_eq!(unpack(&pack(&values)), Ok(values));
        }
        assert!(!(1u32, vec![f64::NAN]).is_finite());
    }
}
