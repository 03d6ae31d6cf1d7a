//! Record batches in memory, in files and in streams, read as records.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;

use super::column::{TextColumn, numbers};
use super::{RecordColumns, describe};
use crate::columns::{
    ColumnPlan, LabelScan, NumberSample, Role, SAMPLE_ROWS, TableDescription, TypeCounts, ValueKind,
    is_label_name, plan, refuse_guess,
};
use crate::format::{FormatContext, OpenFormat, RecordReader, RowGroupFormat};
use crate::input::Input;
use crate::key_names::KeyNames;
use crate::lines::ENTRY_LIMIT;
use crate::schema::{PassthroughColumn, PassthroughKind, Schema};
use crate::sink::Sink;
use crate::split::{RowGroup, Split, SplitRange};
use crate::{Error, LabelRule};

/// A record batch is cut after this many records, so that several tasks can share it.
const GROUP_RECORDS: usize = 4096;

/// The record batches of one input.
pub(crate) enum Batches {
    Indexed(Arc<dyn IndexedBatches>),
    Sequence(Arc<dyn BatchSequence>),
}

/// Record batches that can be read in any order.
pub(crate) trait IndexedBatches: Send + Sync {
    /// The sizes of all batches.
    fn sizes(&self) -> Vec<BatchSize>;

    fn read(&self, index: usize) -> Result<RecordBatch, Error>;
}

/// Record batches that are read from the first to the last.
pub(crate) trait BatchSequence: Send + Sync {
    /// The first batch, if it is known without taking the input.
    fn first(&self) -> Option<RecordBatch>;

    /// Whether [`open`](Self::open) may be called several times.
    fn is_rereadable(&self) -> bool;

    fn open(&self) -> Result<BatchIterator, Error>;
}

/// Batches, each with its size in bytes.
pub(crate) type BatchIterator = Box<dyn Iterator<Item = Result<(RecordBatch, u64), Error>> + Send>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchSize {
    pub(crate) records: usize,
    pub(crate) bytes: u64,
}

/// An input before its columns have roles.
pub(crate) struct DatasetInput {
    pub(crate) name: String,
    pub(crate) schema: SchemaRef,
    /// Columns that number the rows: they are skipped unless a setting names them.
    pub(crate) row_numbers: Vec<String>,
    pub(crate) batches: Batches,
}

struct Table {
    name: String,
    batches: Batches,
    plan: ColumnPlan,
    /// The groups of the batches; none if they are a sequence.
    groups: Vec<RecordGroup>,
}

/// A part of a batch that one task reads.
struct RecordGroup {
    batch: usize,
    /// Its records in the batch.
    records: Range<usize>,
    /// Number of the first record of the batch in the table.
    first_row: u64,
    size_bytes: u64,
}

struct ArrowDataset {
    tables: Arc<[Table]>,
    schema: Schema,
}

/// Gives the columns of all tables their roles.
pub(crate) fn open_dataset(
    context: &FormatContext<'_>,
    tables: Vec<DatasetInput>,
) -> Result<OpenFormat, Error> {
    let mut schema: Option<Schema> = context.trained_schema.cloned();
    let mut opened = Vec::with_capacity(tables.len());
    for table in tables {
        let DatasetInput { name, schema: columns, row_numbers, batches } = table;
        let mut described = describe(&name, &columns, &row_numbers, context.options)?;
        if schema.is_none()
            && let Some(batch) = batches.first()?
        {
            describe_values(&mut described, |at| Some(batch.column(at)));
        }
        let plan = plan(&described, context.options, schema.as_ref())?;
        schema.get_or_insert_with(|| plan.schema.clone());
        let groups = match &batches {
            Batches::Indexed(batches) => groups(&batches.sizes()),
            Batches::Sequence(_) => Vec::new(),
        };
        opened.push(Table { name, batches, plan, groups });
    }
    let mut schema = schema.unwrap_or_default();
    if context.trained_schema.is_none() {
        schema.label_names = label_names(context, &opened, schema.label.as_deref())?;
    }
    Ok(OpenFormat::RowGroups(Box::new(ArrowDataset { tables: opened.into(), schema })))
}

