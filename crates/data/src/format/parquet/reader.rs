//! Row groups to records.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use math::hash::{NAMED_KEY_BIT, named_key};
use parquet::column::page::PageReader;
use parquet::column::reader::get_column_reader;
use parquet::errors::ParquetError;
use parquet::file::serialized_reader::SerializedPageReader;

use super::checked::CheckedPages;
use super::column::{AnyColumn, Texts};
use super::fault::{Fault, finite};
use super::guard::guarded;
use super::layout::{Feature, Features};
use super::list_column::ListColumn;
use super::list_features::ListFeatures;
use super::{FilePlan, Shared, bad_file, open_file};
use crate::error::{BadLine, Error};
use crate::format::RecordReader;
use crate::input::Input;
use crate::lines::ENTRY_LIMIT;
use crate::schema::ColumnKind;
use crate::sink::Sink;
use crate::split::{Part, Split};

/// Records whose columns are decoded at a time: enough to forget the cost of a call, few enough for the cache.
const CHUNK_RECORDS: usize = 1024;

/// Entries of a chunk of lists, roughly: where lists are long, fewer records are decoded at a time.
const CHUNK_ENTRIES: usize = 1 << 20;

/// Reads row groups, one after another.
pub(super) struct ParquetReader {
    shared: Arc<Shared>,
    inputs: Vec<Input>,
    splits: std::vec::IntoIter<Split>,
    group: Option<RowGroup>,
    dictionary: BTreeMap<u64, String>,
    named: HashSet<u64>,
}

/// The row group that is being read.
struct RowGroup {
    file: usize,
    /// Number of its first record in the file.
    first_row: u64,
    row_count: usize,
    /// Records decoded so far, the most of a chunk, those of the last, and how many of these are not taken yet.
    decoded: usize,
    chunk_limit: usize,
    chunk_count: usize,
    waiting: usize,
    size_bytes: u64,
    label: Option<Label>,
    weight: Option<Numbers>,
    /// Its name and its values as text.
    group: Option<(String, Strings)>,
    features: FeatureColumns,
}

/// A column and its chunk.
struct Chunked<C> {
    column: AnyColumn,
    /// Number of the column in the file, for messages.
    number: usize,
    chunk: C,
}

type Numbers = Chunked<Vec<f64>>;
type Strings = Chunked<Texts>;

enum Label {
    Number(Numbers),
    Name(Strings),
}

enum FeatureColumns {
    Table(Vec<FeatureColumn>),
    Lists(Box<ListFeatures>),
}

/// A feature column of a table: its key, or its name when each value is a key of its own.
enum FeatureColumn {
    Number(u64, Numbers),
    Text(String, Strings),
}

impl ParquetReader {
    pub(super) fn new(shared: Arc<Shared>, inputs: Vec<Input>, splits: Vec<Split>) -> Self {
        let splits = splits.into_iter();
        Self { shared, inputs, splits, group: None, dictionary: BTreeMap::new(), named: HashSet::new() }
    }

    /// Makes records wait in the current row group, or the next one; false when there is none.
    fn fill(&mut self, sink: &mut Sink) -> Result<bool, Error> {
        loop {
            if let Some(group) = &mut self.group {
                let file = &self.shared.files[group.file];
                if guarded(|| group.fill(sink)).map_err(|reason| damaged(file, &reason))? {
                    return Ok(true);
                }
            }
            let Some(split) = self.splits.next() else {
                self.group = None;
                return Ok(false);
            };
            let Part::Unit(unit) = split.part else {
                panic!("splits of a format of blocks are units, not {:?}", split.part);
            };
            let file = &self.shared.files[split.file];
            self.group = Some(RowGroup::open(&self.inputs[split.file], file, split.file, unit)?);
        }
    }
}

