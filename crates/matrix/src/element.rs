//! The element types of a matrix. They are a closed set: one enum for decisions at run time and one sealed trait for
//! loops that are compiled for each type.

use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Range, Sub};

use multiversion::multiversion;
use serde::{Deserialize, Serialize};

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    /// 32-bit float, the usual choice.
    F32,
    /// 64-bit float.
    F64,
    /// 64-bit signed integer, for counts.
    I64,
}

impl ElementType {
    /// Size of an element in bytes.
    pub fn size(self) -> usize {
        match self {
            ElementType::F32 => 4,
            ElementType::F64 | ElementType::I64 => 8,
        }
    }
}

/// A slice of values of one of the element types, row-major.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
    I64(&'a [i64]),
}

/// The slice that pulled values are written to, row-major.
#[derive(Debug)]
pub enum ValuesMut<'a> {
    F32(&'a mut [f32]),
    F64(&'a mut [f64]),
    I64(&'a mut [i64]),
}

/// Values that own their memory, row-major.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedValues {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
}

/// Expands to the same expression for the values of each element type.
#[macro_export]
macro_rules! with_values {
    ($values:expr, $slice:ident => $body:expr) => {
        match $values {
            $crate::Values::F32($slice) => $body,
            $crate::Values::F64($slice) => $body,
            $crate::Values::I64($slice) => $body,
        }
    };
}
pub use with_values;

impl<'a> Values<'a> {
    /// Returns the elements of a range. Panics when the range is out of bounds.
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Values<'a> {
        match self {
            Values::F32(values) => Values::F32(&values[range]),
            Values::F64(values) => Values::F64(&values[range]),
            Values::I64(values) => Values::I64(&values[range]),
        }
    }

    /// Returns index and value of the first NaN or infinity, if any.
    pub fn first_non_finite(self) -> Option<(usize, f64)> {
        with_values!(self, values => {
            Element::first_non_finite(values).map(|at| (at, values[at].to_f64()))
        })
    }

    /// Returns a copy that owns its memory.
    pub fn to_owned_values(self) -> OwnedValues {
        match self {
            Values::F32(values) => OwnedValues::F32(values.to_vec()),
            Values::F64(values) => OwnedValues::F64(values.to_vec()),
            Values::I64(values) => OwnedValues::I64(values.to_vec()),
        }
    }
}

impl Values<'_> {
    pub fn element_type(&self) -> ElementType {
        match self {
            Values::F32(_) => ElementType::F32,
            Values::F64(_) => ElementType::F64,
            Values::I64(_) => ElementType::I64,
        }
    }

    pub fn len(&self) -> usize {
        with_values!(self, values => values.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl ValuesMut<'_> {
    /// Returns the elements of a range. Panics when the range is out of bounds.
    pub fn slice_mut(&mut self, range: Range<usize>) -> ValuesMut<'_> {
        match self {
            ValuesMut::F32(values) => ValuesMut::F32(&mut values[range]),
            ValuesMut::F64(values) => ValuesMut::F64(&mut values[range]),
            ValuesMut::I64(values) => ValuesMut::I64(&mut values[range]),
        }
    }

    pub fn element_type(&self) -> ElementType {
        self.as_values().element_type()
    }

    pub fn len(&self) -> usize {
        self.as_values().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn as_values(&self) -> Values<'_> {
        match self {
            ValuesMut::F32(values) => Values::F32(values),
            ValuesMut::F64(values) => Values::F64(values),
            ValuesMut::I64(values) => Values::I64(values),
        }
    }
}

impl OwnedValues {
    /// Returns `len` zeros.
    pub fn zeros(element: ElementType, len: usize) -> Self {
        match element {
            ElementType::F32 => OwnedValues::F32(vec![0.0; len]),
            ElementType::F64 => OwnedValues::F64(vec![0.0; len]),
            ElementType::I64 => OwnedValues::I64(vec![0; len]),
        }
    }

