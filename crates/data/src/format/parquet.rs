//! Parquet, read through Arrow record batches; [`crate::arrow`] describes the possible columns.
//!
//! The label is the column that the option names, else `label`, `target` or `y`, else the last one. Columns that pandas
//! wrote as its index are skipped. Folders named `column=value` give each of their files a column.
//!
//! The smallest part that can be read without the others is a row group: a task that begins in the middle of one
//! decodes the records before its own and drops them.
//!
//! Files are not trusted: `file` and `checks` check the metadata, `pages` checks every page, and a panic of the library
//! becomes an error with the row group.

mod checks;
mod codec;
mod delta;
mod file;
mod page_header;
mod pages;
mod partition;
mod reader;
mod thrift;

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema as ArrowSchema};
use parquet::arrow::parquet_to_arrow_schema;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;

use super::{Abilities, FormatContext, FormatRow, OpenFormat, RecordReader, RowGroupFormat};
use crate::arrow::{
    check_guess, describe, describe_values, merged_notices, merged_passthrough_columns, pandas_index,
};
use crate::columns::{ColumnPlan, LabelScan, Role, plan};
use crate::error::Error;
use crate::input::Input;
use crate::options::FormatOptions;
use crate::schema::{PassthroughColumn, Schema};
use crate::split::{RowGroup, Split};

/// The row in the table of formats.
pub(super) const ROW: FormatRow = FormatRow {
    name: "parquet",
    title: "Parquet: a table of numbers and strings, lists of indices and values, or vectors",
    extensions: &["parquet", "pq"],
    abilities: Abilities { is_numbered: true, reads_partitions: true, ..Abilities::COLUMNS },
    recognize: |head| head.starts_with(b"PAR1") || head.starts_with(b"PARE"),
    open,
};

/// The metadata and the columns of one file.
struct ParquetFile {
    name: String,
    metadata: ParquetMetaData,
    /// The Arrow types as which the columns of the file are read, in its order.
    arrow_fields: Fields,
    /// The columns that the folders of the file add.
    partition: Arc<[Field]>,
    plan: ColumnPlan,
}

/// The data that the readers of all tasks share.
struct ParquetDataset {
    files: Vec<ParquetFile>,
    schema: Schema,
    notices: Vec<String>,
}

struct ParquetFormat(Arc<ParquetDataset>);

fn open(context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    let partition: Arc<[Field]> = partition::fields(context.files)?.into();
    let mut files = Vec::with_capacity(context.files.len());
    let mut schema: Option<Schema> = context.trained_schema.cloned();
    for input in context.files {
        let (bytes, size_bytes) = file::open(input)?;
        let metadata = file::read_metadata(input, &bytes, size_bytes)?;
        let read_as = fields(input, &metadata)?;
        let own = read_as.iter().enumerate().map(|(column, field)| {
            let nullable = field.is_nullable() && may_have_nulls(&metadata, column);
            Arc::new(field.as_ref().clone().with_nullable(nullable))
        });
        let all: Vec<_> = own.chain(partition.iter().cloned().map(Arc::new)).collect();
        let row_numbers = pandas_index(pandas_description(&metadata));
        let mut table = describe(input.name(), &ArrowSchema::new(all), &row_numbers, context.options)?;
        let own = plan(&table, context.options, schema.as_ref())?;
        let (name, partition) = (input.name().to_owned(), Arc::clone(&partition));
        let mut file = ParquetFile { name, metadata, arrow_fields: read_as, partition, plan: own };
        if schema.is_none() {
            let values = value_features(&file.plan);
            let first = reader::first_values(input, &file, &values)?.unwrap_or_default();
            describe_values(&mut table, |at| first.get(values.binary_search(&at).ok()?));
            file.plan = plan(&table, context.options, None)?;
        }
        schema.get_or_insert_with(|| file.plan.schema.clone());
        files.push(file);
    }
    let mut schema = schema.unwrap_or_default();
    let notices = merged_notices(files.iter().map(|file| &file.plan));
    if context.trained_schema.is_none() {
        check_label(context, &files, schema.label.as_deref())?;
        schema.label_names = label_names(context.files, &files, context.options, &schema)?;
    }
    Ok(OpenFormat::RowGroups(Box::new(ParquetFormat(Arc::new(ParquetDataset { files, schema, notices })))))
}

/// The columns of the file whose numbers or strings are features, ascending.
fn value_features(plan: &ColumnPlan) -> Vec<usize> {
    let is_value = |at: &usize| matches!(plan.columns[*at].role, Role::Text | Role::Numeric(_));
    (0..plan.columns.len()).filter(is_value).collect()
}

