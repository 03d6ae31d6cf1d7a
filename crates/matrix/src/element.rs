//! The element types of a matrix. They are a closed set: one enum for decisions at run time and one sealed trait for
//! loops that are compiled for each type.

use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Range, Sub};

use multiversion::multiversion;
use serde::{Deserialize, Serialize};

/// Expands `$body` with one name bound to the slice or vector of each element type: `$enum` is [`Values`], [`ValuesMut`] or
/// [`OwnedValues`].
#[macro_export]
macro_rules! with_elements {
    ($enum:ident, $values:expr, $slice:ident => $body:expr) => {
        match $values {
            $crate::$enum::F32($slice) => $body,
            $crate::$enum::F64($slice) => $body,
            $crate::$enum::I64($slice) => $body,
            $crate::$enum::I32($slice) => $body,
            $crate::$enum::U32($slice) => $body,
        }
    };
}
pub use with_elements;

/// Expands to the same expression for the values of each element type.
#[macro_export]
macro_rules! with_values {
    ($values:expr, $slice:ident => $body:expr) => {
        $crate::with_elements!(Values, $values, $slice => $body)
    };
}
pub use with_values;

/// Expands to the same expression, of the compile-time type `$type`, for each element type.
#[macro_export]
macro_rules! with_element_type {
    ($element:expr, $type:ident => $body:expr) => {
        match $element {
            $crate::ElementType::F32 => {
                type $type = f32;
                $body
            }
            $crate::ElementType::F64 => {
                type $type = f64;
                $body
            }
            $crate::ElementType::I64 => {
                type $type = i64;
                $body
            }
            $crate::ElementType::I32 => {
                type $type = i32;
                $body
            }
            $crate::ElementType::U32 => {
                type $type = u32;
                $body
            }
        }
    };
}
pub use with_element_type;

