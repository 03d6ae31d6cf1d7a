//! Models: a directory of files in open formats. `model.json` describes the model, `weights.safetensors` has the
//! matrices, `optimizer.safetensors` the slots of the push rules (for continuing training), `dictionary.tsv` the names
//! of keys.
//!
//! | module | contents |
//! |---|---|
//! | [`manifest`] | `model.json`: what a model is, how it was trained, the checksum of every file |
//! | [`mod@read`], [`mod@write`] | reads a model and checks it; writes one beside its target and renames it |
//! | `stored` | models in stores, such as HDFS and S3 |
//! | [`memory`] | a model that is in memory until somebody saves it |
//! | [`tensors`], `tensor_file`, `matrix_plan`, `stored_tensors` | the files of matrices, written and read block by block |
//! | [`dictionary`] | the names of keys |
//! | [`claim`] | the name of the model of a running training, which no other training may have |

pub mod claim;
pub mod dictionary;
mod disk_sync;
pub mod error;
pub mod manifest;
mod matrix_files;
mod matrix_plan;
pub mod memory;
pub mod names;
mod own_files;
pub mod read;
mod stored;
mod stored_tensors;
mod tensor_file;
pub mod tensors;
#[cfg(test)]
mod tests;
pub mod write;

pub use claim::ModelClaim;
pub use error::Error;
pub use manifest::{Manifest, MatrixEntry, TrainingPosition, TrainingRecord};
pub use memory::{MatrixSource, Model, RowsInMemory};
pub use names::{DICTIONARY_FILE, OPTIMIZER_FILE, WEIGHTS_FILE};
pub use read::{IN_MEMORY, ModelReader, read_manifest};
pub use store::io_advice;
pub use write::{WriteResult, check_absent, check_target, copy, is_model, write};
