//! Arrow IPC files for tests.

use std::fs::File;
use std::sync::Arc;

use arrow_array::types::{Float64Type, Int32Type};
use arrow_array::{ArrayRef, Float64Array, Int32Array, ListArray, RecordBatch, StringArray};
use arrow_ipc::writer::{FileWriter, StreamWriter};

use super::parquet_file::Table;

/// Records of a batch, so small that tasks can share a file.
const BATCH_RECORDS: usize = 64;

/// Writes the columns label, color, size and town; a path that ends with `s` is a stream.
pub(crate) fn write(path: &str, table: &Table) {
    let columns: [(&str, ArrayRef); 4] = [
        ("label", Arc::new(Int32Array::from(table.labels.clone()))),
        ("color", Arc::new(StringArray::from(table.colors.clone()))),
        ("size", Arc::new(Float64Array::from(table.sizes.clone()))),
        ("town", Arc::new(StringArray::from(table.towns.clone()))),
    ];
    write_columns(path, columns);
}

/// Writes the records of a libsvm text whose values are all 1 as a label, a list of indices and a list of values.
pub(crate) fn write_lists(path: &str, text: &str) {
    let label = |line: &str| line.split(' ').next().map(|label| i32::from(label == "1"));
    let index = |token: &str| token.split(':').next().and_then(|index| index.parse::<i32>().ok());
    let indices = |line: &str| Some(line.split(' ').skip(1).map(index).collect::<Vec<_>>());
    let values = |line: &str| Some(line.split(' ').skip(1).map(|_| Some(1.0)).collect::<Vec<_>>());
    let columns: [(&str, ArrayRef); 3] = [
        ("label", Arc::new(text.lines().map(label).collect::<Int32Array>())),
        ("indices", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(text.lines().map(indices)))),
        ("values", Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(text.lines().map(values)))),
    ];
    write_columns(path, columns);
}

/// Writes these columns; a path that ends with `s` is a stream.
pub(crate) fn write_columns<const N: usize>(path: &str, columns: [(&str, ArrayRef); N]) {
    let whole = RecordBatch::try_from_iter(columns).expect("columns of the same length");
    let file = File::create(path).expect("the temporary folder can be written");
    let starts = (0..whole.num_rows()).step_by(BATCH_RECORDS);
    let batches = starts.map(|start| whole.slice(start, BATCH_RECORDS.min(whole.num_rows() - start)));
    if path.ends_with('s') {
        let mut writer = StreamWriter::try_new(file, &whole.schema()).expect("a stream can be begun");
        batches.for_each(|batch| writer.write(&batch).expect("the file can be written"));
        writer.finish().expect("the file can be written");
    } else {
        let mut writer = FileWriter::try_new(file, &whole.schema()).expect("a file can be begun");
        batches.for_each(|batch| writer.write(&batch).expect("the file can be written"));
        writer.finish().expect("the file can be written");
    }
}
