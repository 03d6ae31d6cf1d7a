//! Sparse and dense rows.

use std::ops::Range;
use std::sync::Arc;

use super::{Arrays, CsrArrays, DenseArrays, Numbers, RecordAttributes};
use crate::columns::{
    Attributes, Cell, ColumnDescription, ColumnPlan, LabelScan, Number, NumberForm, NumberSample,
    RecordBuilder, Role, Row, SAMPLE_ROWS, TableDescription, ValueKind, plan,
};
use crate::format::{FormatContext, OpenFormat, RecordReader, RowGroupFormat};
use crate::input::Input;
use crate::key_names::KeyNames;
use crate::lines::ENTRY_LIMIT;
use crate::number::parse_f64;
use crate::options::{FormatOptions, InputPurpose};
use crate::schema::Schema;
use crate::sink::Sink;
use crate::split::{RowGroup, Split, SplitRange};
use crate::{BatchBuilder, Error, LineError};

/// Records that one task reads without the others.
const GROUP_RECORDS: usize = 1024;
/// Features are below this number, as in files.
const FEATURE_BOUND: u64 = 1 << 63;

fn check_length(what: &str, actual: usize, expected: usize, unit: &str) -> Result<(), String> {
    if actual == expected || actual == 0 {
        return Ok(());
    }
    Err(format!("{what} has {actual} numbers, and there are {expected} {unit}: give one for each, or none"))
}

fn check_attributes(attributes: &RecordAttributes, record_count: usize) -> Result<(), String> {
    check_length("labels", attributes.labels.len(), record_count, "records")?;
    check_length("weights", attributes.weights.len(), record_count, "records")?;
    check_length("groups", attributes.groups.len(), record_count, "records")?;
    check_length("times", attributes.times.len(), record_count, "records")?;
    let class_count = attributes.label_names.len();
    let is_class = |label: f64| label >= 0.0 && label < class_count as f64 && label.fract() == 0.0;
    let labels = if class_count == 0 { &[][..] } else { &*attributes.labels };
    if let Some(r) = labels.iter().position(|label| !is_class(*label)) {
        return Err(format!("the label of record {r} is {}; there are {class_count} names", labels[r]));
    }
    if let Some(r) = attributes.times.iter().position(|time| !time.is_finite()) {
        return Err(format!("the time of record {r} is {}; times are finite", attributes.times[r]));
    }
    match attributes.weights.iter().position(|weight| !(weight.is_finite() && *weight >= 0.0)) {
        Some(r) => Err(format!(
            "the weight of record {r} is {}; weights are finite and at least 0",
            attributes.weights[r]
        )),
        None => Ok(()),
    }
}

pub(super) fn check_csr(rows: &CsrArrays) -> Result<(), String> {
    let Some((&last, _)) = rows.offsets.split_last() else {
        return Err(
            "offsets is empty: for n records it has n + 1 numbers, the first of which is 0".to_owned()
        );
    };
    if rows.offsets[0] != 0 {
        return Err(format!("offsets begins with {}, not with 0", rows.offsets[0]));
    }
    if let Some(r) = rows.offsets.windows(2).position(|pair| pair[0] > pair[1]) {
        return Err(format!(
            "offsets falls from {} to {} at record {r}",
            rows.offsets[r],
            rows.offsets[r + 1]
        ));
    }
    let entry_count = rows.features.len();
    if last != entry_count as u64 {
        return Err(format!("offsets ends with {last}, and features has {entry_count} numbers"));
    }
    check_length("values", rows.values.len(), entry_count, "entries")?;
    check_length("fields", rows.fields.len(), entry_count, "entries")?;
    if let Some(entry) = rows.features.iter().position(|feature| *feature >= FEATURE_BOUND) {
        return Err(format!("feature {} of entry {entry} is not below 2^63", rows.features[entry]));
    }
    check_attributes(&rows.attributes, rows.offsets.len() - 1)
}

pub(super) fn check_dense(rows: &DenseArrays) -> Result<(), String> {
    if rows.columns == 0 || !rows.values.len().is_multiple_of(rows.columns) {
        return Err(format!("{} values are no rows of {} columns", rows.values.len(), rows.columns));
    }
    if !rows.names.is_empty() && rows.names.len() != rows.columns {
        return Err(format!("there are {} names for {} columns", rows.names.len(), rows.columns));
    }
    check_attributes(&rows.attributes, rows.values.len() / rows.columns)
}

