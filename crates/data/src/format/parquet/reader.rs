//! Reads row groups into records.

use crate::key_names::KeyNames;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::bloom_filter::Sbbf;
use parquet::column::page::PageReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;

use super::checks::catch_panics;
use super::file;
use super::pages::{ChunkPages, MemoryBudget};
use super::{ParquetDataset, ParquetFile, bad_file};
use crate::arrow::{RecordColumns, add_labels};
use crate::byte_source::ByteSource;
use crate::columns::{ColumnPlan, LabelScan, Role};
use crate::error::Error;
use crate::format::RecordReader;
use crate::input::Input;
use crate::lines::ENTRY_LIMIT;
use crate::sink::Sink;
use crate::split::{Split, SplitRange};

/// Records whose columns are decoded together: enough to amortize the cost of a call, and few enough for the cache.
const CHUNK_RECORDS: usize = 1024;

/// Approximate number of list entries per chunk: where lists are long, fewer records are decoded together.
const CHUNK_ENTRIES: usize = 1 << 18;

/// Reads row groups, one after another.
pub(super) struct ParquetReader {
    dataset: Arc<ParquetDataset>,
    inputs: Vec<Input>,
    splits: std::vec::IntoIter<Split>,
    row_group: Option<RowGroupCursor>,
    records: RecordColumns,
}

/// The row group that is being read. Its records are numbered from 0.
struct RowGroupCursor {
    file: usize,
    row_group: usize,
    /// Number of its first record in the file.
    first_row: u64,
    row_count: usize,
    /// The requested records that are not taken yet.
    requested: Range<usize>,
    /// The records of the batch that was decoded last.
    decoded: Range<usize>,
    /// Bytes of the split, and all requested records.
    size_bytes: u64,
    split_records: Range<usize>,
    batches: RowGroupBatches,
}

impl ParquetReader {
    pub(super) fn new(shared: Arc<ParquetDataset>, inputs: Vec<Input>, splits: Vec<Split>) -> Self {
        let records = RecordColumns::new(&shared.files[0].plan, &shared.schema);
        Self { dataset: shared, inputs, splits: splits.into_iter(), row_group: None, records }
    }

    /// Decodes records of the current row group, or of the next one; returns false when there is none.
    fn fill(&mut self, sink: &mut Sink) -> Result<bool, Error> {
        loop {
            if let Some(group) = &mut self.row_group {
                let file = &self.dataset.files[group.file];
                let filled = group.fill(&file.plan, &mut self.records, sink);
                if filled.map_err(|reason| damaged(file, group.row_group, &reason))? {
                    return Ok(true);
                }
            }
            let Some(split) = self.splits.next() else {
                self.row_group = None;
                return Ok(false);
            };
            let (input, file) = (&self.inputs[split.file], &self.dataset.files[split.file]);
            self.row_group = Some(RowGroupCursor::open(input, file, &split)?);
        }
    }
}

