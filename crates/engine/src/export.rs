//! The rows of a matrix of a model as a table, for other programs: CSV or Parquet, one row after another, in the order of
//! their keys. The model is read block by block.

pub use runtime::explain::{TextJob, export_text};

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use algo::{DerivedTable, Families, MissingTable, Model};
use data::{KeyNames, Schema};
use driver::Error;
use matrix::{ElementType, OwnedValues, RowBlock, with_elements};
use model::ModelReader;
use runtime::interrupt::Interrupt;
use runtime::outputs;
use runtime::outputs::{OutputKind, Outputs};
use runtime::score_columns::{header, quote};

use crate::trained_model::TrainedModel;

/// Which table of which model is written, and where to.
#[derive(Clone, Debug)]
pub struct ExportJob {
    /// The model directory.
    pub model: PathBuf,
    /// The name of a matrix, or of a table that the model makes of its matrices; the first matrix by default.
    pub table: Option<String>,
    /// A file that ends with `.parquet`, any other file for CSV, or `-` for CSV on standard output.
    pub output: PathBuf,
    /// Whether an earlier table is replaced.
    pub overwrite: bool,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportSummary {
    pub table: String,
    pub rows: u64,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The tables of the model.
    pub tables: Vec<String>,
}

/// The key of the last row of a table that the model makes, which is written as -1.
const LAST_KEY: u64 = u64::MAX;

/// Names of the first columns: of rows of features, and of others.
const FEATURE: &str = "feature";
const ROW: &str = "row";
const KEY: &str = "key";

/// Writes the table.
pub fn export(job: &ExportJob, families: &Families, interrupt: &Interrupt) -> Result<ExportSummary, Error> {
    let is_standard = job.output.as_os_str() == "-";
    if !is_standard {
        let outputs = Outputs::new(job.overwrite).with_model(&job.model);
        outputs.check_file("--output", &job.output, OutputKind::Table)?;
    }
    let mut files = ModelReader::open(&job.model, false)?;
    let model = families.load(&files.manifest.model)?;
    let table = ModelTable::open(&mut files, &*model, job.table.as_deref())?;
    let stored = if is_standard { None } else { Some(interrupt.temp_output(&job.output)) };
    let place = stored.as_ref().map_or(Path::new("-"), |stored| stored.path());
    let mut writer = TableWriter::create(place, &job.output, &table.layout, table.kind)?;
    let mut rows = 0;
    table.each_block(&mut files, &*model, &mut |block| {
        interrupt.check("while the table was written; it was removed")?;
        rows += block.keys.len() as u64;
        writer.write(block, &table, &job.output)
    })?;
    writer.finish(&job.output)?;
    if let Some(stored) = stored {
        stored.persist(outputs::put_file(job.overwrite))?;
    }
    let ModelTable { name, layout, all, .. } = table;
    Ok(ExportSummary { table: name, rows, columns: layout.columns, tables: all })
}

/// A table of a model in memory.
#[derive(Clone, Debug)]
pub struct TableRows {
    /// Names of all columns: `feature` (if rows are features) and `key`, or `row`; then those of the values.
    pub columns: Vec<String>,
    /// The name of each row, if rows are features.
    pub names: Option<Vec<String>>,
    /// The key of each row; the last row of a table that the model makes has [`u64::MAX`].
    pub keys: Vec<u64>,
    /// Row-major.
    pub values: Vec<f64>,
}

impl TrainedModel {
    /// The names of the tables of the model.
    pub fn table_names(&self) -> Vec<String> {
        tables(&self.loaded.model, &*self.loaded.scoring)
    }

