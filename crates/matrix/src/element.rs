//! The element types of a matrix: a closed set.

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
