//! Scores as Parquet: the columns of the CSV output, with their types.

use std::path::Path;

use data::PassthroughKind;
use data::parquet_writer::{ColumnData, ColumnType, ParquetWriter};
use driver::Error;

use crate::score_columns::{ScoreColumns, ScoredNumbers};

/// A Parquet file of scores.
pub struct ScoreFile {
    writer: ParquetWriter,
}

impl ScoreFile {
    pub fn create(path: &Path, layout: &ScoreColumns<'_>) -> Result<Self, Error> {
        let passthrough = layout.passthrough.iter().map(|column| match column.kind {
            PassthroughKind::Text => ColumnType::Text,
            PassthroughKind::Integer => ColumnType::I64,
            PassthroughKind::Real => ColumnType::F64,
        });
        let label = if layout.label_names.is_empty() { ColumnType::F64 } else { ColumnType::Text };
        let label_count = usize::from(layout.label) + usize::from(!layout.classes.is_empty());
        let labels = std::iter::repeat_n(label, label_count);
        let kinds = passthrough.chain(labels).chain(std::iter::repeat(ColumnType::F64));
        let names = layout.columns();
        let columns: Vec<_> = names.iter().map(String::as_str).zip(kinds).collect();
        Ok(Self { writer: ParquetWriter::create(path, &columns)? })
    }

    pub fn write(&mut self, scored: &ScoredNumbers, layout: &ScoreColumns<'_>) -> Result<(), Error> {
        let width = layout.width();
        let rows = || scored.scores.chunks_exact(width);
        let mut columns: Vec<Values> = Vec::new();
        for column in layout.passthrough {
            let text = |r| layout.passthrough_text(&scored.passthrough, r, column);
            columns.push(Values::parse(column.kind, (0..scored.labels.len()).map(text)));
        }
        let labels = layout.label.then(|| scored.labels.clone());
        let classes = !layout.classes.is_empty();
        let predicted = classes.then(|| rows().map(|row| layout.predicted(row)).collect());
        for labels in labels.into_iter().chain(predicted) {
            columns.push(if layout.label_names.is_empty() {
                Values::F64(labels)
            } else {
                Values::Text(labels.into_iter().map(|label| layout.label_text(label)).collect())
            });
        }
        columns.extend((0..width).map(|class| Values::F64(rows().map(|row| row[class]).collect())));
        Ok(self.writer.write(&columns.iter().map(Values::data).collect::<Vec<_>>())?)
    }

    pub fn finish(self) -> Result<(), Error> {
        self.writer.finish()?;
        Ok(())
    }
}

/// Values of one column.
enum Values {
    F64(Vec<f64>),
    I64(Vec<i64>),
    Text(Vec<String>),
}

impl Values {
    /// Parses texts of a passthrough column to values of its type; the reader of the data wrote the texts in this form.
    fn parse<'t>(kind: PassthroughKind, texts: impl Iterator<Item = &'t [u8]>) -> Self {
        let texts = texts.map(String::from_utf8_lossy);
        match kind {
            PassthroughKind::Text => Self::Text(texts.map(std::borrow::Cow::into_owned).collect()),
            PassthroughKind::Integer => {
                Self::I64(texts.map(|text| text.parse().unwrap_or_default()).collect())
            }
            PassthroughKind::Real => Self::F64(texts.map(|text| text.parse().unwrap_or(f64::NAN)).collect()),
        }
    }

    fn data(&self) -> ColumnData<'_> {
        match self {
            Self::F64(values) => ColumnData::F64(values),
            Self::I64(values) => ColumnData::I64(values),
            Self::Text(values) => ColumnData::Text(values),
        }
    }
}