    /// Returns an empty list with capacity for `len` elements.
    pub fn with_capacity(element: ElementType, len: usize) -> Self {
        match element {
            ElementType::F32 => OwnedValues::F32(Vec::with_capacity(len)),
            ElementType::F64 => OwnedValues::F64(Vec::with_capacity(len)),
            ElementType::I64 => OwnedValues::I64(Vec::with_capacity(len)),
        }
    }

    /// Appends zeros or removes the last elements until there are `len`.
    pub fn resize(&mut self, len: usize) {
        match self {
            OwnedValues::F32(values) => values.resize(len, 0.0),
            OwnedValues::F64(values) => values.resize(len, 0.0),
            OwnedValues::I64(values) => values.resize(len, 0),
        }
    }

    /// Returns the elements of a range for writing.
    pub fn slice_mut(&mut self, range: Range<usize>) -> ValuesMut<'_> {
        match self {
            OwnedValues::F32(values) => ValuesMut::F32(&mut values[range]),
            OwnedValues::F64(values) => ValuesMut::F64(&mut values[range]),
            OwnedValues::I64(values) => ValuesMut::I64(&mut values[range]),
        }
    }

    /// Appends the elements of `from`. Panics when `from` has another type.
    pub fn extend(&mut self, from: Values<'_>) {
        match (self, from) {
            (OwnedValues::F32(into), Values::F32(from)) => into.extend_from_slice(from),
            (OwnedValues::F64(into), Values::F64(from)) => into.extend_from_slice(from),
            (OwnedValues::I64(into), Values::I64(from)) => into.extend_from_slice(from),
            (into, from) => panic!("cannot append {:?} to {:?}", from.element_type(), into.element_type()),
        }
    }

    /// Keeps the first `len` elements.
    pub fn truncate(&mut self, len: usize) {
        match self {
            OwnedValues::F32(values) => values.truncate(len),
            OwnedValues::F64(values) => values.truncate(len),
            OwnedValues::I64(values) => values.truncate(len),
        }
    }

    /// Borrows the values.
    pub fn as_values(&self) -> Values<'_> {
        match self {
            OwnedValues::F32(values) => Values::F32(values),
            OwnedValues::F64(values) => Values::F64(values),
            OwnedValues::I64(values) => Values::I64(values),
        }
    }

    pub fn element_type(&self) -> ElementType {
        self.as_values().element_type()
    }

    pub fn len(&self) -> usize {
        self.as_values().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for i64 {}
}

/// An element type at compile time: `f32`, `f64` or `i64`.
pub trait Element: sealed::Sealed + Copy + Debug + PartialEq + PartialOrd + Send + Sync + 'static {
    const TYPE: ElementType;
    const ZERO: Self;

    /// Converts to the nearest value; integers are truncated towards 0.
    fn from_f64(value: f64) -> Self;
    /// Converts to a double; an `i64` beyond 2^53 is rounded.
    fn to_f64(self) -> f64;
    /// The sum. Integers wrap, so that the order of additions never matters.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// Returns the index of the first NaN or infinity, if any.
    fn first_non_finite(values: &[Self]) -> Option<usize>;
    /// Returns the slice if it is of this type.
    fn slice(values: Values<'_>) -> Option<&[Self]>;
    /// Returns the slice if it is of this type.
    fn slice_mut(values: ValuesMut<'_>) -> Option<&mut [Self]>;
    /// Returns the vector if it is of this type.
    fn vec_mut(values: &mut OwnedValues) -> Option<&mut Vec<Self>>;
    /// Wraps a vector of this type.
    fn owned(values: Vec<Self>) -> OwnedValues;
}

/// A floating-point element. Optimizers work on these only.
pub trait Float:
    Element
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    const ONE: Self;
    /// The square root, correctly rounded.
    #[must_use]
    fn root(self) -> Self;
    #[must_use]
    fn magnitude(self) -> Self;
}