    /// A table of the model: a matrix, or one that the model makes of its matrices, as `coefficients`. By default the first one.
    ///
    /// # Errors
    /// If the model has no such table, or the rows of the table are lists.
    pub fn table(&self, name: Option<&str>) -> Result<TableRows, Error> {
        let mut files = self.loaded.model.reopened()?;
        let model = &*self.loaded.scoring;
        let table = ModelTable::open(&mut files, model, name)?;
        let columns = table.layout.columns.clone();
        let mut all = TableRows { columns, names: None, keys: Vec::new(), values: Vec::new() };
        table.each_block(&mut files, model, &mut |block| {
            all.keys.extend(&block.keys);
            all.values.extend(numbers(&block.values));
            Ok(())
        })?;
        if table.layout.has_features {
            let names = all.keys.iter().map(|key| table.layout.name_of(&table.names, *key));
            all.names = Some(names.collect());
        }
        Ok(all)
    }
}

/// A table of a model, before its rows are read.
struct ModelTable {
    name: String,
    /// Whether the model makes it of its matrices.
    is_derived: bool,
    /// The matrix of its rows.
    matrix: usize,
    width: usize,
    /// The type of its values.
    kind: ElementType,
    layout: TableLayout,
    /// Names of keys, if rows are features.
    names: KeyNames,
    /// The names of all tables of the model.
    all: Vec<String>,
}

impl ModelTable {
    fn open(files: &mut ModelReader, model: &dyn Model, name: Option<&str>) -> Result<Self, Error> {
        let all = tables(files, model);
        let name = find(&all, name, model.missing_table())?.to_owned();
        let derived = model.derived_table().filter(|derived| derived.name() == name);
        let matrix_name = derived.as_ref().map_or(name.as_str(), |derived| derived.matrices()[0]);
        let matrix = position(files, matrix_name).expect("it is a matrix of the model");
        let entry = &files.manifest.matrices[matrix];
        if entry.spec.storage.has_lists() {
            return Err(Error::request(
                format!("--table {name}: its rows are lists, which are no table"),
                "read them from the file of weights (docs/model-format.md)",
            ));
        }
        let width = entry.columns as usize;
        let kind = derived.as_ref().map_or(entry.dtype, |_| ElementType::F64);
        let last_name = derived.as_ref().map_or("", |derived| derived.last_name());
        let layout = TableLayout::new(model, matrix_name, width, &files.manifest.schema, last_name);
        let names = if layout.has_features { files.dictionary()? } else { KeyNames::default() };
        Ok(Self { name, is_derived: derived.is_some(), matrix, width, kind, layout, names, all })
    }

    /// Reads the table block by block.
    fn each_block(
        &self,
        files: &mut ModelReader,
        model: &dyn Model,
        use_block: &mut impl FnMut(&RowBlock) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(mut derived) = model.derived_table().filter(|_| self.is_derived) else {
            return each_block(files, self.matrix, |_, block| use_block(&block));
        };
        derive_table(files, &self.layout.schema, &mut *derived, self.matrix, self.width, use_block)
    }
}

/// The names of the tables of a model: its matrices, and the table that it makes of them.
fn tables(files: &ModelReader, model: &dyn Model) -> Vec<String> {
    let matrices = files.manifest.matrices.iter().map(|entry| entry.name.clone());
    matrices.chain(model.derived_table().map(|derived| derived.name().to_owned())).collect()
}

/// Returns the table of this name; the first one if none is named.
fn find<'a>(
    tables: &'a [String],
    name: Option<&str>,
    missing: Option<MissingTable>,
) -> Result<&'a str, Error> {
    let Some(name) = name else { return Ok(&tables[0]) };
    tables.iter().find(|known| *known == name).map(String::as_str).ok_or_else(|| {
        let advice = format!("give one of {}", tables.join(", "));
        let missing = missing.filter(|missing| missing.name == name);
        let reason = missing.map_or_else(String::new, |missing| format!(": {}", missing.reason));
        let what = format!("--table: the model has no such table ({name:?}){reason}");
        Error::request(what, advice)
    })
}

fn position(files: &ModelReader, matrix: &str) -> Option<usize> {
    files.manifest.matrices.iter().position(|entry| entry.name == matrix)
}

/// Reads a matrix block by block.
fn each_block(
    files: &mut ModelReader,
    matrix: usize,
    mut use_block: impl FnMut(&mut ModelReader, RowBlock) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut key = 0;
    loop {
        let block = files.rows_from(matrix, key)?;
        let Some(last) = block.keys.last() else { return Ok(()) };
        key = last + 1;
        use_block(files, block)?;
    }
}

