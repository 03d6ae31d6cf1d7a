//! Keeps damaged files from becoming more than errors.
//!
//! The Parquet library trusts some numbers that it reads, and panics where they cannot be right. Those of the metadata are
//! checked here before it sees them; what it still panics at while it decodes pages is caught and is an error like any
//! other.

use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

/// Does `work`, in which the library decodes bytes of a file. What `work` changes is not to be used after an error.
pub(super) fn guarded<R>(work: impl FnOnce() -> Result<R, ParquetError>) -> Result<R, ParquetError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(ParquetError::General("its pages make no sense".to_owned())))
}

/// Whether counts and places in the metadata can be those of a file of this size.
pub(super) fn check(metadata: &ParquetMetaData, size_bytes: u64) -> Result<(), ParquetError> {
    let mut row_count = 0i64;
    for group in metadata.row_groups() {
        let sum =
            Some(group.num_rows()).filter(|rows| *rows >= 0).and_then(|rows| row_count.checked_add(rows));
        row_count = sum.ok_or_else(|| bad(format!("a row group of {} records", group.num_rows())))?;
        let columns = metadata.file_metadata().schema_descr().num_columns();
        if group.num_columns() != columns {
            return Err(bad(format!("a row group of {} columns, not {columns}", group.num_columns())));
        }
        group.columns().iter().try_for_each(|column| check_column(column, size_bytes))?;
    }
    Ok(())
}

fn check_column(column: &ColumnChunkMetaData, size_bytes: u64) -> Result<(), ParquetError> {
    let starts = [Some(column.data_page_offset()), column.dictionary_page_offset()];
    let (size, values) = (column.compressed_size(), column.num_values());
    let last = starts.into_iter().flatten().map(|start| u64::try_from(start).ok()?.checked_add(size as u64));
    if size < 0 || values < 0 || last.clone().any(|end| end.is_none()) {
        return Err(bad(format!("a column of {values} values in {size} bytes at {starts:?}")));
    }
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    if start as u64 + size as u64 > size_bytes {
        return Err(bad(format!("a column of {size} bytes at {start}, behind the end of the file")));
    }
    Ok(())
}

fn bad(reason: String) -> ParquetError {
    ParquetError::General(reason)
}
