//! Numbers in memory that a program shares with us.

use std::fmt::{Debug, Formatter};
use std::ops::Deref;
use std::sync::Arc;

/// Numbers in memory, of which a clone copies none. They may belong to somebody else, such as an array of another language:
/// whatever gives them as a slice is kept until the last clone is dropped.
#[derive(Clone)]
pub struct Buffer<T>(Arc<dyn AsRef<[T]> + Send + Sync>);

impl<T> Buffer<T> {
    /// The numbers of `owner`, which must be the same each time that it gives them.
    pub fn new(owner: impl AsRef<[T]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(owner))
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        (*self.0).as_ref()
    }
}

impl<T: Debug> Debug for Buffer<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Send + Sync + 'static> Default for Buffer<T> {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl<T: Send + Sync + 'static> From<Vec<T>> for Buffer<T> {
    fn from(numbers: Vec<T>) -> Self {
        Self::new(numbers)
    }
}

impl<T: Send + Sync + 'static> From<Arc<[T]>> for Buffer<T> {
    fn from(numbers: Arc<[T]>) -> Self {
        Self::new(numbers)
    }
}

impl<T: Clone + Send + Sync + 'static> From<&[T]> for Buffer<T> {
    fn from(numbers: &[T]) -> Self {
        Self::new(numbers.to_vec())
    }
}

impl<T: Send + Sync + 'static> FromIterator<T> for Buffer<T> {
    fn from_iter<I: IntoIterator<Item = T>>(numbers: I) -> Self {
        Self::new(Vec::from_iter(numbers))
    }
}

impl<T: Send + Sync + 'static, const N: usize> From<[T; N]> for Buffer<T> {
    fn from(numbers: [T; N]) -> Self {
        Self::new(numbers)
    }
}
