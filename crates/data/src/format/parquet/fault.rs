//! What is wrong with a record, before it is known in which file and line.

/// What is wrong with a record: number of the column, what was expected, what was found.
pub(super) type Fault = (usize, String, String);

/// A value that is finite, as the builder needs it; `written` as it stands in the file.
#[inline]
pub(super) fn finite(value: f32, written: f64, column: usize) -> Result<f32, Fault> {
    if value.is_finite() {
        return Ok(value);
    }
    Err((column, "a finite number that a 32-bit float can hold".to_owned(), written.to_string()))
}
