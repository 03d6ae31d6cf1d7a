//! Parquet: a table of columns, or lists of feature numbers.
//!
//! | layout | feature columns | keys |
//! |---|---|---|
//! | table | integers, floats, booleans; strings (one feature a value) | numbers: position among the feature columns; strings: `named_key(column, value)` |
//! | lists | one list of integers (`indices`), maybe one list of numbers of the same lengths (`values`, else all 1) | as written, below 2^63 |
//!
//! A file with a list of integers has the lists layout. When there are several such lists, those named `indices` and
//! `values` are taken. The label is the column named by the option, else `label`, `target` or `y`, else the last one. A
//! null or a NaN among the features is a missing value: no entry. What can be read on its own, and so goes to a task
//! whole, is a row group.

mod checked;
mod column;
mod fault;
mod guard;
mod layout;
mod list_column;
mod list_features;
mod lists;
mod pages;
mod reader;
mod runs;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use super::{BlockPlan, FormatContext, FormatRow, Plan, RecordReader};
use crate::error::Error;
use crate::input::Input;
use crate::options::FormatOptions;
use crate::schema::Schema;
use crate::split::Split;
use layout::Layout;

/// The row of the table of formats.
pub(super) const ROW: FormatRow = FormatRow {
    name: "parquet",
    title: "Parquet: a table of numbers and strings, or lists of indices and values",
    extensions: &["parquet", "pq"],
    recognize: |head| head.starts_with(b"PAR1"),
    open,
};

/// The metadata and the layout of one file.
struct FilePlan {
    name: String,
    metadata: ParquetMetaData,
    layout: Layout,
}

/// All that the readers of all tasks share.
struct Shared {
    files: Vec<FilePlan>,
    schema: Schema,
    notices: Vec<String>,
}

struct ParquetPlan(Arc<Shared>);

fn open(context: &FormatContext<'_>) -> Result<Plan, Error> {
    let mut files = Vec::with_capacity(context.files.len());
    let mut schema: Option<Schema> = context.like.cloned();
    for input in context.files {
        let metadata = read_metadata(input)?;
        let (layout, own) = layout::of_file(input.name(), &metadata, context.options, schema.as_ref())?;
        schema.get_or_insert(own);
        files.push(FilePlan { name: input.name().to_owned(), metadata, layout });
    }
    let mut schema = schema.unwrap_or_default();
    let guess = context.like.is_none().then(|| layout::notice_of_label(context.options, &schema));
    let notices = guess.flatten().into_iter().collect();
    if context.like.is_none() {
        schema.label_names = label_names(context.files, &files)?;
    }
    Ok(Plan::Blocks(Box::new(ParquetPlan(Arc::new(Shared { files, schema, notices })))))
}

/// Sorted distinct values of a label column of strings; empty when labels are numbers.
fn label_names(inputs: &[Input], files: &[FilePlan]) -> Result<Vec<String>, Error> {
    let mut names = std::collections::BTreeSet::new();
    for (input, file) in inputs.iter().zip(files) {
        reader::collect_label_names(input, file, &mut names)?;
    }
    Ok(names.into_iter().collect())
}

fn read_metadata(input: &Input) -> Result<ParquetMetaData, Error> {
    let file = open_file(input)?;
    let size_bytes = file.metadata().map_err(|source| Error::io("look at", input.name(), source))?.len();
    let metadata = guard::guarded(|| {
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file)?;
        guard::check(&metadata, size_bytes).map(|()| metadata)
    });
    metadata.map_err(|reason| {
        bad_file(
            input.name(),
            format!("not a complete Parquet file ({reason}); was it cut short while written?"),
        )
    })
}

fn open_file(input: &Input) -> Result<File, Error> {
    let path: &Path = input.path().ok_or_else(|| Error::BadOption {
        option: "format",
        reason: format!("Parquet is read from its end, so {} must be a file", input.name()),
    })?;
    File::open(path).map_err(|source| Error::io("open", input.name(), source))
}

fn bad_file(file: &str, reason: impl Into<String>) -> Error {
    Error::BadFile { file: file.to_owned(), record: None, reason: reason.into() }
}

impl BlockPlan for ParquetPlan {
    fn notices(&self) -> Vec<String> {
        self.0.notices.clone()
    }

    fn schema(&self) -> Schema {
        self.0.schema.clone()
    }

    fn units(&self, file: usize) -> Vec<u64> {
        self.0.files[file].metadata.row_groups().iter().map(|group| group.compressed_size() as u64).collect()
    }

    fn reader(&self, files: &[Input], splits: &[Split]) -> Result<Box<dyn RecordReader>, Error> {
        Ok(Box::new(reader::ParquetReader::new(Arc::clone(&self.0), files.to_vec(), splits.to_vec())))
    }
}

#[cfg(test)]
mod tests;