/// Returns the notices of several files, each once.
pub(crate) fn merged_notices<'a>(plans: impl Iterator<Item = &'a ColumnPlan>) -> Vec<String> {
    let mut notices: Vec<String> = Vec::new();
    for notice in plans.flat_map(|plan| &plan.notices) {
        if !notices.contains(notice) {
            notices.push(notice.clone());
        }
    }
    notices
}

/// Returns the passthrough columns of several files. Columns of different kinds become text.
pub(crate) fn merged_passthrough_columns<'a>(
    plans: impl Iterator<Item = &'a ColumnPlan>,
) -> Vec<PassthroughColumn> {
    let mut files = plans.map(|plan| &plan.passthrough);
    let mut merged = files.next().cloned().unwrap_or_default();
    for other in files {
        for (column, other) in merged.iter_mut().zip(other) {
            if column.kind != other.kind {
                column.kind = PassthroughKind::Text;
            }
        }
    }
    merged
}

/// Returns the names of the columns in which pandas stores the index of a table. `description` is the text that pandas
/// adds to the metadata.
pub(crate) fn pandas_index(description: Option<&str>) -> Vec<String> {
    let parsed = description.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    let names = parsed.as_ref().and_then(|value| value["index_columns"].as_array());
    // An index that is a range has no column: pandas stores a description instead of a name.
    names.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

fn groups(sizes: &[BatchSize]) -> Vec<RecordGroup> {
    let mut groups = Vec::new();
    let mut first_row = 0;
    for (batch, size) in sizes.iter().enumerate() {
        for start in (0..size.records).step_by(GROUP_RECORDS) {
            let records = start..size.records.min(start + GROUP_RECORDS);
            let share = u128::from(size.bytes) * records.len() as u128 / size.records as u128;
            groups.push(RecordGroup { batch, records, first_row, size_bytes: share as u64 });
        }
        first_row += size.records as u64;
    }
    groups
}

/// Returns the sorted names of a label column of strings; empty if labels are numbers. A guessed label whose values in
/// the first table with records are not those of classes is an error.
fn label_names(
    context: &FormatContext<'_>,
    tables: &[Table],
    label: Option<&str>,
) -> Result<Vec<String>, Error> {
    let Some(label) = label else { return Ok(Vec::new()) };
    let options = context.options;
    if options.label.is_none() && options.label_rule != LabelRule::Real {
        for table in tables {
            let Some(column) = table.plan.find(Role::Label) else { continue };
            if let Some(batch) = table.batches.first()?.filter(|batch| batch.num_rows() > 0) {
                check_guess(&table.name, label, batch.column(column))?;
                break;
            }
        }
    }
    let mut scan = LabelScan::new(label, options, None)?;
    for table in tables {
        let is_text = table.plan.label_is_text;
        let Some(column) = table.plan.find(Role::Label).filter(|_| is_text) else { continue };
        table.batches.for_each(&mut |batch| add_labels(&mut scan, &table.name, batch.column(column)))?;
    }
    scan.finish()
}

/// Adds a part of a label column of a file to the labels.
pub(crate) fn add_labels(scan: &mut LabelScan<'_>, file: &str, column: &ArrayRef) -> Result<(), Error> {
    let texts = TextColumn::of(column);
    (0..column.len()).filter_map(|r| texts.get(r)).try_for_each(|label| scan.add(file, label))
}

/// Describes the first values of columns, as those of text are described: which strings have a name of its own in nearly
/// every record, and the origins of numbers. `first` returns the first values of a column.
pub(crate) fn describe_values<'a>(
    table: &mut TableDescription<'_>,
    first: impl Fn(usize) -> Option<&'a ArrayRef>,
) {
    for (at, column) in table.columns.iter_mut().enumerate() {
        let Some(array) = first(at) else { continue };
        let array = array.slice(0, array.len().min(SAMPLE_ROWS));
        if column.kind == ValueKind::Number {
            let mut values = Vec::new();
            numbers(&array, &mut values);
            column.origin = NumberSample::of(values).origin();
        } else if column.kind == ValueKind::Text {
            let (texts, mut counts) = (TextColumn::of(&array), TypeCounts::default());
            let texts = (0..array.len()).filter_map(|r| texts.get(r));
            texts.for_each(|text| counts.add(text.trim_ascii()));
            column.is_identifier = counts.is_identifier();
        }
    }
}

