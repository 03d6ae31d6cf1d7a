//! What can go wrong with parameters.

/// An error of this crate. Variants carry data; the text says what, where, and what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A spec that cannot be.
    #[error("matrix {matrix:?}: {field} is {actual}, expected {expected}")]
    Spec {
        /// Name of the matrix.
        matrix: String,
        /// The field at fault.
        field: &'static str,
        /// What it is.
        actual: String,
        /// What it may be.
        expected: String,
    },
}