impl RecordReader for ParquetReader {
    fn read(&mut self, record_limit: usize, sink: &mut Sink) -> Result<bool, Error> {
        while sink.record_count() < record_limit && sink.entry_count() < ENTRY_LIMIT {
            if !self.fill(sink)? {
                return Ok(false);
            }
            let shared = Arc::clone(&self.shared);
            let (Some(group), names) = (&mut self.group, &shared.schema.label_names) else {
                return Ok(false);
            };
            let mut dictionary = Dictionary { new: &mut self.dictionary, known: &mut self.named };
            let keep_zeros = shared.schema.keep_zeros;
            while group.waiting > 0 && sink.record_count() < record_limit && sink.entry_count() < ENTRY_LIMIT
            {
                let row = group.first_row + (group.decoded - group.waiting) as u64;
                let result = group.push_record(sink, names, keep_zeros, &mut dictionary);
                group.waiting -= 1;
                if let Err((column, expected, found)) = result {
                    let file = shared.files[group.file].name.clone();
                    sink.bad(BadLine { file, line: row + 1, column: column as u64 + 1, expected, found })?;
                }
            }
        }
        Ok(true)
    }

    fn take_dictionary(&mut self) -> BTreeMap<u64, String> {
        std::mem::take(&mut self.dictionary)
    }
}

fn damaged(file: &FilePlan, reason: &ParquetError) -> Error {
    bad_file(&file.name, format!("{reason}; the file is damaged or was cut short"))
}

/// The pages of a column of a row group.
fn pages(input: &Input, file: &FilePlan, unit: usize, number: usize) -> Result<Box<dyn PageReader>, Error> {
    let source = Arc::new(open_file(input)?);
    let group = file.metadata.row_group(unit);
    let descriptor = file.metadata.file_metadata().schema_descr().column(number);
    guarded(|| SerializedPageReader::new(source, group.column(number), group.num_rows() as usize, None))
        .map(|pages| Box::new(CheckedPages::new(pages, &descriptor)) as _)
        .map_err(|reason| damaged(file, &reason))
}

/// A column of a row group.
fn column(input: &Input, file: &FilePlan, unit: usize, number: usize) -> Result<AnyColumn, Error> {
    let descriptor = file.metadata.file_metadata().schema_descr().column(number);
    let pages = pages(input, file, unit, number)?;
    guarded(|| AnyColumn::new(get_column_reader(Arc::clone(&descriptor), pages), &descriptor))
        .map_err(|reason| damaged(file, &reason))
}

/// Adds the distinct strings of the label column of a file, if it has strings.
pub(super) fn collect_label_names(
    input: &Input,
    file: &FilePlan,
    names: &mut BTreeSet<String>,
) -> Result<(), Error> {
    let schema = file.metadata.file_metadata().schema_descr();
    let Some(label) = file.layout.label.filter(|&label| AnyColumn::is_text(&schema.column(label))) else {
        return Ok(());
    };
    let mut texts = Texts::default();
    for (unit, group) in file.metadata.row_groups().iter().enumerate() {
        let mut column = column(input, file, unit, label)?;
        let row_count = group.num_rows() as usize;
        for start in (0..row_count).step_by(CHUNK_RECORDS) {
            let count = CHUNK_RECORDS.min(row_count - start);
            guarded(|| column.texts(count, &mut texts)).map_err(|reason| damaged(file, &reason))?;
            for text in (0..count).filter_map(|r| texts.get(r)) {
                let name = String::from_utf8_lossy(text);
                if !names.contains(name.as_ref()) {
                    names.insert(name.into_owned());
                }
            }
        }
    }
    Ok(())
}

/// Records of a chunk of a row group.
fn chunk_limit(file: &FilePlan, unit: usize) -> usize {
    let group = file.metadata.row_group(unit);
    let entry_count = match &file.layout.features {
        Features::Lists { indices, .. } => group.column(*indices).num_values() as usize,
        Features::Table(_) => 0,
    };
    let mean = entry_count / (group.num_rows() as usize).max(1);
    (CHUNK_ENTRIES / mean.max(1)).clamp(1, CHUNK_RECORDS)
}