/// Fails when the label was guessed and its first values are not those of classes.
pub(crate) fn check_guess(file: &str, column: &str, first: &ArrayRef) -> Result<(), Error> {
    let texts = TextColumn::of(first);
    let values = (0..first.len()).filter_map(|r| texts.get(r)).collect();
    refuse_guess(file, column, is_label_name(column), &values, first.len())
}

impl Batches {
    /// The first batch that has records; of a sequence the first batch, if it is known.
    fn first(&self) -> Result<Option<RecordBatch>, Error> {
        match self {
            Self::Indexed(batches) => {
                let first = batches.sizes().iter().position(|size| size.records > 0);
                first.map(|index| batches.read(index)).transpose()
            }
            Self::Sequence(batches) => Ok(batches.first()),
        }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>) -> Result<(), Error> {
        match self {
            Self::Indexed(batches) => {
                for index in 0..batches.sizes().len() {
                    visit(&batches.read(index)?)?;
                }
            }
            Self::Sequence(batches) if batches.is_rereadable() => {
                for batch in batches.open()? {
                    visit(&batch?.0)?;
                }
            }
            Self::Sequence(_) => {
                let reason =
                    "labels that are strings need an input that can be read twice; write it to a file, \
                              or make the labels numbers"
                        .to_owned();
                return Err(Error::BadOption { option: "label", reason });
            }
        }
        Ok(())
    }
}

impl RowGroupFormat for ArrowDataset {
    fn schema(&self) -> Schema {
        self.schema.clone()
    }

    fn passthrough_columns(&self) -> Vec<PassthroughColumn> {
        merged_passthrough_columns(self.tables.iter().map(|table| &table.plan))
    }

    fn notices(&self) -> Vec<String> {
        merged_notices(self.tables.iter().map(|table| &table.plan))
    }

    fn is_sequence(&self, file: usize) -> bool {
        matches!(self.tables[file].batches, Batches::Sequence(_))
    }

    fn row_groups(&self, file: usize) -> Vec<RowGroup> {
        let of = |group: &RecordGroup| RowGroup {
            size_bytes: group.size_bytes,
            record_count: group.records.len() as u64,
        };
        self.tables[file].groups.iter().map(of).collect()
    }

    fn reader(&self, _files: &[Input], splits: &[Split]) -> Result<Box<dyn RecordReader>, Error> {
        Ok(Box::new(TableReader {
            tables: Arc::clone(&self.tables),
            records: RecordColumns::new(&self.tables[0].plan, &self.schema),
            splits: Vec::from(splits).into(),
            sequence: None,
            loaded: None,
            rows: Rows { table: 0, first_row: 0, unread: 0..0 },
        }))
    }
}

struct TableReader {
    tables: Arc<[Table]>,
    records: RecordColumns,
    splits: VecDeque<Split>,
    /// The sequence that is being read.
    sequence: Option<OpenSequence>,
    /// The batch that was read last: its table, its index and itself. Several groups may be of one batch.
    loaded: Option<(usize, usize, RecordBatch)>,
    rows: Rows,
}

/// The records whose columns are loaded.
struct Rows {
    table: usize,
    /// Number of the first of them in the table.
    first_row: u64,
    /// Those that are not read yet.
    unread: Range<usize>,
}

struct OpenSequence {
    table: usize,
    batches: BatchIterator,
    /// The batch that is being read, and where its next group begins.
    batch: Option<(RecordBatch, usize)>,
    /// Number of the first record of the next group.
    next_row: u64,
}