/// Makes the rows of a derived table of those of its first matrix, `main`, and the last row of all.
fn derive_table(
    files: &mut ModelReader,
    schema: &Schema,
    derived: &mut dyn DerivedTable,
    main: usize,
    width: usize,
    write: &mut impl FnMut(&RowBlock) -> Result<(), Error>,
) -> Result<(), Error> {
    let [_, beside, single] = derived.matrices().map(|name| position(files, name));
    let mut beside = beside.map(|matrix| RowReader::new(files, matrix));
    let block_of = |keys, values| RowBlock::of_values(keys, OwnedValues::F64(values));
    each_block(files, main, |files, block| {
        let mut values = numbers(&block.values);
        for (key, row) in block.keys.iter().zip(values.chunks_mut(width)) {
            let other = beside.as_mut().map_or(Ok(None), |reader| reader.get(files, *key))?;
            let column = usize::try_from(*key).ok().and_then(|key| schema.columns.get(key));
            derived.make_row(*key, row, other, column.map_or(0.0, |column| column.origin));
        }
        write(&block_of(block.keys, values))
    })?;
    let mut last = vec![0.0; width];
    if let Some(single) = single {
        each_block(files, single, |_, block| {
            last.copy_from_slice(&numbers(&block.values));
            Ok(())
        })?;
    }
    derived.make_last_row(&mut last);
    write(&block_of(vec![LAST_KEY], last))
}

fn numbers(values: &OwnedValues) -> Vec<f64> {
    values.as_values().to_f64()
}

/// Reads rows of ascending keys.
struct RowReader {
    matrix: usize,
    width: usize,
    keys: Vec<u64>,
    rows: Vec<f64>,
    next: usize,
}

impl RowReader {
    fn new(files: &ModelReader, matrix: usize) -> Self {
        let width = files.manifest.matrices[matrix].columns as usize;
        Self { matrix, width, keys: Vec::new(), rows: Vec::new(), next: 0 }
    }

    fn get(&mut self, files: &mut ModelReader, key: u64) -> Result<Option<&[f64]>, Error> {
        if self.keys.last().is_none_or(|last| *last < key) {
            let block = files.rows_from(self.matrix, key)?;
            (self.rows, self.keys, self.next) = (numbers(&block.values), block.keys, 0);
        }
        self.next += self.keys[self.next..].partition_point(|known| *known < key);
        let is_there = self.keys.get(self.next) == Some(&key);
        Ok(is_there.then(|| &self.rows[self.next * self.width..][..self.width]))
    }
}

/// The columns of a table.
struct TableLayout {
    /// Whether a row is a feature, so that its name comes first.
    has_features: bool,
    /// Names of all columns.
    columns: Vec<String>,
    schema: Schema,
    /// The name of the row [`LAST_KEY`].
    last_name: &'static str,
}

impl TableLayout {
    fn new(model: &dyn Model, matrix: &str, count: usize, schema: &Schema, last_name: &'static str) -> Self {
        let has_features = model.has_feature_rows(matrix);
        let first = if has_features { &[FEATURE, KEY][..] } else { &[ROW] };
        let values = if count == schema.label_names.len() && count > 1 {
            schema.label_names.clone()
        } else {
            model.column_names(matrix, count)
        };
        let columns = first.iter().map(|name| (*name).to_owned()).chain(values).collect();
        Self { has_features, columns, schema: schema.clone(), last_name }
    }

    /// Returns the name of a feature: from the dictionary, from the columns, or the key itself.
    fn name_of(&self, names: &KeyNames, key: u64) -> String {
        if key == LAST_KEY { self.last_name.to_owned() } else { self.schema.feature_name(names, key) }
    }
}

/// A table that is being written.
enum TableWriter {
    Text(BufWriter<Box<dyn Write>>),
    #[cfg(feature = "parquet")]
    Parquet(Box<data::parquet_writer::ParquetWriter>),
}

