//! Tables: columns of Python and Arrow streams as record batches.

use std::sync::Arc;

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    RecordBatchReader, StringArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyList, PyString, PyStringMethods, PyTuple};

use crate::arrays::copied;
use crate::error::data_error;

/// A column: its name, the kind of its values, and the values.
pub(crate) type Column<'py> = (String, String, Bound<'py, PyAny>);

/// What numpy has for a time that is missing.
const NO_TIME: i64 = i64::MIN;

/// Columns of equal length as one batch.
pub(crate) fn of_columns(columns: Vec<Column<'_>>) -> PyResult<RecordBatch> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (name, kind, values) in columns {
        let array = column_of(&name, &kind, &values)?;
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(|error| arrow_error(&error))
}

/// The batches of an object with an Arrow stream.
pub(crate) fn of_stream(object: &Bound<'_, PyAny>) -> PyResult<Vec<RecordBatch>> {
    let capsule = object.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: a capsule of this name has such a stream, which is moved out of it: the capsule frees nothing then.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr().cast()) };
    let reader = RecordBatchStreamReader::try_new(stream).map_err(|error| arrow_error(&error))?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<Vec<_>, _>>().map_err(|error| arrow_error(&error))?;
    Ok(if batches.is_empty() { vec![RecordBatch::new_empty(schema)] } else { batches })
}

/// The batches with further columns, whose values are those of all batches one after the other.
pub(crate) fn with_columns(batches: Vec<RecordBatch>, more: Vec<Column<'_>>) -> PyResult<Vec<RecordBatch>> {
    if more.is_empty() {
        return Ok(batches);
    }
    let more = of_columns(more)?;
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    if rows != more.num_rows() {
        return Err(data_error(format!(
            "the table has {rows} rows, and y or the weights {}",
            more.num_rows()
        )));
    }
    let mut start = 0;
    let extended = batches.into_iter().map(|batch| {
        let own = more.slice(start, batch.num_rows());
        start += batch.num_rows();
        let fields = batch.schema().fields().iter().chain(own.schema().fields()).cloned().collect::<Vec<_>>();
        let columns = batch.columns().iter().chain(own.columns()).cloned().collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(|error| arrow_error(&error))
    });
    extended.collect()
}

fn column_of(name: &str, kind: &str, values: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    Ok(match kind {
        "float64" => Arc::new(Float64Array::from(copied::<f64>(values)?)),
        "float32" => Arc::new(Float32Array::from(copied::<f32>(values)?)),
        "int64" => Arc::new(Int64Array::from(copied::<i64>(values)?)),
        "uint64" => Arc::new(UInt64Array::from(copied::<u64>(values)?)),
        "bool" => Arc::new(BooleanArray::from(copied::<bool>(values)?)),
        "time" => {
            let times = copied::<i64>(values)?.into_iter();
            let times = times.map(|time| Some(time).filter(|time| *time != NO_TIME));
            Arc::new(times.collect::<TimestampMicrosecondArray>())
        }
        "category" => {
            let (codes, names) = values.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
            let codes = copied::<i32>(&codes)?.into_iter();
            let codes: Int32Array = codes.map(|code| Some(code).filter(|code| *code >= 0)).collect();
            let names = Arc::new(texts(name, &names)?);
            Arc::new(
                DictionaryArray::<Int32Type>::try_new(codes, names).map_err(|error| arrow_error(&error))?,
            )
        }
        "text" => Arc::new(texts(name, values)?),
        other => return Err(data_error(format!("column '{name}' has values of the kind {other}"))),
    })
}

/// A list of texts; `None` and numbers that are not equal to themselves are missing.
fn texts(name: &str, values: &Bound<'_, PyAny>) -> PyResult<StringArray> {
    let list = values.cast::<PyList>()?;
    let mut texts: Vec<Option<Bound<'_, PyString>>> = Vec::with_capacity(list.len());
    for (row, value) in list.iter().enumerate() {
        match value.cast_into::<PyString>() {
            Ok(text) => texts.push(Some(text)),
            Err(error) => {
                let value = error.into_inner();
                if !is_missing(&value)? {
                    return Err(data_error(format!(
                        "column '{name}' has texts and, in row {row}, {} ({}): a column has texts or numbers; \
                         convert it with .astype(str), or to numbers",
                        value.repr()?,
                        value.get_type().name()?
                    )));
                }
                texts.push(None);
            }
        }
    }
    texts.iter().map(|text| text.as_ref().map(PyStringMethods::to_cow).transpose()).collect()
}

fn is_missing(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if value.is_none() {
        return Ok(true);
    }
    if value.get_type().name()? == "NAType" || value.get_type().name()? == "NaTType" {
        return Ok(true);
    }
    Ok(value.cast::<PyTuple>().is_err() && value.ne(value).is_ok_and(|differs| differs))
}

fn arrow_error(error: &ArrowError) -> PyErr {
    data_error(format!("the table cannot be read: {error}"))
}
