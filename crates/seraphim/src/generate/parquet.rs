//! Generated data as Parquet: `label` and the list `indices`, whose elements have 32 bits if the dimensions allow it.

use std::path::Path;

use engine::Error;
use engine::data::parquet_writer::ColumnData;
use engine::data::parquet_writer::ColumnType;
use engine::data::parquet_writer::ParquetWriter;

/// A Parquet file of generated records.
pub(super) struct ParquetSink {
    writer: ParquetWriter,
    narrow: bool,
}

impl ParquetSink {
    pub(super) fn create(path: &Path, dimensions: u64) -> Result<Self, Error> {
        let narrow = u32::try_from(dimensions).is_ok();
        let list = if narrow { ColumnType::U32List } else { ColumnType::U64List };
        let writer = ParquetWriter::create(path, &[("label", ColumnType::I8), ("indices", list)])?;
        Ok(Self { writer, narrow })
    }

    pub(super) fn write(&mut self, truth: &[(f64, u8)], ids: &[u64], nonzeros: usize) -> Result<(), Error> {
        let labels: Vec<i8> = truth.iter().map(|(_, label)| *label as i8).collect();
        let lengths = vec![nonzeros as u32; truth.len()];
        if self.narrow {
            let ids: Vec<u32> = ids.iter().map(|&id| id as u32).collect();
            self.writer.write(&[ColumnData::I8(&labels), ColumnData::U32List(&lengths, &ids)])?;
        } else {
            self.writer.write(&[ColumnData::I8(&labels), ColumnData::U64List(&lengths, ids)])?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        self.writer.finish()?;
        Ok(())
    }
}
