//! Parquet files for tests.

use std::fs::File;
use std::sync::Arc;

use data::parquet_writer::{ColumnData, ColumnType, ParquetWriter};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// Records of a row group, so small that tasks can share a file.
const GROUP_RECORDS: usize = 64;

/// Records with a label, two names and a number.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) labels: Vec<i32>,
    pub(crate) colors: Vec<String>,
    pub(crate) sizes: Vec<f64>,
    pub(crate) towns: Vec<String>,
}

/// Writes the columns label, color, size and town.
pub(crate) fn write(path: &str, table: &Table) {
    let schema = "message table {
        required int32 label; required binary color (UTF8); required double size; required binary town (UTF8);
    }";
    let schema = Arc::new(parse_message_type(schema).expect("it is a schema"));
    let file = File::create(path).expect("the temporary folder can be written");
    let properties = Arc::new(WriterProperties::default());
    let mut writer = SerializedFileWriter::new(file, schema, properties).expect("a file can be begun");
    let count = table.labels.len();
    for start in (0..count).step_by(GROUP_RECORDS) {
        let range = start..count.min(start + GROUP_RECORDS);
        let mut group = writer.next_row_group().expect("the one before is closed");
        column::<Int32Type>(&mut group, &table.labels[range.clone()]);
        column::<ByteArrayType>(&mut group, &texts(&table.colors[range.clone()]));
        column::<DoubleType>(&mut group, &table.sizes[range.clone()]);
        column::<ByteArrayType>(&mut group, &texts(&table.towns[range]));
        group.close().expect("all columns are there");
    }
    writer.close().expect("the file can be written");
}

fn texts(texts: &[String]) -> Vec<ByteArray> {
    texts.iter().map(|text| text.as_str().into()).collect()
}

fn column<T: DataType>(group: &mut SerializedRowGroupWriter<'_, File>, values: &[T::T]) {
    let mut column = group.next_column().expect("the one before is closed").expect("the schema has it");
    column.typed::<T>().write_batch(values, None, None).expect("as many values as records");
    column.close().expect("the file can be written");
}

/// Writes the records of a libsvm text whose values are all 1 as a label and a list of indices.
pub(crate) fn write_lists(path: &str, text: &str) {
    let (mut labels, mut lengths, mut indices) = (Vec::new(), Vec::new(), Vec::new());
    for line in text.lines() {
        let mut tokens = line.split(' ');
        let label = tokens.next().and_then(|token| token.parse::<i8>().ok()).expect("a label");
        labels.push(label);
        let before = indices.len();
        let index = |token: &str| token.strip_suffix(":1").and_then(|index| index.parse::<u64>().ok());
        indices.extend(tokens.map(|token| index(token).expect("an index with the value 1")));
        lengths.push((indices.len() - before) as u32);
    }
    let columns = [("label", ColumnType::I8), ("indices", ColumnType::U64List)];
    let mut writer =
        ParquetWriter::create(path.as_ref(), &columns).expect("the temporary folder can be written");
    writer
        .write(&[ColumnData::I8(&labels), ColumnData::U64List(&lengths, &indices)])
        .expect("columns of one length");
    writer.finish().expect("the file can be written");
}
