//! Records in memory: sparse rows, dense rows, and Arrow record batches. They are read as files of the formats libsvm,
//! dense text (or CSV, if columns have names) and Parquet are, so a model that learned from arrays can be used with
//! such files.
//!
//! A program gives its arrays a name with [`MemoryInputs`]; `memory:NAME` among the inputs then means them.
//!
//! They have no format of their own, and nothing after the reader knows of them. They are not sent: a job with such inputs runs in one process.

mod buffer;
#[cfg(feature = "parquet")]
mod record_batches;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

#[cfg(feature = "parquet")]
pub use arrow_array::RecordBatch;
pub use buffer::Buffer;

use crate::Error;
use crate::format::{FormatContext, OpenFormat};

/// What the name of an input in memory begins with.
pub(crate) const PREFIX: &str = "memory:";

/// Records in memory. Cloning them copies no record.
#[derive(Clone, Debug)]
pub enum Arrays {
    /// Compressed sparse rows.
    Csr(CsrArrays),
    /// Rows of numbers.
    Dense(DenseArrays),
    /// A table.
    #[cfg(feature = "parquet")]
    Arrow(std::sync::Arc<[RecordBatch]>),
}

/// What a record has besides its features. Each list has one number per record, or is empty.
#[derive(Clone, Debug, Default)]
pub struct RecordAttributes {
    /// Labels; empty if there are none, which is enough for predictions.
    pub labels: Buffer<f64>,
    /// Names of classes, of which `labels` are the positions; empty if labels are numbers.
    pub label_names: Vec<String>,
    /// Weights, at least 0; empty if all are 1.
    pub weights: Buffer<f32>,
    /// Groups, for metrics within groups; empty if there are none.
    pub groups: Buffer<u64>,
    /// Points in time; empty if there are none.
    pub times: Buffer<f64>,
}

/// Compressed sparse rows: `n` records with `e` entries.
#[derive(Clone, Debug, Default)]
pub struct CsrArrays {
    /// First entry of each record, and the end of the last one: `n + 1` numbers that do not fall.
    pub offsets: Buffer<u64>,
    /// Feature of each entry: `e` numbers below 2^63.
    pub features: Buffer<u64>,
    /// Value of each entry: `e` finite numbers; empty if all are 1.
    pub values: Buffer<f32>,
    /// Field of each entry: `e` numbers; empty if there are no fields.
    pub fields: Buffer<u32>,
    pub attributes: RecordAttributes,
}

/// Rows of numbers: `n` records with `d` values. NaN is a missing value.
#[derive(Clone, Debug, Default)]
pub struct DenseArrays {
    /// The rows, one after the other: `n x d` numbers.
    pub values: Numbers,
    /// The number of columns, `d`, above 0.
    pub columns: usize,
    /// Names of the columns: `d` names, or none, in which case columns are numbered.
    pub names: Vec<String>,
    pub attributes: RecordAttributes,
}

/// Numbers of single or double precision. Models keep single precision; a column of doubles that are close together and
/// far from 0 is counted from one of them, as in files.
#[derive(Clone, Debug)]
pub enum Numbers {
    F32(Buffer<f32>),
    F64(Buffer<f64>),
}

impl Numbers {
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn size_bytes(&self) -> usize {
        match self {
            Self::F32(values) => 4 * values.len(),
            Self::F64(values) => 8 * values.len(),
        }
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self::F32(Buffer::default())
    }
}

impl<T: Into<Buffer<f32>>> From<T> for Numbers {
    fn from(values: T) -> Self {
        Self::F32(values.into())
    }
}

/// Arrays by the name that a job gives them.
#[derive(Clone, Debug, Default)]
pub struct MemoryInputs {
    by_name: BTreeMap<String, Arrays>,
}

impl MemoryInputs {
    /// Adds arrays, whose shapes are checked, and returns the input that means them. Arrays of the same name are replaced.
    ///
    /// # Errors
    /// [`Error::BadArrays`] if the shapes do not fit each other, or a number is out of range.
    pub fn add(&mut self, name: &str, arrays: Arrays) -> Result<String, Error> {
        arrays.check(name)?;
        self.by_name.insert(name.to_owned(), arrays);
        Ok(format!("{PREFIX}{name}"))
    }

    pub(crate) fn find(&self, input: &str) -> Option<&Arrays> {
        self.by_name.get(input.strip_prefix(PREFIX)?)
    }
}

impl Arrays {
    /// The number of records.
    pub fn record_count(&self) -> usize {
        match self {
            Self::Csr(rows) => rows.offsets.len().saturating_sub(1),
            Self::Dense(rows) => rows.values.len() / rows.columns.max(1),
            #[cfg(feature = "parquet")]
            Self::Arrow(batches) => batches.iter().map(RecordBatch::num_rows).sum(),
        }
    }

    /// The bytes of all arrays.
    pub(crate) fn size_bytes(&self) -> u64 {
        let attributes = |own: &RecordAttributes| {
            4 * own.weights.len() + 8 * (own.labels.len() + own.groups.len() + own.times.len())
        };
        let bytes = match self {
            Self::Csr(rows) => {
                8 * (rows.offsets.len() + rows.features.len())
                    + 4 * (rows.values.len() + rows.fields.len())
                    + attributes(&rows.attributes)
            }
            Self::Dense(rows) => rows.values.size_bytes() + attributes(&rows.attributes),
            #[cfg(feature = "parquet")]
            Self::Arrow(batches) => batches.iter().map(RecordBatch::get_array_memory_size).sum(),
        };
        bytes as u64
    }

    /// The format of files as which they are read.
    pub(crate) fn format_name(&self) -> &'static str {
        match self {
            Self::Csr(rows) if rows.fields.is_empty() => "libsvm",
            Self::Csr(_) => "libffm",
            Self::Dense(rows) if rows.names.is_empty() => "dense",
            Self::Dense(_) => "csv",
            #[cfg(feature = "parquet")]
            Self::Arrow(_) => "parquet",
        }
    }

    fn check(&self, name: &str) -> Result<(), Error> {
        let checked = match self {
            Self::Csr(rows) => rows::check_csr(rows),
            Self::Dense(rows) => rows::check_dense(rows),
            #[cfg(feature = "parquet")]
            Self::Arrow(batches) => record_batches::check(batches),
        };
        let checked = checked.and_then(|()| match self.record_count() {
            0 => Err("it has no records".to_owned()),
            _ => Ok(()),
        });
        checked.map_err(|what| Error::BadArrays { name: format!("{PREFIX}{name}"), what })
    }
}

/// Opens inputs that are arrays of one kind.
pub(crate) fn open(context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    let mut kinds: Vec<&Arrays> = Vec::new();
    for file in context.files {
        let Some(arrays) = file.arrays() else {
            let reason =
                "arrays in memory and files cannot be read together; give one or the other".to_owned();
            return Err(Error::BadOption { option: "data", reason });
        };
        kinds.push(arrays);
    }
    let is_one_kind = kinds.windows(2).all(|pair| pair[0].format_name() == pair[1].format_name());
    if !is_one_kind {
        let reason = "arrays of different kinds cannot be read together".to_owned();
        return Err(Error::BadOption { option: "data", reason });
    }
    #[cfg(feature = "parquet")]
    if let Some(Arrays::Arrow(_)) = kinds.first() {
        return record_batches::open(context);
    }
    rows::open(context)
}
