//! Arrow record batches in memory.

use std::sync::Arc;

use arrow_array::RecordBatch;

use super::Arrays;
use crate::Error;
use crate::arrow::{BatchSize, Batches, DatasetInput, IndexedBatches, open_dataset};
use crate::format::{FormatContext, OpenFormat};

pub(super) fn check(batches: &[RecordBatch]) -> Result<(), String> {
    let Some(first) = batches.first() else { return Err("there is no record batch".to_owned()) };
    let fields = |batch: &RecordBatch| {
        let field = |field: &Arc<arrow_schema::Field>| (field.name().clone(), field.data_type().clone());
        batch.schema().fields().iter().map(field).collect::<Vec<_>>()
    };
    let expected = fields(first);
    match batches.iter().position(|batch| fields(batch) != expected) {
        Some(i) => Err(format!(
            "record batch {i} has other columns than the first one: {:?}, not {expected:?}",
            fields(&batches[i])
        )),
        None => Ok(()),
    }
}

struct MemoryBatches(Arc<[RecordBatch]>);

impl IndexedBatches for MemoryBatches {
    fn sizes(&self) -> Vec<BatchSize> {
        let size = |batch: &RecordBatch| BatchSize {
            records: batch.num_rows(),
            bytes: batch.get_array_memory_size() as u64,
        };
        self.0.iter().map(size).collect()
    }

    fn read(&self, index: usize) -> Result<RecordBatch, Error> {
        Ok(self.0[index].clone())
    }
}

pub(super) fn open(context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    let mut tables = Vec::new();
    for file in context.files {
        let Some(Arrays::Arrow(batches)) = file.arrays() else { continue };
        tables.push(DatasetInput {
            name: file.name().to_owned(),
            // A column may have nulls in one batch only.
            schema: batches[0].schema(),
            row_numbers: Vec::new(),
            batches: Batches::Indexed(Arc::new(MemoryBatches(Arc::clone(batches)))),
        });
    }
    open_dataset(context, tables)
}