/// Names of hashed keys.
struct Dictionary<'a> {
    new: &'a mut BTreeMap<u64, String>,
    known: &'a mut HashSet<u64>,
}

impl Dictionary<'_> {
    fn key(&mut self, column: &str, value: &[u8]) -> u64 {
        let key = named_key(column.as_bytes(), value);
        if self.known.insert(key) {
            self.new.insert(key, format!("{column}={}", String::from_utf8_lossy(value)));
        }
        key
    }
}

impl RowGroup {
    fn open(input: &Input, file: &FilePlan, number: usize, unit: usize) -> Result<Self, Error> {
        let schema = file.metadata.file_metadata().schema_descr();
        let groups = file.metadata.row_groups();
        let any = |number| column(input, file, unit, number);
        let numbers = |number| Ok(Chunked { column: any(number)?, number, chunk: Vec::new() });
        let strings = |number| Ok(Chunked { column: any(number)?, number, chunk: Texts::default() });
        let feature = |f: &Feature| -> Result<FeatureColumn, Error> {
            Ok(match f.kind {
                ColumnKind::Numeric => FeatureColumn::Number(f.key, numbers(f.column)?),
                ColumnKind::Text => FeatureColumn::Text(f.name.clone(), strings(f.column)?),
            })
        };
        let label = |number| -> Result<Label, Error> {
            let is_text = AnyColumn::is_text(&schema.column(number));
            Ok(if is_text { Label::Name(strings(number)?) } else { Label::Number(numbers(number)?) })
        };
        let group = |number| -> Result<_, Error> {
            Ok((schema.get_column_root(number).name().to_owned(), strings(number)?))
        };
        let features = match &file.layout.features {
            Features::Table(table) => {
                FeatureColumns::Table(table.iter().map(feature).collect::<Result<_, _>>()?)
            }
            Features::Lists { indices, values } => {
                let list = |number| -> Result<_, Error> {
                    let pages = pages(input, file, unit, number)?;
                    guarded(|| ListColumn::new(pages, file.metadata.row_group(unit).column(number)))
                        .map(|column| (column, number))
                        .map_err(|reason| damaged(file, &reason))
                };
                let values = values.map(list).transpose()?;
                FeatureColumns::Lists(Box::new(ListFeatures::new(list(*indices)?, values)))
            }
        };
        Ok(Self {
            file: number,
            first_row: groups[..unit].iter().map(|group| group.num_rows() as u64).sum(),
            row_count: groups[unit].num_rows() as usize,
            decoded: 0,
            chunk_limit: chunk_limit(file, unit),
            chunk_count: 0,
            waiting: 0,
            size_bytes: groups[unit].compressed_size() as u64,
            label: file.layout.label.map(label).transpose()?,
            weight: file.layout.weight.map(numbers).transpose()?,
            group: file.layout.group.map(group).transpose()?,
            features,
        })
    }

    /// Decodes the next chunk when none waits; false at the end of the row group.
    fn fill(&mut self, sink: &mut Sink) -> Result<bool, ParquetError> {
        if self.waiting > 0 {
            return Ok(true);
        }
        let count = self.chunk_limit.min(self.row_count - self.decoded);
        if count == 0 {
            return Ok(false);
        }
        match &mut self.label {
            Some(Label::Number(label)) => label.column.numbers(count, &mut label.chunk)?,
            Some(Label::Name(label)) => label.column.texts(count, &mut label.chunk)?,
            None => {}
        }
        if let Some(weight) = &mut self.weight {
            weight.column.numbers(count, &mut weight.chunk)?;
        }
        if let Some((_, group)) = &mut self.group {
            group.column.texts(count, &mut group.chunk)?;
        }
        self.features.fill(count)?;
        let bytes_until =
            |rows: usize| (self.size_bytes as u128 * rows as u128 / self.row_count as u128) as u64;
        sink.add_bytes(bytes_until(self.decoded + count) - bytes_until(self.decoded));
        self.decoded += count;
        self.chunk_count = count;
        self.waiting = count;
        Ok(true)
    }

