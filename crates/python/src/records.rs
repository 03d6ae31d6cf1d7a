//! The records of a training, prediction or evaluation.

use engine::{CsrArrays, Data, DenseArrays, Numbers, RecordAttributes};
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{buffer, optional};
use crate::error::data_error;
use crate::table::{self, Column};

/// Files, or arrays in memory.
#[pyclass(frozen, module = "seraphim._native")]
pub(crate) struct Records(pub(crate) Data);

/// Labels, their names, weights and groups of the records.
#[derive(FromPyObject)]
pub(crate) struct Attributes<'py> {
    labels: Option<Bound<'py, PyArray1<f64>>>,
    label_names: Vec<String>,
    weights: Option<Bound<'py, PyArray1<f32>>>,
    groups: Option<Bound<'py, PyArray1<u64>>>,
}

impl Attributes<'_> {
    fn convert(self) -> PyResult<RecordAttributes> {
        Ok(RecordAttributes {
            labels: optional(self.labels.as_ref())?,
            label_names: self.label_names,
            weights: optional(self.weights.as_ref())?,
            groups: optional(self.groups.as_ref())?,
            ..RecordAttributes::default()
        })
    }
}

#[pymethods]
impl Records {
    /// Files, folders and patterns.
    #[staticmethod]
    fn files(inputs: Vec<String>) -> Self {
        Self(Data::files(inputs))
    }

    /// Rows of float32 or float64, which are not copied.
    #[staticmethod]
    fn dense(
        values: &Bound<'_, PyUntypedArray>,
        names: Vec<String>,
        attributes: Attributes<'_>,
    ) -> PyResult<Self> {
        let &[_, columns] = values.shape() else {
            return Err(data_error(format!("the array has {} dimensions, not 2", values.ndim())));
        };
        let values = if let Ok(single) = values.cast::<PyArrayDyn<f32>>() {
            Numbers::F32(buffer(single)?)
        } else {
            Numbers::F64(buffer(values.cast::<PyArrayDyn<f64>>()?)?)
        };
        Ok(Self(DenseArrays { values, columns, names, attributes: attributes.convert()? }.into()))
    }

    /// Compressed sparse rows.
    #[staticmethod]
    fn sparse(
        offsets: &Bound<'_, PyArray1<u64>>,
        features: &Bound<'_, PyArray1<u64>>,
        values: &Bound<'_, PyArray1<f32>>,
        fields: Option<&Bound<'_, PyArray1<u32>>>,
        attributes: Attributes<'_>,
    ) -> PyResult<Self> {
        let rows = CsrArrays {
            offsets: buffer(offsets.to_dyn())?,
            features: buffer(features.to_dyn())?,
            values: buffer(values.to_dyn())?,
            fields: optional(fields)?,
            attributes: attributes.convert()?,
        };
        Ok(Self(rows.into()))
    }

    /// A table of columns.
    #[staticmethod]
    fn columns(columns: Vec<Column<'_>>) -> PyResult<Self> {
        Ok(Self(vec![table::of_columns(columns)?].into()))
    }

    /// An object with an Arrow stream, and further columns.
    #[staticmethod]
    fn stream(object: &Bound<'_, PyAny>, more: Vec<Column<'_>>) -> PyResult<Self> {
        Ok(Self(table::with_columns(table::of_stream(object)?, more)?.into()))
    }
}