impl TableWriter {
    /// Creates a file at `path`; `output` is where the user finds it.
    fn create(path: &Path, output: &Path, layout: &TableLayout, kind: ElementType) -> Result<Self, Error> {
        if output.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet")) {
            return Self::parquet(path, layout, kind);
        }
        let out: Box<dyn Write> = if output.as_os_str() == "-" {
            Box::new(std::io::stdout())
        } else {
            Box::new(File::create(path).map_err(Error::io("create", output))?)
        };
        let mut out = BufWriter::new(out);
        out.write_all(&header(&layout.columns)).map_err(Error::io("write", output))?;
        Ok(Self::Text(out))
    }

    #[cfg(feature = "parquet")]
    fn parquet(path: &Path, layout: &TableLayout, kind: ElementType) -> Result<Self, Error> {
        use data::parquet_writer::{ColumnType, ParquetWriter};
        let value = match kind {
            ElementType::F32 => ColumnType::F32,
            ElementType::F64 => ColumnType::F64,
            ElementType::I64 | ElementType::I32 | ElementType::U32 => ColumnType::I64,
        };
        let kind_of = |name: &str| match name {
            FEATURE => ColumnType::Text,
            KEY | ROW => ColumnType::I64,
            _ => value,
        };
        let first = if layout.has_features { 2 } else { 1 };
        let columns: Vec<(&str, ColumnType)> = (layout.columns.iter().enumerate())
            .map(|(at, name)| (name.as_str(), if at < first { kind_of(name) } else { value }))
            .collect();
        Ok(Self::Parquet(Box::new(ParquetWriter::create(path, &columns)?)))
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet(path: &Path, _: &TableLayout, _: ElementType) -> Result<Self, Error> {
        let what = format!("{}: this program was built without Parquet", path.display());
        Err(Error::request(what, "name a .csv file, or build it with the feature parquet"))
    }

    /// `output` is where the user finds the table.
    fn write(&mut self, rows: &RowBlock, table: &ModelTable, output: &Path) -> Result<(), Error> {
        let ModelTable { layout, names, .. } = table;
        match self {
            Self::Text(out) => write_text(out, rows, layout, names).map_err(Error::io("write", output)),
            #[cfg(feature = "parquet")]
            Self::Parquet(writer) => write_parquet(writer, rows, layout, names),
        }
    }

    fn finish(self, output: &Path) -> Result<(), Error> {
        match self {
            Self::Text(mut out) => out.flush().map_err(Error::io("write", output)),
            #[cfg(feature = "parquet")]
            Self::Parquet(writer) => {
                writer.finish()?;
                Ok(())
            }
        }
    }
}

fn write_text(
    out: &mut impl Write,
    rows: &RowBlock,
    layout: &TableLayout,
    names: &KeyNames,
) -> std::io::Result<()> {
    let mut line = Vec::new();
    let width = rows.values.len() / rows.keys.len().max(1);
    for (row, key) in rows.keys.iter().enumerate() {
        line.clear();
        if layout.has_features {
            quote(&mut line, layout.name_of(names, *key).as_bytes());
            line.push(b',');
        }
        write!(line, "{}", *key as i64)?;
        for at in row * width..(row + 1) * width {
            with_elements!(OwnedValues, &rows.values, values => write!(line, ",{}", values[at])?);
        }
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(())
}

#[cfg(feature = "parquet")]
fn write_parquet(
    writer: &mut data::parquet_writer::ParquetWriter,
    rows: &RowBlock,
    layout: &TableLayout,
    names: &KeyNames,
) -> Result<(), Error> {
    use data::parquet_writer::ColumnData;
    fn column<T: Copy>(values: &[T], width: usize, at: usize) -> Vec<T> {
        values.iter().skip(at).step_by(width).copied().collect()
    }
    enum Column {
        F32(Vec<f32>),
        F64(Vec<f64>),
        I64(Vec<i64>),
    }
    let width = rows.values.len() / rows.keys.len().max(1);
    let values: Vec<Column> = (0..width)
        .map(|at| match &rows.values {
            OwnedValues::F32(values) => Column::F32(column(values, width, at)),
            OwnedValues::F64(values) => Column::F64(column(values, width, at)),
            OwnedValues::I64(values) => Column::I64(column(values, width, at)),
            OwnedValues::I32(values) => {
                Column::I64(column(values, width, at).into_iter().map(i64::from).collect())
            }
            OwnedValues::U32(values) => {
                Column::I64(column(values, width, at).into_iter().map(i64::from).collect())
            }
        })
        .collect();
    let features: Vec<String> = if layout.has_features {
        rows.keys.iter().map(|key| layout.name_of(names, *key)).collect()
    } else {
        Vec::new()
    };
    let keys: Vec<i64> = rows.keys.iter().map(|key| *key as i64).collect();
    let first = layout.has_features.then_some(ColumnData::Text(&features));
    let others = values.iter().map(|column| match column {
        Column::F32(values) => ColumnData::F32(values),
        Column::F64(values) => ColumnData::F64(values),
        Column::I64(values) => ColumnData::I64(values),
    });
    let all: Vec<ColumnData<'_>> = first.into_iter().chain([ColumnData::I64(&keys)]).chain(others).collect();
    Ok(writer.write(&all)?)
}
