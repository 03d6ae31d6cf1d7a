//! The element types of a matrix: a closed set, one enum for what is decided at run time and one sealed trait for what
//! is decided when the loops are compiled.

use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Range, Sub};

use multiversion::multiversion;
use serde::{Deserialize, Serialize};

/// Name of an element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    /// 32-bit float, the default.
    F32,
    /// 64-bit float.
    F64,
    /// 64-bit signed integer, for counts.
    I64,
}

impl ElementType {
    /// Bytes of an element.
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
    /// Of an `f32` matrix.
    F32(&'a [f32]),
    /// Of an `f64` matrix.
    F64(&'a [f64]),
    /// Of an `i64` matrix.
    I64(&'a [i64]),
}

/// Where pulled values are written, row-major.
#[derive(Debug)]
pub enum ValuesMut<'a> {
    /// Of an `f32` matrix.
    F32(&'a mut [f32]),
    /// Of an `f64` matrix.
    F64(&'a mut [f64]),
    /// Of an `i64` matrix.
    I64(&'a mut [i64]),
}

/// Values that own their memory, row-major.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedValues {
    /// Of an `f32` matrix.
    F32(Vec<f32>),
    /// Of an `f64` matrix.
    F64(Vec<f64>),
    /// Of an `i64` matrix.
    I64(Vec<i64>),
}

impl<'a> Values<'a> {
    /// The elements of a range.
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Values<'a> {
        match self {
            Values::F32(values) => Values::F32(&values[range]),
            Values::F64(values) => Values::F64(&values[range]),
            Values::I64(values) => Values::I64(&values[range]),
        }
    }

    /// A copy that owns its memory.
    pub fn to_owned_values(self) -> OwnedValues {
        match self {
            Values::F32(values) => OwnedValues::F32(values.to_vec()),
            Values::F64(values) => OwnedValues::F64(values.to_vec()),
            Values::I64(values) => OwnedValues::I64(values.to_vec()),
        }
    }
}

impl Values<'_> {
    /// The type of the elements.
    pub fn element_type(&self) -> ElementType {
        match self {
            Values::F32(_) => ElementType::F32,
            Values::F64(_) => ElementType::F64,
            Values::I64(_) => ElementType::I64,
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Values::F32(values) => values.len(),
            Values::F64(values) => values.len(),
            Values::I64(values) => values.len(),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl ValuesMut<'_> {
    /// The elements of a range. Panics when they are not all there.
    pub fn slice_mut(&mut self, range: Range<usize>) -> ValuesMut<'_> {
        match self {
            ValuesMut::F32(values) => ValuesMut::F32(&mut values[range]),
            ValuesMut::F64(values) => ValuesMut::F64(&mut values[range]),
            ValuesMut::I64(values) => ValuesMut::I64(&mut values[range]),
        }
    }

    /// The type of the elements.
    pub fn element_type(&self) -> ElementType {
        self.as_values().element_type()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.as_values().len()
    }

    /// Whether there is no element.
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
    /// `len` zeros.
    pub fn zeros(element: ElementType, len: usize) -> Self {
        match element {
            ElementType::F32 => OwnedValues::F32(vec![0.0; len]),
            ElementType::F64 => OwnedValues::F64(vec![0.0; len]),
            ElementType::I64 => OwnedValues::I64(vec![0; len]),
        }
    }

    /// None yet, and room for `len`.
    pub fn with_capacity(element: ElementType, len: usize) -> Self {
        match element {
            ElementType::F32 => OwnedValues::F32(Vec::with_capacity(len)),
            ElementType::F64 => OwnedValues::F64(Vec::with_capacity(len)),
            ElementType::I64 => OwnedValues::I64(Vec::with_capacity(len)),
        }
    }

    /// Puts zeros behind the elements, or takes the last away, until there are `len`.
    pub fn resize(&mut self, len: usize) {
        match self {
            OwnedValues::F32(values) => values.resize(len, 0.0),
            OwnedValues::F64(values) => values.resize(len, 0.0),
            OwnedValues::I64(values) => values.resize(len, 0),
        }
    }

    /// The elements of a range, to be written.
    pub fn slice_mut(&mut self, range: Range<usize>) -> ValuesMut<'_> {
        match self {
            OwnedValues::F32(values) => ValuesMut::F32(&mut values[range]),
            OwnedValues::F64(values) => ValuesMut::F64(&mut values[range]),
            OwnedValues::I64(values) => ValuesMut::I64(&mut values[range]),
        }
    }

    /// Puts the elements of `from`, which has the same type, behind these. Panics when it has another.
    pub fn extend(&mut self, from: Values<'_>) {
        match (self, from) {
            (OwnedValues::F32(into), Values::F32(from)) => into.extend_from_slice(from),
            (OwnedValues::F64(into), Values::F64(from)) => into.extend_from_slice(from),
            (OwnedValues::I64(into), Values::I64(from)) => into.extend_from_slice(from),
            (into, from) => panic!("{:?} behind {:?}", from.element_type(), into.element_type()),
        }
    }

    /// The same values, borrowed.
    pub fn as_values(&self) -> Values<'_> {
        match self {
            OwnedValues::F32(values) => Values::F32(values),
            OwnedValues::F64(values) => Values::F64(values),
            OwnedValues::I64(values) => Values::I64(values),
        }
    }

    /// The type of the elements.
    pub fn element_type(&self) -> ElementType {
        self.as_values().element_type()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.as_values().len()
    }

    /// Whether there is no element.
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

/// An element type as the compiler sees it: `f32`, `f64` or `i64`.
pub trait Element: sealed::Sealed + Copy + Debug + PartialEq + PartialOrd + Send + Sync + 'static {
    /// Its name.
    const TYPE: ElementType;
    /// 0.
    const ZERO: Self;

    /// The nearest value; integers are cut towards 0.
    fn from_f64(value: f64) -> Self;
    /// The value as a double; an `i64` beyond 2^53 is rounded.
    fn to_f64(self) -> f64;
    /// The sum; integers wrap, so that their order never matters.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// Where the first NaN or infinity stands, if any.
    fn first_non_finite(values: &[Self]) -> Option<usize>;
    /// The slice, when it is of this type.
    fn slice(values: Values<'_>) -> Option<&[Self]>;
    /// The slice, when it is of this type.
    fn slice_mut(values: ValuesMut<'_>) -> Option<&mut [Self]>;
    /// The vector, when it is of this type.
    fn vec_mut(values: &mut OwnedValues) -> Option<&mut Vec<Self>>;
    /// Wraps a vector of this type.
    fn owned(values: Vec<Self>) -> OwnedValues;
}

/// A floating-point element, as optimizers need it.
pub trait Float:
    Element
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// 1.
    const ONE: Self;
    /// The square root, correctly rounded.
    #[must_use]
    fn root(self) -> Self;
    /// The absolute value.
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
                // 0 x is 0 for every finite x and NaN for the others, which no sum takes away: no branch, so that
                // the loop is vectorized.
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

/// For each lane the sum of `0 x`.
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
