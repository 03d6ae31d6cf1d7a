//! The records of a program: files, or arrays in memory.

#[cfg(feature = "parquet")]
use data::arrays::RecordBatch;
use data::arrays::{Arrays, CsrArrays, DenseArrays, MemoryInputs};

use driver::Error;

/// Records: files, or arrays in memory. Cloning it copies no record.
#[derive(Clone, Debug)]
pub struct Data(DataKind);

#[derive(Clone, Debug)]
enum DataKind {
    Files(Vec<String>),
    Arrays(Arrays),
}

impl Data {
    /// Files, folders and patterns, as `--data` takes them.
    pub fn files(inputs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(DataKind::Files(inputs.into_iter().map(Into::into).collect()))
    }

    /// The inputs of a job; arrays get the name `name` in `memory`.
    pub(crate) fn inputs(&self, name: &str, memory: &mut MemoryInputs) -> Result<Vec<String>, Error> {
        Ok(match &self.0 {
            DataKind::Files(files) => files.clone(),
            DataKind::Arrays(arrays) => vec![memory.add(name, arrays.clone())?],
        })
    }
}

impl From<CsrArrays> for Data {
    fn from(rows: CsrArrays) -> Self {
        Self(DataKind::Arrays(Arrays::Csr(rows)))
    }
}

impl From<DenseArrays> for Data {
    fn from(rows: DenseArrays) -> Self {
        Self(DataKind::Arrays(Arrays::Dense(rows)))
    }
}

#[cfg(feature = "parquet")]
impl From<Vec<RecordBatch>> for Data {
    fn from(batches: Vec<RecordBatch>) -> Self {
        Self(DataKind::Arrays(Arrays::Arrow(batches.into())))
    }
}
