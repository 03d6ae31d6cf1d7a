//! Makes errors of damaged files.
//!
//! The Parquet library trusts some numbers that it reads, and panics when they are wrong. This module checks those of
//! the metadata before the library reads them. It catches the panics of the library while it decodes pages and returns
//! them as ordinary errors.

use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

use super::fault;
use crate::panics;

/// Runs `work`, in which the library decodes bytes of a file. The caller must not use what `work` changes after an
/// error.
pub(super) fn catch_panics<R>(work: impl FnOnce() -> Result<R, ParquetError>) -> Result<R, ParquetError> {
    panics::catch(work).unwrap_or_else(|| Err(fault("its pages are inconsistent")))
}

/// Whether the counts and offsets in the metadata are possible in a file of this size.
pub(super) fn check_metadata(metadata: &ParquetMetaData, size_bytes: u64) -> Result<(), ParquetError> {
    let mut row_count = 0i64;
    for group in metadata.row_groups() {
        let rows = group.num_rows();
        let sum = Some(rows).filter(|rows| *rows >= 0).and_then(|rows| row_count.checked_add(rows));
        row_count = sum.ok_or_else(|| fault(format!("a row group of {rows} records")))?;
        let columns = metadata.file_metadata().schema_descr().num_columns();
        if group.num_columns() != columns {
            return Err(fault(format!("a row group of {} columns, not {columns}", group.num_columns())));
        }
        group.columns().iter().try_for_each(|column| check_column(column, rows, size_bytes))?;
    }
    Ok(())
}

fn check_column(column: &ColumnChunkMetaData, rows: i64, size_bytes: u64) -> Result<(), ParquetError> {
    let (name, values) = (column.column_path().string(), column.num_values());
    let is_list = column.column_descr().max_rep_level() > 0;
    let can_be = if is_list && rows > 0 { values >= rows } else { values == rows };
    if !can_be {
        return Err(fault(format!("column '{name}' of {values} values for {rows} records")));
    }
    let size = column.compressed_size();
    match chunk_range(column).and_then(|(start, size)| start.checked_add(size)) {
        Some(end) if end <= size_bytes => Ok(()),
        _ => Err(fault(format!(
            "column '{name}' of {size} bytes at {}, beyond the end of the file",
            column.data_page_offset()
        ))),
    }
}

/// Returns the offset and the size of a column chunk. Some writers set the offset of the dictionary to 0 when there is
/// none.
pub(super) fn chunk_range(column: &ColumnChunkMetaData) -> Option<(u64, u64)> {
    let data = column.data_page_offset();
    let start = column.dictionary_page_offset().filter(|start| (1..data).contains(start)).unwrap_or(data);
    Some((u64::try_from(start).ok()?, u64::try_from(column.compressed_size()).ok()?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;

    use super::*;

    /// A column of `values`, whose pages begin at `data`, maybe after a dictionary, and take 100 bytes.
    fn column(is_list: bool, values: i64, data: i64, dictionary: Option<i64>) -> ColumnChunkMetaData {
        let kind = if is_list { "repeated" } else { "optional" };
        let message = parse_message_type(&format!("message m {{ {kind} int32 a; }}")).expect("a schema");
        let schema = SchemaDescriptor::new(Arc::new(message));
        ColumnChunkMetaData::builder(schema.column(0))
            .set_num_values(values)
            .set_total_compressed_size(100)
            .set_data_page_offset(data)
            .set_dictionary_page_offset(dictionary)
            .build()
            .expect("metadata")
    }

    #[test]
    fn a_column_begins_at_its_dictionary_if_it_has_one() {
        for (dictionary, start) in [(None, 50), (Some(20), 20), (Some(0), 50), (Some(50), 50), (Some(70), 50)]
        {
            assert_eq!(chunk_range(&column(false, 3, 50, dictionary)), Some((start, 100)), "{dictionary:?}");
        }
        assert_eq!(chunk_range(&column(false, 3, -1, None)), None);
    }

    #[test]
    fn a_column_lies_within_its_file() {
        let checked = |data, dictionary, size| check_column(&column(false, 3, data, dictionary), 3, size);
        assert!(checked(50, None, 150).is_ok() && checked(50, Some(20), 120).is_ok());
        for (data, dictionary, size) in
            [(50, None, 149), (50, Some(20), 119), (i64::MAX, None, 150), (-1, None, 150)]
        {
            let error = checked(data, dictionary, size).unwrap_err().to_string();
            let expected = format!("column 'a' of 100 bytes at {data}, beyond the end of the file");
            assert!(error.contains(&expected), "{error}");
        }
    }

    #[test]
    fn a_column_has_a_value_for_each_record_and_lists_may_have_more() {
        let checked = |is_list, values, rows| check_column(&column(is_list, values, 50, None), rows, 500);
        assert!(checked(false, 3, 3).is_ok() && checked(true, 3, 3).is_ok() && checked(true, 5, 3).is_ok());
        assert!(checked(true, 0, 0).is_ok() && checked(false, 0, 0).is_ok());
        for (is_list, values, rows) in
            [(false, 2, 3), (false, 4, 3), (true, 2, 3), (true, 1, 0), (true, -1, 3)]
        {
            let error = checked(is_list, values, rows).unwrap_err().to_string();
            let expected = format!("column 'a' of {values} values for {rows} records");
            assert!(error.contains(&expected), "{error}");
        }
    }
}
