//! Arguments and answers of functions as plain bytes, with a small typed layer over them.
//!
//! Numbers are little-endian; lists and texts begin with their length (u64). There are no field names and no alignment:
//! both ends know the type from the function, whose version changes when the type does.
//!
//! Users write arguments and read answers as JSON: numbers, booleans and texts as they are, lists and tuples as arrays,
//! missing or empty values as `null`, and values of an element type as `{"f32": [0.5]}`.

use serde_json::{Value, json};

use crate::element::{Element, ElementType, OwnedValues, with_element_type, with_elements};
use crate::function::FunctionFault;

/// A type of arguments and answers: numbers, texts, lists and tuples of such types.
pub trait FunctionValue: Sized {
    /// Appends the bytes of this value to `out`.
    fn pack(&self, out: &mut Vec<u8>);
    /// Takes a value from the front of `bytes`.
    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault>;
    /// Whether all its numbers are finite. An answer that is not finite is refused.
    fn is_finite(&self) -> bool;

    /// Parses a value from JSON. The default refuses it, for types that users never write.
    fn from_json(value: &Value) -> Result<Self, FunctionFault> {
        Err(type_mismatch(value, "a value of another type, which only a program can pass"))
    }

    /// Returns the value as JSON.
    fn to_json(&self) -> Value {
        Value::Null
    }
}

fn type_mismatch(value: &Value, expected: impl Into<String>) -> FunctionFault {
    FunctionFault::argument("argument", value.to_string(), expected)
}

/// Returns the bytes of a value.
pub fn pack(value: &impl FunctionValue) -> Vec<u8> {
    let mut out = Vec::new();
    value.pack(&mut out);
    out
}

/// Decodes a value from `bytes`. Remaining bytes are an error.
pub fn unpack<T: FunctionValue>(mut bytes: &[u8]) -> Result<T, FunctionFault> {
    let value = T::unpack(&mut bytes)?;
    if bytes.is_empty() {
        return Ok(value);
    }
    let actual = format!("{} extra bytes", bytes.len());
    Err(FunctionFault::argument("its bytes", actual, "those of the type of the function"))
}

fn take_bytes<'a>(bytes: &mut &'a [u8], len: usize) -> Result<&'a [u8], FunctionFault> {
    let Some((own, rest)) = bytes.split_at_checked(len) else {
        let actual = format!("{} bytes at their end", bytes.len());
        return Err(FunctionFault::argument("its bytes", actual, format!("{len} more")));
    };
    *bytes = rest;
    Ok(own)
}

macro_rules! number {
    ($($type:ty, $finite:expr, $from_json:expr, $expected:literal;)*) => { $(
        impl FunctionValue for $type {
            fn pack(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
                let own = take_bytes(bytes, size_of::<Self>())?;
                Ok(Self::from_le_bytes(own.try_into().expect("take gives as many as asked")))
            }

            fn is_finite(&self) -> bool {
                let finite: fn($type) -> bool = $finite;
                finite(*self)
            }

            fn from_json(value: &Value) -> Result<Self, FunctionFault> {
                let from_json: fn(&Value) -> Option<$type> = $from_json;
                from_json(value).ok_or_else(|| type_mismatch(value, $expected))
            }

            fn to_json(&self) -> Value {
                json!(self)
            }
        }
    )* };
}

number! {
    u8, |_| true, |v| v.as_u64()?.try_into().ok(), "a whole number of 0 to 255";
    u32, |_| true, |v| v.as_u64()?.try_into().ok(), "a whole number of 32 bits";
    u64, |_| true, Value::as_u64, "a whole number of at least 0";
    i32, |_| true, |v| v.as_i64()?.try_into().ok(), "a whole number of 32 bits";
    i64, |_| true, Value::as_i64, "a whole number";
    f32, f32::is_finite, |v| Some(v.as_f64()? as f32), "a number";
    f64, f64::is_finite, Value::as_f64, "a number";
}

impl FunctionValue for () {
    fn pack(&self, _out: &mut Vec<u8>) {}

    fn unpack(_bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        Ok(())
    }

    fn is_finite(&self) -> bool {
        true
    }

    fn from_json(value: &Value) -> Result<Self, FunctionFault> {
        if value.is_null() {
            Ok(())
        } else {
            Err(type_mismatch(value, "none: this function takes no argument"))
        }
    }
}

impl FunctionValue for bool {
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

    fn from_json(value: &Value) -> Result<Self, FunctionFault> {
        value.as_bool().ok_or_else(|| type_mismatch(value, "true or false"))
    }

    fn to_json(&self) -> Value {
        json!(self)
    }
}

impl FunctionValue for String {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.len() as u64).pack(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        let len = u64::unpack(bytes)?;
        let own = take_bytes(bytes, usize::try_from(len).unwrap_or(usize::MAX))?;
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

    fn from_json(value: &Value) -> Result<Self, FunctionFault> {
        value.as_str().map(str::to_owned).ok_or_else(|| type_mismatch(value, "a text in quotes"))
    }

    fn to_json(&self) -> Value {
        json!(self)
    }
}