impl OpenSequence {
    /// Returns the columns of the next group, its number of records, and the bytes that were read.
    fn next(&mut self, plan: &ColumnPlan) -> Result<Option<(Vec<ArrayRef>, usize, u64)>, Error> {
        let mut bytes = 0;
        loop {
            if let Some((batch, start)) = &mut self.batch
                && *start < batch.num_rows()
            {
                let count = (batch.num_rows() - *start).min(GROUP_RECORDS);
                let columns = columns(plan, batch, *start..*start + count);
                *start += count;
                return Ok(Some((columns, count, bytes)));
            }
            let Some(next) = self.batches.next().transpose()? else { return Ok(None) };
            bytes += next.1;
            self.batch = Some((next.0, 0));
        }
    }
}

/// The columns that are read, of these records.
fn columns(plan: &ColumnPlan, batch: &RecordBatch, records: Range<usize>) -> Vec<ArrayRef> {
    let column = |column: usize| batch.column(column).slice(records.start, records.len());
    plan.read_columns().into_iter().map(column).collect()
}

impl TableReader {
    /// Loads the next records; returns false if there are none.
    fn load(&mut self, sink: &mut Sink) -> Result<bool, Error> {
        loop {
            if let Some(sequence) = &mut self.sequence {
                let plan = &self.tables[sequence.table].plan;
                if let Some((columns, count, bytes)) = sequence.next(plan)? {
                    self.records.load(plan, &columns);
                    sink.add_bytes(bytes);
                    self.rows =
                        Rows { table: sequence.table, first_row: sequence.next_row, unread: 0..count };
                    sequence.next_row += count as u64;
                    return Ok(true);
                }
                self.sequence = None;
            }
            let Some(split) = self.splits.pop_front() else { return Ok(false) };
            let batches = &self.tables[split.file].batches;
            match (split.range, batches) {
                (SplitRange::Records { row_group, records }, Batches::Indexed(batches)) => {
                    let batches = Arc::clone(batches);
                    sink.add_bytes(split.size_bytes);
                    self.load_group(split.file, row_group, records, &*batches)?;
                    return Ok(true);
                }
                (SplitRange::Whole, Batches::Sequence(batches)) => {
                    let batches = batches.open()?;
                    self.sequence =
                        Some(OpenSequence { table: split.file, batches, batch: None, next_row: 0 });
                }
                (range, _) => panic!("a table has no split {range:?}"),
            }
        }
    }

    fn load_group(
        &mut self,
        table: usize,
        group: usize,
        records: Range<u64>,
        batches: &dyn IndexedBatches,
    ) -> Result<(), Error> {
        let Table { plan, groups, .. } = &self.tables[table];
        let group = &groups[group];
        let is_loaded = |loaded: &(usize, usize, RecordBatch)| (loaded.0, loaded.1) == (table, group.batch);
        let batch = match self.loaded.take().filter(is_loaded) {
            Some((_, _, batch)) => batch,
            None => batches.read(group.batch)?,
        };
        self.records.load(plan, &columns(plan, &batch, group.records.clone()));
        let first_row = group.first_row + group.records.start as u64;
        self.rows = Rows { table, first_row, unread: records.start as usize..records.end as usize };
        self.loaded = Some((table, group.batch, batch));
        Ok(())
    }
}

impl RecordReader for TableReader {
    fn read(&mut self, record_limit: usize, sink: &mut Sink) -> Result<bool, Error> {
        while sink.record_count() < record_limit && sink.entry_count() < ENTRY_LIMIT {
            let Some(r) = self.rows.unread.next() else {
                if self.load(sink)? {
                    continue;
                }
                self.records.notices().iter().for_each(|notice| sink.add_notice(notice));
                return Ok(false);
            };
            let table = &self.tables[self.rows.table];
            if let Err(error) = self.records.push(&table.plan, r, sink) {
                sink.report_bad_line(error.at_line(&table.name, self.rows.first_row + r as u64 + 1))?;
            }
        }
        Ok(true)
    }

    fn take_dictionary(&mut self) -> KeyNames {
        self.records.take_dictionary()
    }

    fn unmet_interactions(&self) -> Vec<String> {
        self.records.unmet_interactions()
    }
}
