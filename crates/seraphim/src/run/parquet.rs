//! Scores as Parquet: the columns of the CSV, but the predicted class as its position among the classes.

use std::path::Path;

use data::parquet_write::{ColumnData, ColumnType, RecordWriter};

use super::predict::{Layout, Scored, largest};
use crate::error::Error;

/// A Parquet file of scores.
pub(super) struct ScoreFile {
    writer: RecordWriter,
    label: bool,
    width: usize,
    classes: bool,
}

impl ScoreFile {
    pub(super) fn create(path: &Path, layout: &Layout) -> Result<Self, Error> {
        let names = layout.columns();
        let kind = |name: &str| match name {
            "label" | "predicted" => ColumnType::F32,
            _ => ColumnType::F64,
        };
        let columns: Vec<(&str, ColumnType)> = names.iter().map(|name| (name.as_str(), kind(name))).collect();
        let writer = RecordWriter::create(path, &columns)?;
        let classes = !layout.classes.is_empty();
        Ok(Self { writer, label: layout.label, width: layout.classes.len().max(1), classes })
    }

    pub(super) fn write(&mut self, scored: &Scored) -> Result<(), Error> {
        let rows = || scored.scores.chunks_exact(self.width);
        let predicted: Vec<f32> = rows().map(|row| largest(row) as f32).collect();
        let scores: Vec<Vec<f64>> = (0..self.width).map(|c| rows().map(|row| row[c]).collect()).collect();
        let mut columns = Vec::new();
        if self.label {
            columns.push(ColumnData::F32(&scored.labels));
        }
        if self.classes {
            columns.push(ColumnData::F32(&predicted));
        }
        columns.extend(scores.iter().map(|column| ColumnData::F64(column)));
        Ok(self.writer.write(&columns)?)
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        self.writer.finish()?;
        Ok(())
    }
}
