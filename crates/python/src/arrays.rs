//! numpy arrays as buffers, without a copy.

use engine::Buffer;
use numpy::{Element, PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::error::data_error;

/// The numbers of an array of Python, which is kept as long as they are needed.
struct ArrayOwner<T> {
    start: *const T,
    length: usize,
    _array: Py<PyAny>,
}

// SAFETY: the numbers are only read, and the array keeps them where they are.
unsafe impl<T: Send> Send for ArrayOwner<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for ArrayOwner<T> {}

impl<T> AsRef<[T]> for ArrayOwner<T> {
    fn as_ref(&self) -> &[T] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: the array has `length` numbers in a row from `start` on, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

/// The numbers of an array whose rows lie one after the other.
pub(crate) fn buffer<T: Element + Send + Sync + 'static>(
    array: &Bound<'_, PyArrayDyn<T>>,
) -> PyResult<Buffer<T>> {
    if !array.is_c_contiguous() {
        return Err(data_error("an array is not contiguous in memory, row by row"));
    }
    let owner = ArrayOwner {
        start: array.data().cast_const(),
        length: array.len(),
        _array: array.clone().unbind().into(),
    };
    Ok(Buffer::new(owner))
}

/// The numbers of an array of one dimension; none for `None`.
pub(crate) fn optional<T: Element + Send + Sync + 'static>(
    array: Option<&Bound<'_, PyArray1<T>>>,
) -> PyResult<Buffer<T>> {
    array.map_or_else(|| Ok(Buffer::default()), |array| buffer(array.to_dyn()))
}

/// A copy of the numbers of an array of one dimension.
pub(crate) fn copied<T: Element + Clone>(array: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    let array = array.extract::<PyReadonlyArray1<'_, T>>()?;
    Ok(array.as_array().to_vec())
}
