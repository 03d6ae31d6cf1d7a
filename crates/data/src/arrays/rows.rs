//! Sparse and dense rows.

use crate::key_names::KeyNames;
use std::ops::Range;
use std::sync::Arc;

use super::{Arrays, CsrArrays, DenseArrays, RecordAttributes};
use crate::error::BadLine;
use crate::format::{FormatContext, OpenFormat, RecordReader, RowGroupFormat};
use crate::input::Input;
use crate::lines::ENTRY_LIMIT;
use crate::options::InputPurpose;
use crate::schema::{Column, ColumnKind, Schema};
use crate::sink::Sink;
use crate::split::{RowGroup, Split, SplitRange};
use crate::{BatchBuilder, Error};

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
    let has_labels = |arrays: &Arrays| match arrays {
        Arrays::Csr(rows) => !rows.attributes.labels.is_empty(),
        Arrays::Dense(rows) => !rows.attributes.labels.is_empty(),
        #[cfg(feature = "parquet")]
        Arrays::Arrow(_) => false,
    };
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
    let schema = schema(context, &arrays)?;
    Ok(OpenFormat::RowGroups(Box::new(Rows { arrays: arrays.into(), schema, has_labels: needs_labels })))
}

/// The first names.
fn list<T: AsRef<str>>(names: &[T]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    shown.join(", ") + if names.len() > SHOWN { ", ..." } else { "" }
}

fn schema(context: &FormatContext<'_>, arrays: &[Arrays]) -> Result<Schema, Error> {
    let mut schema: Option<Schema> = context.trained_schema.cloned();
    for (file, arrays) in context.files.iter().zip(arrays) {
        let Arrays::Dense(rows) = arrays else { continue };
        // In dense text the label is the first column.
        let names: Vec<String> = match rows.names.as_slice() {
            [] => (1..=rows.columns).map(|column| column.to_string()).collect(),
            names => names.to_vec(),
        };
        if let Some(known) = &schema {
            let expected: Vec<&String> = known.columns.iter().map(|column| &column.name).collect();
            if expected.len() != names.len()
                || (known.named && !expected.iter().zip(&names).all(|(a, b)| *a == b))
            {
                let difference = format!(
                    "it has {} columns ({}), and {} are expected ({})",
                    names.len(),
                    list(&names),
                    expected.len(),
                    list(&expected)
                );
                return Err(Error::SchemaDiffers { file: file.name().to_owned(), difference });
            }
            continue;
        }
        let is_named = !rows.names.is_empty();
        let label = if is_named { "label" } else { "0" }.to_owned();
        schema = Some(Schema {
            columns: names
                .iter()
                .map(|name| Column { name: name.clone(), kind: ColumnKind::Numeric })
                .collect(),
            order: std::iter::once(label.clone()).chain(names).collect(),
            label: Some(label),
            named: is_named,
            keep_zeros: context.options.keep_zeros,
            fields: context.options.uses_fields,
            ..Schema::default()
        });
    }
    Ok(schema.unwrap_or_default())
}

/// Opened rows.
struct Rows {
    arrays: Arc<[Arrays]>,
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
            names: files.iter().map(|file| file.name().to_owned()).collect(),
            schema: self.schema.clone(),
            has_labels: self.has_labels,
            splits: Vec::from(splits).into_iter(),
            current: (0, 0..0),
        }))
    }
}

struct RowReader {
    arrays: Arc<[Arrays]>,
    names: Vec<String>,
    schema: Schema,
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
            let (pushed, attributes) = match &self.arrays[file] {
                Arrays::Csr(rows) => (push_sparse(rows, r, sink.builder()), &rows.attributes),
                Arrays::Dense(rows) => (push_dense(rows, r, &self.schema, sink.builder()), &rows.attributes),
                #[cfg(feature = "parquet")]
                Arrays::Arrow(_) => panic!("tables have a reader of their own"),
            };
            let label = attributes.labels.get(r).filter(|_| self.has_labels).map(|&label| f64::from(label));
            let weight = attributes.weights.get(r).copied().unwrap_or(1.0);
            if let Some(&time) = attributes.times.get(r) {
                sink.builder().set_time(time);
            }
            let ended = match pushed {
                Ok(()) => sink
                    .end_record(label, weight, attributes.groups.get(r).copied())
                    .map_err(|expected| (0, expected, label.unwrap_or_default().to_string())),
                Err(fault) => {
                    sink.discard_record();
                    Err(fault)
                }
            };
            if let Err((column, expected, found)) = ended {
                let (file, line) = (self.names[file].clone(), r as u64 + 1);
                sink.report_bad_line(BadLine { file, line, column: column as u64 + 1, expected, found })?;
            }
        }
        Ok(true)
    }

    fn take_dictionary(&mut self) -> KeyNames {
        KeyNames::default()
    }
}

/// Position in the record, what was expected, what was found.
type Fault = (usize, String, String);

fn check_value(at: usize, value: f32) -> Result<(), Fault> {
    if value.is_finite() { Ok(()) } else { Err((at, "a finite value".to_owned(), value.to_string())) }
}

fn push_sparse(rows: &CsrArrays, r: usize, builder: &mut BatchBuilder) -> Result<(), Fault> {
    for entry in rows.offsets[r] as usize..rows.offsets[r + 1] as usize {
        let value = rows.values.get(entry).copied().unwrap_or(1.0);
        check_value(entry - rows.offsets[r] as usize, value)?;
        match rows.fields.get(entry) {
            Some(&field) => builder.push_with_field(field, rows.features[entry], value),
            None if value == 0.0 => {}
            None => builder.push(rows.features[entry], value),
        }
    }
    match builder.duplicate_key() {
        Some(key) => Err((0, "each feature once in a record".to_owned(), format!("feature {key} twice"))),
        None => Ok(()),
    }
}

fn push_dense(
    rows: &DenseArrays,
    r: usize,
    schema: &Schema,
    builder: &mut BatchBuilder,
) -> Result<(), Fault> {
    for (column, &value) in rows.values[r * rows.columns..][..rows.columns].iter().enumerate() {
        if value.is_nan() || (value == 0.0 && !schema.keep_zeros) {
            continue;
        }
        check_value(column, value)?;
        builder.push(column as u64, value);
        if schema.fields {
            builder.mark_field(column as u32);
        }
    }
    Ok(())
}