/// Fails when the label was guessed and its values in the first file with records are not those of classes.
fn check_label(context: &FormatContext<'_>, files: &[ParquetFile], name: Option<&str>) -> Result<(), Error> {
    let options = context.options;
    let Some(name) = name else { return Ok(()) };
    if options.label.is_some() || !options.label_rule.is_class() {
        return Ok(());
    }
    for (input, file) in context.files.iter().zip(files) {
        let Some(label) = file.plan.find(Role::Label) else { continue };
        if let Some(first) = reader::first_values(input, file, &[label])? {
            return check_guess(&file.name, name, &first[0]);
        }
    }
    Ok(())
}

/// Returns the sorted distinct values of a label column of strings; empty when labels are numbers.
fn label_names(
    inputs: &[Input],
    files: &[ParquetFile],
    options: &FormatOptions,
    schema: &Schema,
) -> Result<Vec<String>, Error> {
    let Some(label) = &schema.label else { return Ok(Vec::new()) };
    let mut scan = LabelScan::new(label, options, None)?;
    for (input, file) in inputs.iter().zip(files) {
        reader::scan_labels(input, file, &mut scan)?;
    }
    scan.finish()
}

/// Returns the columns of a file as Arrow types. Strings are views of the pages, so that a long string of many records
/// is in memory once.
fn fields(input: &Input, metadata: &ParquetMetaData) -> Result<Fields, Error> {
    let schema = metadata.file_metadata().schema_descr();
    let own = checks::catch_panics(|| parquet_to_arrow_schema(schema, None));
    let own = own.map_err(|reason| {
        bad_file(
            input.name(),
            format!("its columns cannot be read ({reason}); convert them to numbers or strings"),
        )
    })?;
    // Parquet has no durations, and not all units of times: they are integers there. Programs that write Arrow tables store
    // their types, from which only these are taken, because the types of the file are enough for all else.
    let pairs = metadata.file_metadata().key_value_metadata();
    let stored = checks::catch_panics(|| parquet_to_arrow_schema(schema, pairs)).ok();
    let time = |(at, field): (usize, &Arc<Field>)| {
        let stored =
            stored.as_ref().and_then(|stored| stored.fields().get(at)).map(|field| field.data_type());
        match stored.filter(|stored| field.data_type().is_signed_integer() && stored.is_temporal()) {
            Some(stored) => Arc::new(field.as_ref().clone().with_data_type(stored.clone())),
            None => Arc::clone(field),
        }
    };
    let view = |field: Arc<Field>| match field.data_type() {
        DataType::Utf8 => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View)),
        DataType::Binary => Arc::new(field.as_ref().clone().with_data_type(DataType::BinaryView)),
        _ => field,
    };
    Ok(own.fields().iter().enumerate().map(time).map(view).collect())
}

/// Whether a column of the top level may have nulls according to its statistics.
fn may_have_nulls(metadata: &ParquetMetaData, root: usize) -> bool {
    let schema = metadata.file_metadata().schema_descr();
    let mut leaves = (0..schema.num_columns()).filter(|leaf| schema.get_column_root_idx(*leaf) == root);
    let Some(leaf) = leaves.next() else { return true };
    let has_none = |group: &RowGroupMetaData| {
        group.column(leaf).statistics().and_then(Statistics::null_count_opt) == Some(0)
    };
    !metadata.row_groups().iter().all(has_none)
}

/// Returns the text in which pandas describes a table, if pandas wrote it.
fn pandas_description(metadata: &ParquetMetaData) -> Option<&str> {
    let pairs = metadata.file_metadata().key_value_metadata()?;
    pairs.iter().find(|pair| pair.key == "pandas")?.value.as_deref()
}

fn bad_file(file: &str, reason: impl Into<String>) -> Error {
    Error::BadFile { file: file.to_owned(), record: None, reason: reason.into() }
}

fn fault(reason: impl Into<String>) -> ParquetError {
    ParquetError::General(reason.into())
}

impl RowGroupFormat for ParquetFormat {
    fn notices(&self) -> Vec<String> {
        self.0.notices.clone()
    }

    fn schema(&self) -> Schema {
        self.0.schema.clone()
    }

    fn passthrough_columns(&self) -> Vec<PassthroughColumn> {
        merged_passthrough_columns(self.0.files.iter().map(|file| &file.plan))
    }

    fn row_groups(&self, file: usize) -> Vec<RowGroup> {
        let unit = |group: &RowGroupMetaData| RowGroup {
            size_bytes: group.compressed_size() as u64,
            record_count: group.num_rows() as u64,
        };
        self.0.files[file].metadata.row_groups().iter().map(unit).collect()
    }

    fn reader(&self, files: &[Input], splits: &[Split]) -> Result<Box<dyn RecordReader>, Error> {
        Ok(Box::new(reader::ParquetReader::new(Arc::clone(&self.0), files.to_vec(), splits.to_vec())))
    }
}

#[cfg(test)]
mod tests;