macro_rules! float {
    ($type:ident, $variant:ident) => {
        impl Element for $type {
            const TYPE: ElementType = ElementType::$variant;
            const ZERO: Self = 0.0;

            #[inline]
            fn from_f64(value: f64) -> Self {
                value as $type
            }

            #[inline]
            fn to_f64(self) -> f64 {
                self as f64
            }

            #[inline]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn first_non_finite(values: &[Self]) -> Option<usize> {
                // `0 x` is 0 for every finite x and NaN for all others, and a sum with a NaN stays NaN. There is no
                // branch, so the loop is vectorized.
                const LANES: usize = 64;
                let (chunks, rest) = values.as_chunks::<LANES>();
                if difference_sums(chunks).iter().all(|sum| *sum == 0.0) && rest.iter().all(|x| x.is_finite())
                {
                    return None;
                }
                values.iter().position(|x| !x.is_finite())
            }

            fn slice(values: Values<'_>) -> Option<&[Self]> {
                if let Values::$variant(values) = values { Some(values) } else { None }
            }

            fn slice_mut(values: ValuesMut<'_>) -> Option<&mut [Self]> {
                if let ValuesMut::$variant(values) = values { Some(values) } else { None }
            }

            fn vec_mut(values: &mut OwnedValues) -> Option<&mut Vec<Self>> {
                if let OwnedValues::$variant(values) = values { Some(values) } else { None }
            }

            fn owned(values: Vec<Self>) -> OwnedValues {
                OwnedValues::$variant(values)
            }
        }

        impl Float for $type {
            const ONE: Self = 1.0;

            #[inline]
            fn root(self) -> Self {
                self.sqrt()
            }

            #[inline]
            fn magnitude(self) -> Self {
                self.abs()
            }
        }
    };
}

/// Returns, for each lane, the sum of `0 x`.
#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn difference_sums<E: Float, const LANES: usize>(chunks: &[[E; LANES]]) -> [E; LANES] {
    let mut sums = [E::ZERO; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            sums[lane] = sums[lane] + chunk[lane] * E::ZERO;
        }
    }
    sums
}

float!(f32, F32);
float!(f64, F64);

impl Element for i64 {
    const TYPE: ElementType = ElementType::I64;
    const ZERO: Self = 0;

    fn from_f64(value: f64) -> Self {
        value as i64
    }

    fn to_f64(self) -> f64 {
        self as f64
    }

    #[inline]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn first_non_finite(_values: &[Self]) -> Option<usize> {
        None
    }

    fn slice(values: Values<'_>) -> Option<&[Self]> {
        if let Values::I64(values) = values { Some(values) } else { None }
    }

    fn slice_mut(values: ValuesMut<'_>) -> Option<&mut [Self]> {
        if let ValuesMut::I64(values) = values { Some(values) } else { None }
    }

    fn vec_mut(values: &mut OwnedValues) -> Option<&mut Vec<Self>> {
        if let OwnedValues::I64(values) = values { Some(values) } else { None }
    }

    fn owned(values: Vec<Self>) -> OwnedValues {
        OwnedValues::I64(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_non_finite_value_is_found_wherever_it_stands() {
        for len in [1usize, 63, 64, 65, 200] {
            assert_eq!(f32::first_non_finite(&vec![f32::MAX; len]), None, "large is not infinite");
            for at in 0..len {
                for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                    let mut values = vec![1.0; len];
                    values[at] = bad;
                    assert_eq!(f32::first_non_finite(&values), Some(at));
                }
            }
        }
        assert_eq!(f64::first_non_finite(&[0.0, f64::NAN]), Some(1));
        assert_eq!(i64::first_non_finite(&[i64::MAX]), None);
    }

    #[test]
    fn values_know_their_type_and_length() {
        let owned = f64::owned(vec![1.0, 2.0]);
        assert_eq!((owned.element_type(), owned.len()), (ElementType::F64, 2));
        assert_eq!(f64::slice(owned.as_values()), Some(&[1.0, 2.0][..]));
        assert_eq!(f32::slice(owned.as_values()), None);
    }
}
