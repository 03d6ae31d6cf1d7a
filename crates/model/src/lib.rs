//! Models: a directory of files in open formats. `model.json` describes the model, `weights.safetensors` has the
//! matrices, `optimizer.safetensors` the slots of the push rules (for continuing training), `dictionary.tsv` the names
//! of keys.
//!
//! | module | contents |
//! |---|---|
//! | [`manifest`] | `model.json`: what a model is, how it was trained, the checksum of every file |
//! | [`mod@read`], [`mod@write`] | reads a model and checks it; writes one beside its target and renames it |
//! | [`tensors`], `tensor_file`, `matrix_plan`, `stored_tensors` | the files of matrices, written and read block by block |
//! | [`dictionary`] | the names of keys |
//! | [`claim`] | the name of the model of a running training, which no other training may have |

pub mod claim;
pub mod dictionary;
pub mod error;
pub mod manifest;
mod matrix_plan;
pub mod read;
mod stored_tensors;
mod tensor_file;
pub mod tensors;
#[cfg(test)]
mod tests;
pub mod write;

pub use claim::ModelClaim;
pub use error::Error;
pub use manifest::{Manifest, MatrixEntry, TrainingPosition, TrainingRecord};
pub use read::{Model, ModelFiles, read_manifest};
pub use write::{MatrixSource, RowsInMemory, WriteResult, check_absent, check_target, copy, is_model, write};

/// The file of all matrices.
pub const WEIGHTS_FILE: &str = "weights.safetensors";
/// The file of the optimizer slots.
pub const OPTIMIZER_FILE: &str = "optimizer.safetensors";
/// The file of the names of keys.
pub const DICTIONARY_FILE: &str = "dictionary.tsv";

/// The matrix whose tensor of keys is named `keys`, without a prefix.
const MAIN_MATRIX: &str = "weights";

/// Name of the tensor of the numbers of entries of the rows of a list matrix.
fn lengths_tensor(matrix: &str) -> String {
    format!("{matrix}.lengths")
}

/// Name of the tensor of the keys of the entries of a list matrix.
fn entries_tensor(matrix: &str) -> String {
    format!("{matrix}.entries")
}

/// Name of the tensor of a matrix's keys.
fn keys_tensor(matrix: &str) -> String {
    if matrix == MAIN_MATRIX { "keys".into() } else { format!("{matrix}.keys") }
}
