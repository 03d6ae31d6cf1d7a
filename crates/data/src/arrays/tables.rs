//! Arrow record batches.

use crate::key_names::KeyNames;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;

use super::Arrays;
use crate::arrow::{ArrowTable, LabelScan, Layout, RecordColumns, check_guess, layout};
use crate::error::BadLine;
use crate::format::{FormatContext, OpenFormat, RecordReader, RowGroupFormat};
use crate::input::Input;
use crate::lines::ENTRY_LIMIT;
use crate::schema::{PassthroughColumn, Schema};
use crate::sink::Sink;
use crate::split::{RowGroup, Split, SplitRange};
use crate::{Error, LabelRule};

/// A record batch is cut after this many records, so that several tasks can share it.
const GROUP_RECORDS: usize = 4096;

pub(super) fn check(batches: &[RecordBatch]) -> Result<(), String> {
    let Some(first) = batches.first() else { return Err("there is no record batch".to_owned()) };
    let fields = |batch: &RecordBatch| {
        let field = |field: &Arc<arrow_schema::Field>| (field.name().clone(), field.data_type().clone());
        batch.schema().fields().iter().map(field).collect::<Vec<_>>()
    };
    let expected = fields(first);
    match batches.iter().position(|batch| fields(batch) != expected) {
        Some(i) => Err(format!(
            "record batch {i} has other columns than the first one: {:?}, not {expected:?}",
            fields(&batches[i])
        )),
        None => Ok(()),
    }
}

struct Table {
    name: String,
    batches: Arc<[RecordBatch]>,
    layout: Layout,
}

/// Opened tables.
struct Tables {
    tables: Arc<[Table]>,
    schema: Schema,
}

pub(super) fn open(context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    let mut tables = Vec::new();
    let mut schema: Option<Schema> = context.trained_schema.cloned();
    for file in context.files {
        let Some(Arrays::Arrow(batches)) = file.arrays() else { continue };
        // A column may have nulls in one batch only.
        let columns = batches[0].schema();
        let table = ArrowTable { name: file.name(), schema: &columns, row_numbers: &[] };
        let (layout, own) = layout(&table, context.options, schema.as_ref())?;
        schema.get_or_insert(own);
        tables.push(Table { name: file.name().to_owned(), batches: Arc::clone(batches), layout });
    }
    let mut schema = schema.unwrap_or_default();
    if context.trained_schema.is_none() {
        schema.label_names = label_names(context, &tables, schema.label.as_deref())?;
    }
    Ok(OpenFormat::RowGroups(Box::new(Tables { tables: tables.into(), schema })))
}

/// The sorted names of a label column of strings; empty if labels are numbers. A guessed label whose values are not
/// those of classes is an error.
fn label_names(
    context: &FormatContext<'_>,
    tables: &[Table],
    label: Option<&str>,
) -> Result<Vec<String>, Error> {
    let (Some(label), Some(first)) = (label, tables.first()) else { return Ok(Vec::new()) };
    let options = context.options;
    if let Some(column) = first.layout.label
        && options.label.is_none()
        && options.label_rule != LabelRule::Real
    {
        check_guess(&first.name, label, first.batches[0].column(column))?;
    }
    let mut scan = LabelScan::default();
    for table in tables {
        let Some(column) = table.layout.label.filter(|_| table.layout.label_is_text) else { continue };
        table.batches.iter().for_each(|batch| scan.add(&table.name, batch.column(column)));
    }
    scan.finish(label, options.label_rule, options.text_columns.iter().any(|name| name == label))
}

impl RowGroupFormat for Tables {
    fn schema(&self) -> Schema {
        self.schema.clone()
    }

    fn passthrough_columns(&self) -> Vec<PassthroughColumn> {
        self.tables.first().map(|table| table.layout.passthrough_columns.clone()).unwrap_or_default()
    }

    fn notices(&self) -> Vec<String> {
        self.tables.first().map(|table| table.layout.notices.clone()).unwrap_or_default()
    }

    fn row_groups(&self, file: usize) -> Vec<RowGroup> {
        let group = |(batch, records): (&RecordBatch, Range<usize>)| {
            let (bytes, all) = (batch.get_array_memory_size(), batch.num_rows());
            let count = records.len();
            RowGroup { size_bytes: (bytes * count).div_ceil(all) as u64, record_count: count as u64 }
        };
        pieces(&self.tables[file].batches).map(group).collect()
    }

    fn reader(&self, _files: &[Input], splits: &[Split]) -> Result<Box<dyn RecordReader>, Error> {
        Ok(Box::new(TableReader {
            tables: Arc::clone(&self.tables),
            records: RecordColumns::new(&self.schema),
            splits: Vec::from(splits).into_iter(),
            current: (0, 0, 0..0),
        }))
    }
}

/// The pieces of the batches, each with its records in the batch.
fn pieces(batches: &[RecordBatch]) -> impl Iterator<Item = (&RecordBatch, Range<usize>)> {
    batches.iter().flat_map(|batch| {
        let count = batch.num_rows();
        (0..count).step_by(GROUP_RECORDS).map(move |start| (batch, start..count.min(start + GROUP_RECORDS)))
    })
}

struct TableReader {
    tables: Arc<[Table]>,
    records: RecordColumns,
    splits: std::vec::IntoIter<Split>,
    /// The table, the number of the first record of the piece in the table, and the records of the piece that are not
    /// read yet.
    current: (usize, usize, Range<usize>),
}

impl TableReader {
    /// Loads the piece of the next split; returns false if there is none.
    fn load(&mut self) -> bool {
        let Some(split) = self.splits.next() else { return false };
        let SplitRange::Records { row_group, records } = split.range else {
            panic!("splits of tables are records, not {:?}", split.range);
        };
        let table = &self.tables[split.file];
        let mut before = 0;
        for (i, (batch, piece)) in pieces(&table.batches).enumerate() {
            if i == row_group {
                let columns = table.layout.fields();
                let columns: Vec<_> = columns
                    .into_iter()
                    .map(|column| batch.column(column).slice(piece.start, piece.len()))
                    .collect();
                self.records.load(&table.layout, &columns);
                self.current = (split.file, before, records.start as usize..records.end as usize);
                return true;
            }
            before += piece.len();
        }
        panic!("the splits of a table are made of its pieces");
    }
}

impl RecordReader for TableReader {
    fn read(&mut self, record_limit: usize, sink: &mut Sink) -> Result<bool, Error> {
        while sink.record_count() < record_limit && sink.entry_count() < ENTRY_LIMIT {
            let Some(r) = self.current.2.next() else {
                if self.load() {
                    continue;
                }
                self.records.notices().iter().for_each(|notice| sink.add_notice(notice));
                return Ok(false);
            };
            let pushed = self.records.push(r, sink);
            let (file, line) = (&self.tables[self.current.0].name, (self.current.1 + r) as u64 + 1);
            let feature = self.records.take_rounded();
            if let Err((column, expected, found)) = pushed {
                let file = file.clone();
                sink.report_bad_line(BadLine { file, line, column: column as u64 + 1, expected, found })?;
            } else if feature.is_some() || sink.rounded_label().is_some() {
                let label = self.records.label_column().zip(sink.rounded_label());
                let text = |(column, value): (usize, f64)| {
                    format!("{value} at {file}:{line}:{} becomes {}", column + 1, value as f32)
                };
                sink.note_rounded(feature.map(text), label.map(text));
            }
        }
        Ok(true)
    }

    fn take_dictionary(&mut self) -> KeyNames {
        self.records.take_dictionary()
    }
}