/// Opens sparse or dense rows.
pub(super) fn open(context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    let options = context.options;
    let of_columns = [
        ("label", options.label.is_some()),
        ("weight", options.weight.is_some()),
        ("group", options.group.is_some()),
        ("keep_columns", !options.keep_columns.is_empty()),
        ("skip_columns", !options.skip_columns.is_empty() && context.trained_schema.is_none()),
        ("time", options.time.is_some()),
        ("text_columns", !options.text_columns.is_empty()),
        ("token_columns", !options.token_columns.is_empty()),
        ("interactions", !options.interactions.is_empty()),
    ];
    let is_given = |(_, given): &&(_, bool)| *given && context.trained_schema.is_none();
    if let Some((option, _)) = of_columns.iter().find(is_given) {
        let reason = "rows in memory have no such columns: give labels, weights, groups and times as arrays"
            .to_owned();
        return Err(Error::BadOption { option, reason });
    }
    let arrays: Vec<Arrays> = context.files.iter().filter_map(|file| file.arrays().cloned()).collect();
    let has_labels = |arrays: &Arrays| attributes(arrays).is_some_and(|own| !own.labels.is_empty());
    // Predictions need no labels.
    let is_optional = options.purpose == InputPurpose::Prediction;
    let needs_labels =
        options.has_label && options.uses_labels && (!is_optional || arrays.iter().all(has_labels));
    if let Some(file) =
        context.files.iter().zip(&arrays).find(|(_, arrays)| needs_labels && !has_labels(arrays))
    {
        let what = "it has no labels: give one for each record".to_owned();
        return Err(Error::BadArrays { name: file.0.name().to_owned(), what });
    }
    let mut plan: Option<ColumnPlan> = None;
    for (file, arrays) in context.files.iter().zip(&arrays) {
        let trained = context.trained_schema.or(plan.as_ref().map(|first| &first.schema));
        let own = plan_of(file.name(), arrays, options, trained)?;
        plan.get_or_insert(own);
    }
    let plan = plan.expect("there is an input");
    let mut schema = context.trained_schema.unwrap_or(&plan.schema).clone();
    if context.trained_schema.is_none() && needs_labels {
        schema.label_names = label_names(context, &arrays)?;
    }
    let classes = arrays.iter().map(|arrays| classes(arrays, &schema)).collect();
    Ok(OpenFormat::RowGroups(Box::new(Rows {
        arrays: arrays.into(),
        classes,
        plan: Arc::new(plan),
        schema,
        has_labels: needs_labels,
    })))
}

/// What records have besides their features; none of tables, where these are columns.
#[cfg_attr(not(feature = "parquet"), expect(clippy::unnecessary_wraps, reason = "there are no tables"))]
fn attributes(arrays: &Arrays) -> Option<&RecordAttributes> {
    match arrays {
        Arrays::Csr(rows) => Some(&rows.attributes),
        Arrays::Dense(rows) => Some(&rows.attributes),
        #[cfg(feature = "parquet")]
        Arrays::Arrow(_) => None,
    }
}

/// The sorted names of the labels of all arrays; empty if labels are numbers.
fn label_names(context: &FormatContext<'_>, arrays: &[Arrays]) -> Result<Vec<String>, Error> {
    let mut scan = LabelScan::new("labels", context.options, None)?;
    for (file, arrays) in context.files.iter().zip(arrays) {
        for name in attributes(arrays).iter().flat_map(|own| &own.label_names) {
            scan.add(file.name(), name.as_bytes())?;
        }
    }
    scan.finish()
}

/// The label that each of the arrays' own label names means: a class of the model, or the number that the name is.
fn classes(arrays: &Arrays, schema: &Schema) -> Vec<Option<f64>> {
    let class = |name: &String| match &schema.label_names[..] {
        [] => parse_f64(name.as_bytes()),
        names => names.binary_search(name).ok().map(|class| class as f64),
    };
    attributes(arrays).iter().flat_map(|own| &own.label_names).map(class).collect()
}

/// The first names.
fn list(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    names[..names.len().min(SHOWN)].join(", ") + if names.len() > SHOWN { ", ..." } else { "" }
}