impl RecordReader for ParquetReader {
    fn read(&mut self, record_limit: usize, sink: &mut Sink) -> Result<bool, Error> {
        while sink.record_count() < record_limit && sink.entry_count() < ENTRY_LIMIT {
            if !self.fill(sink)? {
                self.records.notices().iter().for_each(|notice| sink.add_notice(notice));
                return Ok(false);
            }
            let Some(group) = &mut self.row_group else { return Ok(false) };
            while group.has_record() && sink.record_count() < record_limit && sink.entry_count() < ENTRY_LIMIT
            {
                let row = group.first_row + group.requested.start as u64;
                let file = &self.dataset.files[group.file];
                let pushed = self.records.push(&file.plan, group.requested.start - group.decoded.start, sink);
                group.requested.start += 1;
                if let Err(error) = pushed {
                    sink.report_bad_line(error.at_line(&file.name, row + 1))?;
                }
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

fn damaged(file: &ParquetFile, unit: usize, reason: &ParquetError) -> Error {
    bad_file(
        &file.name,
        match reason {
            ParquetError::NYI(what) => format!("row group {unit}: {what}; write the file in another way"),
            reason => format!("row group {unit}: {reason}; the file is damaged or was cut short"),
        },
    )
}

/// The record batches of a row group, for some of its columns.
struct RowGroupBatches {
    reader: ParquetRecordBatchReader,
    budget: Arc<MemoryBudget>,
    /// Number of columns that are read from the file; `partition` are those that its folders give.
    columns: usize,
    partition: Vec<(String, DataType)>,
}

impl RowGroupBatches {
    /// Opens the columns `fields`, which must be ascending.
    fn open(
        input: &Input,
        file: &ParquetFile,
        unit: usize,
        fields: &[usize],
        record_limit: usize,
    ) -> Result<Self, Error> {
        let (bytes, _) = file::open(input)?;
        let group = file.metadata.row_group(unit);
        let budget = Arc::new(MemoryBudget::new(u64::try_from(group.compressed_size()).unwrap_or(0)));
        let schema = file.metadata.file_metadata().schema_descr();
        let column_count = file.arrow_fields.len();
        let (own, partition): (Vec<usize>, Vec<usize>) =
            fields.iter().partition(|field| **field < column_count);
        let columns = own.len();
        let open = || {
            let mask = ProjectionMask::roots(schema, own);
            let levels = parquet_to_arrow_field_levels(schema, mask, Some(&file.arrow_fields))?;
            let group: Arc<dyn FileReader> =
                Arc::new(SingleRowGroupFile::new(&file.metadata, unit, bytes, Arc::clone(&budget)));
            ParquetRecordBatchReader::try_new_with_row_groups(&levels, &group, record_limit, None)
        };
        let reader = catch_panics(open).map_err(|reason| damaged(file, unit, &reason))?;
        let value = |field: usize| {
            let number = field - column_count;
            (input.partition()[number].1.clone(), file.partition[number].data_type().clone())
        };
        Ok(Self { reader, budget, columns, partition: partition.into_iter().map(value).collect() })
    }

    /// Returns the columns of the next batch and its number of records; `None` at the end.
    fn next(&mut self) -> Result<Option<(Vec<ArrayRef>, usize)>, ParquetError> {
        self.budget.start_batch();
        let Some(batch) = catch_panics(|| self.reader.next().transpose().map_err(ParquetError::from))? else {
            return Ok(None);
        };
        let (count, mut columns) = (batch.num_rows(), batch.columns().to_vec());
        if columns.len() != self.columns || columns.iter().any(|column| column.len() != count) {
            return Err(super::fault("columns of unlike lengths"));
        }
        columns
            .extend(self.partition.iter().map(|(value, kind)| super::partition::column(value, kind, count)));
        Ok(Some((columns, count)))
    }
}

/// A row group in the form that the library needs: a file that has no other.
struct SingleRowGroupFile {
    metadata: ParquetMetaData,
    bytes: ByteSource,
    budget: Arc<MemoryBudget>,
}

impl SingleRowGroupFile {
    fn new(file: &ParquetMetaData, unit: usize, bytes: ByteSource, budget: Arc<MemoryBudget>) -> Self {
        let group = file.row_group(unit).clone();
        let schema = file.file_metadata().schema_descr_ptr();
        let own =
            FileMetaData::new(file.file_metadata().version(), group.num_rows(), None, None, schema, None);
        Self { metadata: ParquetMetaData::new(own, vec![group]), bytes, budget }
    }
}

impl FileReader for SingleRowGroupFile {
    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }

    fn num_row_groups(&self) -> usize {
        1
    }

    fn get_row_group(&self, _: usize) -> Result<Box<dyn RowGroupReader + '_>, ParquetError> {
        Ok(Box::new(SingleRowGroupReader(self)))
    }

    fn get_row_iter(&self, _: Option<Type>) -> Result<RowIter<'_>, ParquetError> {
        Err(ParquetError::NYI("rows one by one".to_owned()))
    }
}

/// The columns of the row group.
struct SingleRowGroupReader<'a>(&'a SingleRowGroupFile);

impl RowGroupReader for SingleRowGroupReader<'_> {
    fn metadata(&self) -> &RowGroupMetaData {
        self.0.metadata.row_group(0)
    }

    fn num_columns(&self) -> usize {
        self.metadata().num_columns()
    }

    fn get_column_page_reader(&self, column: usize) -> Result<Box<dyn PageReader>, ParquetError> {
        let SingleRowGroupFile { bytes, budget, .. } = self.0;
        Ok(Box::new(ChunkPages::new(bytes.clone(), self.metadata().column(column), Arc::clone(budget))))
    }

    fn get_column_bloom_filter(&self, _: usize) -> Option<&Sbbf> {
        None
    }

    fn get_row_iter(&self, _: Option<Type>) -> Result<RowIter<'_>, ParquetError> {
        Err(ParquetError::NYI("rows one by one".to_owned()))
    }
}