impl<T: FunctionValue> FunctionValue for Vec<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.len() as u64).pack(out);
        for value in self {
            value.pack(out);
        }
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        let len = u64::unpack(bytes)?;
        // Every element takes at least one byte, so a wrong length never causes a large allocation.
        if len > bytes.len() as u64 {
            let actual = format!("{len} elements in {} bytes", bytes.len());
            return Err(FunctionFault::argument("a list", actual, "at least a byte an element"));
        }
        (0..len).map(|_| T::unpack(bytes)).collect()
    }

    fn is_finite(&self) -> bool {
        self.iter().all(FunctionValue::is_finite)
    }

    fn from_json(value: &Value) -> Result<Self, FunctionFault> {
        let values = value.as_array().ok_or_else(|| type_mismatch(value, "a list in brackets"))?;
        values.iter().map(T::from_json).collect()
    }

    fn to_json(&self) -> Value {
        self.iter().map(FunctionValue::to_json).collect()
    }
}

impl<T: FunctionValue> FunctionValue for Option<T> {
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
        self.as_ref().is_none_or(FunctionValue::is_finite)
    }

    fn from_json(value: &Value) -> Result<Self, FunctionFault> {
        if value.is_null() { Ok(None) } else { T::from_json(value).map(Some) }
    }

    fn to_json(&self) -> Value {
        self.as_ref().map_or(Value::Null, FunctionValue::to_json)
    }
}

macro_rules! tuple {
    ($($name:ident $at:tt),*) => {
        impl<$($name: FunctionValue),*> FunctionValue for ($($name,)*) {
            fn pack(&self, out: &mut Vec<u8>) {
                $(self.$at.pack(out);)*
            }

            fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
                Ok(($($name::unpack(bytes)?,)*))
            }

            fn is_finite(&self) -> bool {
                $(self.$at.is_finite())&&*
            }

            fn from_json(value: &Value) -> Result<Self, FunctionFault> {
                let len = [$($at),*].len();
                match value.as_array() {
                    Some(values) if values.len() == len => Ok(($($name::from_json(&values[$at])?,)*)),
                    _ => Err(type_mismatch(value, format!("a list of {len} values in brackets"))),
                }
            }

            fn to_json(&self) -> Value {
                Value::Array(vec![$(self.$at.to_json()),*])
            }
        }
    };
}

tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, F 4);

impl FunctionValue for OwnedValues {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.element_type() as u8).pack(out);
        with_elements!(OwnedValues, self, values => values.pack(out));
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        let code = u8::unpack(bytes)?;
        let Some(element) = ElementType::ALL.get(usize::from(code)) else {
            let expected = "0 f32, 1 f64, 2 i64, 3 i32 or 4 u32";
            return Err(FunctionFault::argument("an element type", code.to_string(), expected));
        };
        with_element_type!(*element, E => Vec::unpack(bytes).map(E::owned))
    }

    fn is_finite(&self) -> bool {
        self.as_values().first_non_finite().is_none()
    }

    fn from_json(value: &Value) -> Result<Self, FunctionFault> {
        let expected = "{\"f32\": [..]}, or f64, i64, i32 or u32";
        let only = value.as_object().filter(|map| map.len() == 1).and_then(|map| map.iter().next());
        let of_name = |name: &str| ElementType::ALL.iter().find(|element| element.name() == name);
        match only.and_then(|(name, values)| Some((of_name(name)?, values))) {
            Some((element, values)) => {
                with_element_type!(*element, E => Vec::from_json(values).map(E::owned))
            }
            None => Err(type_mismatch(value, expected)),
        }
    }

    fn to_json(&self) -> Value {
        let values = with_elements!(OwnedValues, self, values => json!(values));
        json!({self.element_type().name(): values})
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
            let reals: Vec<f64> = reals.into_iter().filter(FunctionValue::is_finite).map(f64::from).collect();
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
    fn what_people_write_and_read_is_json() {
        type Some = (Vec<f64>, String, Option<u64>, bool, f32);
        let value: Some = (vec![0.5, 2.0], "a".to_owned(), None, true, -0.25);
        let text = json!([[0.5, 2.0], "a", null, true, -0.25]);
        assert_eq!(value.to_json(), text);
        assert_eq!(Some::from_json(&text), Ok(value));
        let values = OwnedValues::I64(vec![3, -4]);
        assert_eq!(OwnedValues::from_json(&values.to_json()), Ok(values));
        assert_eq!(<()>::from_json(&Value::Null), Ok(()));
        let said = |fault: Result<(f64, f64), FunctionFault>| fault.unwrap_err().to_string();
        let text = said(FunctionValue::from_json(&json!([1.0])));
        assert_eq!(text, "argument: [1.0], expected a list of 2 values in brackets");
        let text = said(FunctionValue::from_json(&json!([1.0, "x"])));
        assert_eq!(text, "argument: \"x\", expected a number");
        assert!(u8::from_json(&json!(256)).is_err() && u64::from_json(&json!(-1)).is_err());
        assert!(OwnedValues::from_json(&json!([1])).is_err() && <()>::from_json(&json!(1)).is_err());
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
        assert!((true, "inf".to_owned(), vec![1.5]).is_finite(), "a text has no number");
    }
}