/// Plans the columns of dense rows, and the one list of entries of sparse rows.
fn plan_of(
    file: &str,
    arrays: &Arrays,
    options: &FormatOptions,
    trained: Option<&Schema>,
) -> Result<ColumnPlan, Error> {
    // Labels and all else are beside the columns, which are features.
    let options = FormatOptions {
        has_label: false,
        uses_labels: false,
        keep_zeros: options.keep_zeros,
        uses_fields: options.uses_fields,
        key_limit: options.key_limit,
        interactions: options.interactions.clone(),
        subtracts_origins: options.subtracts_origins,
        ..FormatOptions::default()
    };
    let Arrays::Dense(rows) = arrays else {
        let entries = ColumnDescription::new("features".to_owned(), ValueKind::PairList);
        let options = FormatOptions { interactions: Vec::new(), ..options };
        let mut plan = plan(&TableDescription::new(file, vec![entries], &options)?, &options, None)?;
        plan.schema = Schema::default();
        return Ok(plan);
    };
    let is_named = !rows.names.is_empty();
    // In dense text the label is the first column.
    let own = || (1..=rows.columns).map(|at| at.to_string()).collect::<Vec<_>>();
    let names = match trained {
        Some(trained) if !(is_named && trained.named) && trained.columns.len() != rows.columns => {
            let expected: Vec<&str> = trained.columns.iter().map(|column| column.name.as_str()).collect();
            let difference = format!(
                "it has {} columns, and {} are expected ({})",
                rows.columns,
                expected.len(),
                list(&expected)
            );
            return Err(Error::SchemaDiffers { file: file.to_owned(), difference });
        }
        // Columns that are numbered here or were in training are those of training in their order.
        Some(trained) if !(is_named && trained.named) => {
            trained.columns.iter().map(|column| column.name.clone()).collect()
        }
        _ if is_named => rows.names.clone(),
        _ => own(),
    };
    let column = |(at, name): (usize, String)| ColumnDescription {
        origin: origin(rows, at),
        ..ColumnDescription::new(name, ValueKind::Number)
    };
    let columns = names.into_iter().enumerate().map(column).collect();
    let table = TableDescription::new(file, columns, &options)?;
    let mut plan = plan(&table, &options, trained)?;
    if let Some(text) = plan.columns.iter().find(|column| !matches!(column.role, Role::Numeric(_))) {
        let difference =
            format!("column '{}' had names in training, and rows in memory have only numbers", text.name);
        return Err(Error::SchemaDiffers { file: file.to_owned(), difference });
    }
    let label = if is_named { "label" } else { "0" }.to_owned();
    plan.schema.order.insert(0, label.clone());
    plan.schema.named = is_named;
    plan.schema.label = Some(label);
    Ok(plan)
}

/// The origin of a column, as its first numbers show it. Those of single precision have lost what an origin would keep.
fn origin(rows: &DenseArrays, column: usize) -> f64 {
    let Numbers::F64(values) = &rows.values else { return 0.0 };
    let column = values.iter().skip(column).step_by(rows.columns);
    NumberSample::of(column.take(SAMPLE_ROWS).copied()).origin()
}

/// Opened rows.
struct Rows {
    arrays: Arc<[Arrays]>,
    /// What the label names of each of the arrays mean.
    classes: Arc<[Vec<Option<f64>>]>,
    plan: Arc<ColumnPlan>,
    schema: Schema,
    has_labels: bool,
}

impl RowGroupFormat for Rows {
    fn schema(&self) -> Schema {
        self.schema.clone()
    }

    fn row_groups(&self, file: usize) -> Vec<RowGroup> {
        let (count, bytes) = (self.arrays[file].record_count(), self.arrays[file].size_bytes());
        let group = |start: usize| {
            let records = GROUP_RECORDS.min(count - start) as u64;
            RowGroup { size_bytes: (bytes * records).div_ceil(count as u64).max(1), record_count: records }
        };
        (0..count).step_by(GROUP_RECORDS).map(group).collect()
    }

    fn reader(&self, files: &[Input], splits: &[Split]) -> Result<Box<dyn RecordReader>, Error> {
        Ok(Box::new(RowReader {
            arrays: Arc::clone(&self.arrays),
            classes: Arc::clone(&self.classes),
            names: files.iter().map(|file| file.name().to_owned()).collect(),
            records: RecordBuilder::new(&self.plan, &self.schema),
            plan: Arc::clone(&self.plan),
            has_labels: self.has_labels,
            splits: Vec::from(splits).into_iter(),
            current: (0, 0..0),
        }))
    }
}

struct RowReader {
    arrays: Arc<[Arrays]>,
    classes: Arc<[Vec<Option<f64>>]>,
    names: Vec<String>,
    plan: Arc<ColumnPlan>,
    records: RecordBuilder,
    has_labels: bool,
    splits: std::vec::IntoIter<Split>,
    /// The input and its records that are not read yet.
    current: (usize, Range<usize>),
}

