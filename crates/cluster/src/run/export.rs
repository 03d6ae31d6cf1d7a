//! The rows of a matrix of a model as a table, for other programs: CSV or Parquet, one row after another, in the order of
//! their keys. The model is read block by block.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use algo::{Families, Model};
use data::{ColumnKind, KeyNames, Schema};
use matrix::{ElementType, ExportedRows, OwnedValues};
use model::ModelFiles;

use super::predict::{header, quote};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::outputs::{self, OutputKind, Outputs};

/// Which matrix of which model is written, and where to.
#[derive(Clone, Debug)]
pub struct ExportJob {
    /// The model directory.
    pub model: PathBuf,
    /// The name of the matrix; the first one of the model by default.
    pub matrix: Option<String>,
    /// A file that ends with `.parquet`, any other file for CSV, or `-` for CSV on standard output.
    pub output: PathBuf,
    /// Whether an earlier table is replaced.
    pub overwrite: bool,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportSummary {
    pub matrix: String,
    pub rows: u64,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The matrices of the model that can be written.
    pub matrices: Vec<String>,
}

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
    let mut files = ModelFiles::open(&job.model, false)?;
    let model = families.load(&files.manifest.model)?;
    let matrices: Vec<String> = files.manifest.matrices.iter().map(|entry| entry.name.clone()).collect();
    let at = find(&matrices, job.matrix.as_deref())?;
    let schema = files.manifest.schema.clone();
    let (columns, kind) = (files.manifest.matrices[at].columns as usize, files.manifest.matrices[at].dtype);
    let layout = TableLayout::new(&*model, &matrices[at], columns, &schema);
    let names = if layout.has_features { files.dictionary()? } else { KeyNames::default() };
    let stored = if is_standard { None } else { Some(interrupt.temp_output(&job.output)) };
    let place = stored.as_ref().map_or(Path::new("-"), |stored| stored.path());
    let mut writer = TableWriter::create(place, &job.output, &layout, kind)?;
    let (mut key, mut rows) = (0, 0);
    loop {
        let block = files.rows_from(at, key)?;
        let Some(last) = block.keys.last() else { break };
        interrupt.check("while the table was written; it was removed")?;
        writer.write(&block, &layout, &names)?;
        rows += block.keys.len() as u64;
        key = last + 1;
    }
    writer.finish(&job.output)?;
    if let Some(stored) = stored {
        stored.persist(outputs::put_file(job.overwrite))?;
    }
    Ok(ExportSummary { matrix: matrices[at].clone(), rows, columns: layout.columns, matrices })
}

/// Returns the position of a matrix; of the first one if none is named.
fn find(matrices: &[String], name: Option<&str>) -> Result<usize, Error> {
    let Some(name) = name else { return Ok(0) };
    matrices.iter().position(|known| known == name).ok_or_else(|| Error::InvalidRequest {
        what: format!("--matrix: the model has no matrix {name:?}"),
        advice: format!("give one of {}", matrices.join(", ")),
    })
}

/// The columns of a table.
struct TableLayout<'a> {
    /// Whether a row is a feature, so that its name comes first.
    has_features: bool,
    /// Names of all columns.
    columns: Vec<String>,
    schema: &'a Schema,
}

impl<'a> TableLayout<'a> {
    fn new(model: &dyn Model, matrix: &str, count: usize, schema: &'a Schema) -> Self {
        let has_features = model.has_feature_rows(matrix);
        let first = if has_features { &[FEATURE, KEY][..] } else { &[ROW] };
        let values = if count == schema.label_names.len() && count > 1 {
            schema.label_names.clone()
        } else {
            model.column_names(matrix, count)
        };
        let columns = first.iter().map(|name| (*name).to_owned()).chain(values).collect();
        Self { has_features, columns, schema }
    }

    /// Returns the name of a feature: from the dictionary, from the columns, or the key itself.
    fn name_of(&self, names: &KeyNames, key: u64) -> String {
        feature_name(self.schema, names, key)
    }
}

/// Returns the name of a feature: from the dictionary, from the columns, or the key itself.
pub fn feature_name(schema: &Schema, names: &KeyNames, key: u64) -> String {
    if let Some(name) = names.get(key) {
        return name.to_owned();
    }
    let column = usize::try_from(key).ok().and_then(|key| schema.columns.get(key));
    match column {
        Some(column) if column.kind == ColumnKind::Numeric => column.name.clone(),
        _ => key.to_string(),
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
    fn create(
        path: &Path,
        output: &Path,
        layout: &TableLayout<'_>,
        kind: ElementType,
    ) -> Result<Self, Error> {
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
    fn parquet(path: &Path, layout: &TableLayout<'_>, kind: ElementType) -> Result<Self, Error> {
        use data::parquet_writer::{ColumnType, ParquetWriter};
        let value = match kind {
            ElementType::F32 => ColumnType::F32,
            ElementType::F64 => ColumnType::F64,
            ElementType::I64 => ColumnType::I64,
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
    fn parquet(path: &Path, _: &TableLayout<'_>, _: ElementType) -> Result<Self, Error> {
        let what = format!("{}: this program was built without Parquet", path.display());
        Err(Error::InvalidRequest {
            what,
            advice: "name a .csv file, or build it with the feature parquet".into(),
        })
    }

    fn write(
        &mut self,
        rows: &ExportedRows,
        layout: &TableLayout<'_>,
        names: &KeyNames,
    ) -> Result<(), Error> {
        match self {
            Self::Text(out) => {
                write_text(out, rows, layout, names).map_err(Error::io("write", Path::new("the table")))
            }
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
    rows: &ExportedRows,
    layout: &TableLayout<'_>,
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
        write!(line, "{key}")?;
        for at in row * width..(row + 1) * width {
            match &rows.values {
                OwnedValues::F32(values) => write!(line, ",{}", values[at])?,
                OwnedValues::F64(values) => write!(line, ",{}", values[at])?,
                OwnedValues::I64(values) => write!(line, ",{}", values[at])?,
            }
        }
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(())
}

#[cfg(feature = "parquet")]
fn write_parquet(
    writer: &mut data::parquet_writer::ParquetWriter,
    rows: &ExportedRows,
    layout: &TableLayout<'_>,
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