    /// The next waiting record into the sink, or what is wrong with it.
    #[inline]
    fn push_record(
        &self,
        sink: &mut Sink,
        label_names: &[String],
        keep_zeros: bool,
        dictionary: &mut Dictionary<'_>,
    ) -> Result<(), Fault> {
        let r = self.chunk_count - self.waiting;
        let label = self.label(r, label_names)?;
        let weight = self.weight(r)?;
        let group =
            self.group.as_ref().map(|(name, group)| group_key(name, group.chunk.get(r).unwrap_or_default()));
        let pushed = match &self.features {
            FeatureColumns::Table(table) => push_table(table, r, keep_zeros, sink, dictionary),
            FeatureColumns::Lists(lists) => lists.push_record(r, keep_zeros, sink.builder()),
        };
        if let Err(fault) = pushed {
            sink.abandon();
            return Err(fault);
        }
        let column = || match &self.label {
            Some(Label::Number(label)) => label.number,
            Some(Label::Name(label)) => label.number,
            None => 0,
        };
        sink.end_record(label, weight, group)
            .map_err(|expected| (column(), expected, label.unwrap_or_default().to_string()))
    }

    fn label(&self, r: usize, names: &[String]) -> Result<Option<f64>, Fault> {
        let missing = |number| (number, "a label".to_owned(), "null".to_owned());
        match &self.label {
            None => Ok(None),
            Some(Label::Number(label)) if label.chunk[r].is_nan() => Err(missing(label.number)),
            Some(Label::Number(label)) => Ok(Some(label.chunk[r])),
            Some(Label::Name(label)) => {
                let text = label.chunk.get(r).ok_or_else(|| missing(label.number))?;
                let name = String::from_utf8_lossy(text);
                let class = names.binary_search_by(|known| known.as_str().cmp(&name));
                let unknown = || (label.number, format!("a label of {}", names.join(", ")), name.to_string());
                class.map(|class| Some(class as f64)).map_err(|_| unknown())
            }
        }
    }

    fn weight(&self, r: usize) -> Result<f32, Fault> {
        let Some(weight) = &self.weight else { return Ok(1.0) };
        let value = weight.chunk[r] as f32;
        if value.is_finite() && value >= 0.0 {
            return Ok(value);
        }
        Err((weight.number, "a finite weight, 0 or more".to_owned(), weight.chunk[r].to_string()))
    }
}

/// A whole number is its own group; anything else is hashed, as in CSV.
fn group_key(column: &str, text: &[u8]) -> u64 {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.filter(|number| *number < NAMED_KEY_BIT).unwrap_or_else(|| named_key(column.as_bytes(), text))
}

impl FeatureColumns {
    fn fill(&mut self, count: usize) -> Result<(), ParquetError> {
        match self {
            Self::Table(table) => table.iter_mut().try_for_each(|feature| match feature {
                FeatureColumn::Number(_, numbers) => numbers.column.numbers(count, &mut numbers.chunk),
                FeatureColumn::Text(_, strings) => strings.column.texts(count, &mut strings.chunk),
            }),
            Self::Lists(lists) => lists.fill(count),
        }
    }
}

fn push_table(
    table: &[FeatureColumn],
    r: usize,
    keep_zeros: bool,
    sink: &mut Sink,
    dictionary: &mut Dictionary<'_>,
) -> Result<(), Fault> {
    let builder = sink.builder();
    for feature in table {
        match feature {
            FeatureColumn::Number(key, numbers) => {
                let value = numbers.chunk[r];
                if value.is_nan() || (value == 0.0 && !keep_zeros) {
                    continue;
                }
                builder.push(*key, finite(value as f32, value, numbers.number)?);
            }
            FeatureColumn::Text(name, strings) => {
                if let Some(value) = strings.chunk.get(r) {
                    builder.push_one(dictionary.key(name, value));
                }
            }
        }
    }
    Ok(())
}