impl RecordReader for RowReader {
    fn read(&mut self, record_limit: usize, sink: &mut Sink) -> Result<bool, Error> {
        while sink.record_count() < record_limit && sink.entry_count() < ENTRY_LIMIT {
            let Some(r) = self.current.1.next() else {
                let Some(split) = self.splits.next() else { return Ok(false) };
                let SplitRange::Records { row_group, records } = split.range else {
                    panic!("splits of rows are records, not {:?}", split.range);
                };
                let start = row_group * GROUP_RECORDS;
                self.current = (split.file, start + records.start as usize..start + records.end as usize);
                continue;
            };
            let file = self.current.0;
            let (cells, attributes) = match &self.arrays[file] {
                Arrays::Csr(rows) => (Cells::Entries(rows, r), &rows.attributes),
                Arrays::Dense(rows) => {
                    let range = r * rows.columns..(r + 1) * rows.columns;
                    let cells = match &rows.values {
                        Numbers::F32(values) => Cells::F32(&values[range]),
                        Numbers::F64(values) => Cells::F64(&values[range]),
                    };
                    (cells, &rows.attributes)
                }
                #[cfg(feature = "parquet")]
                Arrays::Arrow(_) => panic!("tables have a reader of their own"),
            };
            let mut row = MemoryRow { cells, at: 0 };
            let record = self.records.push(&self.plan, &mut row, sink.builder());
            let record = record.and_then(|_| {
                Ok(Attributes {
                    label: self.label(attributes, file, r)?,
                    weight: attributes.weights.get(r).copied().unwrap_or(1.0),
                    group: attributes.groups.get(r).copied(),
                })
            });
            if let Some(&time) = attributes.times.get(r) {
                sink.builder().set_time(time);
            }
            if let Err(error) = sink.end_row(record, 0) {
                sink.report_bad_line(error.at_line(&self.names[file], r as u64 + 1))?;
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

impl RowReader {
    fn label(&self, attributes: &RecordAttributes, file: usize, r: usize) -> Result<Option<f64>, LineError> {
        let Some(&label) = attributes.labels.get(r).filter(|_| self.has_labels) else { return Ok(None) };
        let names = &attributes.label_names;
        if names.is_empty() {
            return Ok(Some(label));
        }
        let expected = || LineError::with_actual(0, "a label of training", names[label as usize].clone());
        self.classes[file][label as usize].map(Some).ok_or_else(expected)
    }
}

/// The cells of a row.
#[derive(Clone, Copy)]
enum Cells<'a> {
    /// One cell, with all entries of a sparse row.
    Entries(&'a CsrArrays, usize),
    F32(&'a [f32]),
    F64(&'a [f64]),
}

struct MemoryRow<'a> {
    cells: Cells<'a>,
    /// The next column.
    at: usize,
}

impl<'a> Row for MemoryRow<'a> {
    type Cell<'c>
        = MemoryCell<'a>
    where
        Self: 'c;

    #[inline]
    fn next_cell(&mut self) -> Result<Option<(usize, MemoryCell<'a>)>, LineError> {
        let at = self.at;
        self.at += 1;
        let value = match self.cells {
            Cells::Entries(..) => (at == 0).then_some(f64::NAN),
            Cells::F32(values) => values.get(at).map(|value| f64::from(*value)),
            Cells::F64(values) => values.get(at).copied(),
        };
        Ok(value.map(|value| (at, MemoryCell { at, value, cells: self.cells })))
    }
}

/// A number of a row, or all of its entries.
struct MemoryCell<'a> {
    at: usize,
    /// NaN for a missing value.
    value: f64,
    cells: Cells<'a>,
}

impl Cell for MemoryCell<'_> {
    fn at(&self) -> usize {
        self.at
    }

    #[inline]
    fn number(&self, _form: NumberForm) -> Number {
        let value = self.value as f32;
        if value.is_finite() {
            Number::Finite(value)
        } else if value.is_nan() {
            Number::Missing
        } else {
            Number::TooLarge
        }
    }

    fn double(&self, _form: NumberForm) -> Option<f64> {
        Some(self.value).filter(|value| value.is_finite())
    }

    fn time(&self) -> Option<f64> {
        self.double(NumberForm::Plain)
    }

    fn text(&self) -> &[u8] {
        b""
    }

    fn is_missing(&self) -> bool {
        self.value.is_nan()
    }

    fn push_entries(&self, keep_zeros: bool, out: &mut BatchBuilder) -> Result<(), LineError> {
        match self.cells {
            Cells::Entries(rows, r) => push_sparse(rows, r, keep_zeros, out),
            Cells::F32(_) | Cells::F64(_) => Ok(()),
        }
    }

    fn describe(&self) -> String {
        self.value.to_string()
    }
}

fn push_sparse(
    rows: &CsrArrays,
    r: usize,
    keep_zeros: bool,
    builder: &mut BatchBuilder,
) -> Result<(), LineError> {
    let range = rows.offsets[r] as usize..rows.offsets[r + 1] as usize;
    let (values, fields) = (&*rows.values, &*rows.fields);
    for (at, &feature) in rows.features[range.clone()].iter().enumerate() {
        let entry = range.start + at;
        let value = values.get(entry).copied().unwrap_or(1.0);
        if !value.is_finite() {
            return Err(LineError::with_actual(at, "a finite value", value.to_string()));
        }
        match fields.get(entry) {
            Some(&field) => builder.push_with_field(field, feature, value),
            None if value == 0.0 && !keep_zeros => {}
            None => builder.push(feature, value),
        }
    }
    match builder.duplicate_key() {
        Some(key) => {
            Err(LineError::with_actual(0, "each feature once in a record", format!("feature {key} twice")))
        }
        None => Ok(()),
    }
}