/// Returns the values of the first records of a file in these columns, which are ascending; `None` when it has no records.
pub(super) fn first_values(
    input: &Input,
    file: &ParquetFile,
    columns: &[usize],
) -> Result<Option<Vec<ArrayRef>>, Error> {
    let first = file.metadata.row_groups().iter().position(|group| group.num_rows() > 0);
    let Some(unit) = first.filter(|_| !columns.is_empty()) else { return Ok(None) };
    let mut batches = RowGroupBatches::open(input, file, unit, columns, CHUNK_RECORDS)?;
    let first = batches.next().map_err(|reason| damaged(file, unit, &reason))?;
    Ok(first.map(|(columns, _)| columns).filter(|first| first.len() == columns.len()))
}

/// Adds the labels of a file to `scan`, if they are strings.
pub(super) fn scan_labels(input: &Input, file: &ParquetFile, scan: &mut LabelScan<'_>) -> Result<(), Error> {
    let is_text = file.plan.label_is_text;
    let Some(label) = file.plan.find(Role::Label).filter(|_| is_text) else { return Ok(()) };
    for unit in 0..file.metadata.num_row_groups() {
        let mut batches = RowGroupBatches::open(input, file, unit, &[label], CHUNK_RECORDS)?;
        while let Some((columns, _)) = batches.next().map_err(|reason| damaged(file, unit, &reason))? {
            for column in &columns {
                add_labels(scan, &file.name, column)?;
            }
        }
    }
    Ok(())
}

/// Returns the number of records per batch of a row group.
fn record_limit(file: &ParquetFile, unit: usize) -> usize {
    let group = file.metadata.row_group(unit);
    let schema = file.metadata.file_metadata().schema_descr();
    let leaves =
        (0..schema.num_columns()).filter(|leaf| Some(schema.get_column_root_idx(*leaf)) == file.plan.list());
    let entry_count = leaves.map(|leaf| group.column(leaf).num_values()).max().unwrap_or(0) as usize;
    let mean = entry_count / (group.num_rows() as usize).max(1);
    (CHUNK_ENTRIES / mean.max(1)).clamp(1, CHUNK_RECORDS)
}

impl RowGroupCursor {
    fn open(input: &Input, file: &ParquetFile, split: &Split) -> Result<Self, Error> {
        let SplitRange::Records { row_group: unit, records } = &split.range else {
            panic!("splits of a format in blocks are records of units, not {:?}", split.range);
        };
        let groups = file.metadata.row_groups();
        let asked = records.start as usize..records.end as usize;
        Ok(Self {
            file: split.file,
            row_group: *unit,
            first_row: groups[..*unit].iter().map(|group| group.num_rows() as u64).sum(),
            row_count: groups[*unit].num_rows() as usize,
            requested: asked.clone(),
            decoded: 0..0,
            size_bytes: split.size_bytes,
            split_records: asked,
            batches: RowGroupBatches::open(
                input,
                file,
                *unit,
                &file.plan.read_columns(),
                record_limit(file, *unit),
            )?,
        })
    }

    /// Whether the next requested record is decoded.
    fn has_record(&self) -> bool {
        self.requested.start < self.requested.end.min(self.decoded.end)
    }

    /// Decodes batches until a requested record is decoded; returns false when all of them were read. The task that
    /// reads the last record of the row group also checks that the columns end there.
    fn fill(
        &mut self,
        plan: &ColumnPlan,
        records: &mut RecordColumns,
        sink: &mut Sink,
    ) -> Result<bool, ParquetError> {
        while !self.has_record() {
            if self.requested.is_empty() && self.requested.end < self.row_count {
                return Ok(false);
            }
            let Some((columns, count)) = self.batches.next()? else {
                let missing = self.row_count - self.decoded.end;
                if missing > 0 {
                    return Err(ParquetError::EOF(format!("its columns end {missing} records early")));
                }
                return Ok(false);
            };
            if count == 0 || count > self.row_count - self.decoded.end {
                let (before, all) = (self.decoded.end, self.row_count);
                return Err(super::fault(format!("{count} records after {before} of {all}")));
            }
            let bytes = self.bytes_until(self.decoded.end);
            self.decoded = self.decoded.end..self.decoded.end + count;
            sink.add_bytes(self.bytes_until(self.decoded.end) - bytes);
            if self.has_record() {
                records.load(plan, &columns);
            }
        }
        Ok(true)
    }

    /// Returns the share of the bytes of the split that belongs to the requested records before `record`.
    fn bytes_until(&self, record: usize) -> u64 {
        let asked = &self.split_records;
        let before = record.clamp(asked.start, asked.end) - asked.start;
        (u128::from(self.size_bytes) * before as u128 / asked.len().max(1) as u128) as u64
    }
}
