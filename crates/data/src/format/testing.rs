//! Helpers of the tests of all formats.

use std::io::Write as _;

use crate::arrays::{Arrays, MemoryInputs};
use crate::options::FormatOptions;
use crate::source::read_bytes;
use crate::{Batch, Error, FormatTable, Reader, Schema, Source, SourceConfig};

/// A record as a test writes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) label: f64,
    pub(crate) weight: f32,
    pub(crate) group: Option<u64>,
    pub(crate) time: Option<f64>,
    pub(crate) entries: Vec<(u64, f32)>,
    pub(crate) fields: Vec<u32>,
}

impl Row {
    pub(crate) fn new(label: Option<f64>, entries: &[(u64, f32)]) -> Self {
        let label = label.unwrap_or(0.0);
        Self { label, weight: 1.0, group: None, time: None, entries: entries.to_vec(), fields: Vec::new() }
    }
}

pub(crate) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

pub(crate) fn options() -> FormatOptions {
    FormatOptions::default()
}

/// Returns the records of a batch.
pub(crate) fn rows_of(batch: &Batch) -> Vec<Row> {
    (0..batch.record_count())
        .map(|r| Row {
            label: batch.labels[r],
            weight: batch.weight(r),
            group: batch.groups.get(r).copied(),
            time: batch.times.get(r).copied(),
            entries: batch
                .entries(r)
                .map(|e| {
                    (batch.columns[batch.indices[e] as usize], batch.values.get(e).copied().unwrap_or(1.0))
                })
                .collect(),
            fields: if batch.fields.is_empty() {
                Vec::new()
            } else {
                batch.fields[batch.entries(r)].to_vec()
            },
        })
        .collect()
}

pub(crate) fn rows(format: &str, options: &FormatOptions, text: &str) -> Result<Vec<Row>, Error> {
    Ok(read_bytes(format, options, text.as_bytes())?.iter().flat_map(rows_of).collect())
}

/// Opens arrays in memory, the input `memory:NAME`; `like` is the schema of a model.
pub(crate) fn open_arrays(
    name: &str,
    arrays: Arrays,
    options: &FormatOptions,
    trained_schema: Option<&Schema>,
) -> Result<Source, Error> {
    let mut memory = MemoryInputs::default();
    let inputs = vec![memory.add(name, arrays)?];
    let config = SourceConfig { inputs, options: options.clone(), ..SourceConfig::default() };
    let formats = FormatTable::builtin().with_memory(memory);
    match trained_schema {
        Some(schema) => Source::open_with_schema(&config, schema, &formats),
        None => Source::open(&config, &formats),
    }
}

/// Reads a source to its end as one task, and returns the reader for its summary and its names.
pub(crate) fn read_whole(source: &Source) -> Reader {
    let mut reader = source.reader(source.splits(1).remove(0)).expect("a reader");
    while reader.next_batch(1 << 10, &mut Batch::default()).expect("good records") {}
    reader
}

/// Compresses bytes with gzip.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// Checks that each line alone gives its record.
pub(crate) fn check(format: &str, options: &FormatOptions, table: &[(&str, Row)]) {
    for (line, expected) in table {
        let got = rows(format, options, line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        assert_eq!(got, std::slice::from_ref(expected), "{line:?}");
    }
}

/// Checks that each line alone is an error at that column (1-based) whose text contains those words.
pub(crate) fn bad(format: &str, options: &FormatOptions, table: &[(&str, u64, &str)]) {
    for (line, column, words) in table {
        match rows(format, options, line) {
            Err(Error::BadLine(bad)) => {
                assert_eq!(bad.column, *column, "{line:?}: {bad}");
                assert!(bad.to_string().contains(words), "{line:?}: {bad}");
            }
            other => panic!("{line:?}: {other:?}"),
        }
    }
}