macro_rules! element_types {
    ($($(#[$doc:meta])* $variant:ident $type:ident $name:literal,)*) => {
        /// An element type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum ElementType {
            $($(#[$doc])* $variant,)*
        }

        impl ElementType {
            /// All element types, in the order of their codes on the wire.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Size of an element in bytes.
            pub fn size(self) -> usize {
                match self {
                    $(Self::$variant => size_of::<$type>(),)*
                }
            }

            /// The name in specs and messages.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        /// A slice of values of one of the element types, row-major.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Values<'a> {
            $($variant(&'a [$type]),)*
        }

        /// The slice that pulled values are written to, row-major.
        #[derive(Debug)]
        pub enum ValuesMut<'a> {
            $($variant(&'a mut [$type]),)*
        }

        /// Values that own their memory, row-major.
        #[derive(Clone, Debug, PartialEq)]
        pub enum OwnedValues {
            $($variant(Vec<$type>),)*
        }

        mod sealed {
            pub trait Sealed {}
            $(impl Sealed for $type {})*
        }

        macro_rules! conversions {
            $(($type) => {
                const TYPE: ElementType = ElementType::$variant;

                fn slice(values: Values<'_>) -> Option<&[Self]> {
                    if let Values::$variant(values) = values { Some(values) } else { None }
                }

                fn slice_mut(values: ValuesMut<'_>) -> Option<&mut [Self]> {
                    if let ValuesMut::$variant(values) = values { Some(values) } else { None }
                }

                fn vec_mut(values: &mut OwnedValues) -> Option<&mut Vec<Self>> {
                    if let OwnedValues::$variant(values) = values { Some(values) } else { None }
                }

                fn values(values: &[Self]) -> Values<'_> {
                    Values::$variant(values)
                }

                fn values_mut(values: &mut [Self]) -> ValuesMut<'_> {
                    ValuesMut::$variant(values)
                }

                fn owned(values: Vec<Self>) -> OwnedValues {
                    OwnedValues::$variant(values)
                }
            };)*
        }
    };
}

element_types! {
    /// 32-bit float, the usual choice.
    F32 f32 "f32",
    /// 64-bit float.
    F64 f64 "f64",
    /// 64-bit signed integer, for sums.
    I64 i64 "i64",
    /// 32-bit signed integer, for counts. [`i32::MIN`] stands for a sum that has overflowed.
    I32 i32 "i32",
    /// 32-bit unsigned integer. [`u32::MAX`] stands for a sum that has overflowed.
    U32 u32 "u32",
}

impl ElementType {
    /// Whether values are whole numbers.
    pub fn is_integer(self) -> bool {
        !matches!(self, Self::F32 | Self::F64)
    }

    /// Whether a sum may leave the range of the type. Then a row is checked when it is read.
    pub(crate) fn may_overflow(self) -> bool {
        matches!(self, Self::I32 | Self::U32)
    }
}

impl<'a> Values<'a> {
    /// Returns the elements of a range. Panics when the range is out of bounds.
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Values<'a> {
        with_values!(self, values => Element::values(&values[range]))
    }

    /// Returns index and value of the first value that is no number of its own, if any: NaN, an infinity, or a sum that has
    /// overflowed.
    pub fn first_non_finite(self) -> Option<(usize, f64)> {
        with_values!(self, values => {
            Element::first_non_finite(values).map(|at| (at, values[at].to_f64()))
        })
    }

    /// Returns a copy that owns its memory.
    pub fn to_owned_values(self) -> OwnedValues {
        with_values!(self, values => Element::owned(values.to_vec()))
    }

    /// The values as doubles, rounded to the nearest.
    pub fn to_f64(self) -> Vec<f64> {
        with_values!(self, values => values.iter().map(|value| value.to_f64()).collect())
    }

    /// Whether all values are 0.
    pub fn are_zero(self) -> bool {
        fn are_zero<E: Element>(values: &[E]) -> bool {
            values.iter().all(|value| *value == E::ZERO)
        }
        with_values!(self, values => are_zero(values))
    }

    /// The values as they are in memory.
    pub fn bytes(self) -> &'a [u8] {
        with_values!(self, values => bytemuck::cast_slice(values))
    }
}

impl Values<'_> {
    pub fn element_type(&self) -> ElementType {
        fn type_of<E: Element>(_: &[E]) -> ElementType {
            E::TYPE
        }
        with_values!(self, values => type_of(values))
    }

    pub fn len(&self) -> usize {
        with_values!(self, values => values.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl ValuesMut<'_> {
    /// Returns the elements of a range for writing.
    pub fn slice_mut(&mut self, range: Range<usize>) -> ValuesMut<'_> {
        with_elements!(ValuesMut, self, values => Element::values_mut(&mut values[range]))
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

    /// Borrows the values.
    pub fn as_values(&self) -> Values<'_> {
        with_elements!(ValuesMut, self, values => Element::values(values))
    }
}

impl OwnedValues {
    /// Returns `len` zeros.
    pub fn zeros(element: ElementType, len: usize) -> Self {
        with_element_type!(element, E => E::owned(vec![E::ZERO; len]))
    }

    /// Returns an empty list with capacity for `len` elements.
    pub fn with_capacity(element: ElementType, len: usize) -> Self {
        with_element_type!(element, E => E::owned(Vec::with_capacity(len)))
    }

    /// Appends zeros or removes the last elements until there are `len`.
    pub fn resize(&mut self, len: usize) {
        with_elements!(OwnedValues, self, values => values.resize(len, Element::ZERO));
    }

    /// Returns the elements of a range for writing.
    pub fn slice_mut(&mut self, range: Range<usize>) -> ValuesMut<'_> {
        with_elements!(OwnedValues, self, values => Element::values_mut(&mut values[range]))
    }

    /// Appends the elements of `from`. Panics when `from` has another type.
    pub fn extend(&mut self, from: Values<'_>) {
        let (own, other) = (self.element_type(), from.element_type());
        with_elements!(OwnedValues, self, values => match Element::slice(from) {
            Some(from) => values.extend_from_slice(from),
            None => panic!("cannot append {other:?} to {own:?}"),
        });
    }

    /// Keeps the first `len` elements.
    pub fn truncate(&mut self, len: usize) {
        with_elements!(OwnedValues, self, values => values.truncate(len));
    }

    /// Borrows the values.
    pub fn as_values(&self) -> Values<'_> {
        with_elements!(OwnedValues, self, values => Element::values(values))
    }

    /// The values as they are in memory, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        with_elements!(OwnedValues, self, values => bytemuck::cast_slice_mut(values))
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

/// An element type at compile time.
pub trait Element:
    sealed::Sealed + bytemuck::Pod + Copy + Debug + PartialEq + PartialOrd + Send + Sync + 'static
{
    const TYPE: ElementType;
    const ZERO: Self;

    /// Converts to the nearest value; integers are truncated towards 0. What a 32-bit integer cannot be is a sum that has
    /// overflowed.
    fn from_f64(value: f64) -> Self;
    /// Converts to a double; an `i64` beyond 2^53 is rounded, and a sum that has overflowed is NaN.
    fn to_f64(self) -> f64;
    /// The sum. An `i64` wraps, so that the order of additions never matters. A 32-bit integer that has overflowed stays so.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// Returns the index of the first NaN or infinity, or sum that has overflowed, if any.
    fn first_non_finite(values: &[Self]) -> Option<usize>;
    /// Returns the slice if it is of this type.
    fn slice(values: Values<'_>) -> Option<&[Self]>;
    /// Returns the slice if it is of this type.
    fn slice_mut(values: ValuesMut<'_>) -> Option<&mut [Self]>;
    /// Returns the vector if it is of this type.
    fn vec_mut(values: &mut OwnedValues) -> Option<&mut Vec<Self>>;
    /// Wraps a slice of this type.
    fn values(values: &[Self]) -> Values<'_>;
    /// Wraps a slice of this type.
    fn values_mut(values: &mut [Self]) -> ValuesMut<'_>;
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
    ($type:ident) => {
        impl Element for $type {
            conversions!($type);
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

float!(f32);
float!(f64);

impl Element for i64 {
    conversions!(i64);
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
}

/// A 32-bit integer, of which one value stands for a sum that has overflowed.
macro_rules! count {
    ($type:ident, $overflowed:expr) => {
        impl Element for $type {
            conversions!($type);
            const ZERO: Self = 0;

            fn from_f64(value: f64) -> Self {
                let whole = value.trunc();
                let fits = whole >= f64::from($type::MIN) && whole <= f64::from($type::MAX);
                if fits { whole as $type } else { $overflowed }
            }

            fn to_f64(self) -> f64 {
                if self == $overflowed { f64::NAN } else { f64::from(self) }
            }

            #[inline]
            fn plus(self, other: Self) -> Self {
                let sum = self.checked_add(other).unwrap_or($overflowed);
                if self == $overflowed || other == $overflowed { $overflowed } else { sum }
            }

            fn first_non_finite(values: &[Self]) -> Option<usize> {
                values.iter().position(|value| *value == $overflowed)
            }
        }
    };
}

count!(i32, i32::MIN);
count!(u32, u32::MAX);

#[cfg(test)]
mod tests;
