//! Models: a directory in open formats. `model.json` says what it is, `weights.safetensors` holds the matrices,
//! `optimizer.safetensors` the slots of the push rules (for training on), `dictionary.tsv` the names of keys.

pub mod dictionary;
pub mod manifest;
pub mod read;
pub mod safetensors;
#[cfg(test)]
mod tests;
pub mod write;

pub use manifest::{Manifest, MatrixEntry, TrainingPosition, TrainingRecord};
pub use read::{Model, read_manifest};
pub(crate) use write::is_model;
pub use write::{StoredMatrix, WriteResult, check_target, write};

/// The file of all matrices.
pub const WEIGHTS_FILE: &str = "weights.safetensors";
/// The file of all slots.
pub const OPTIMIZER_FILE: &str = "optimizer.safetensors";
/// The file of names.
pub const DICTIONARY_FILE: &str = "dictionary.tsv";

/// The matrix whose keys are called just `keys`.
const MAIN_MATRIX: &str = "weights";

/// Name of the tensor that holds a matrix's keys.
fn keys_tensor(matrix: &str) -> String {
    if matrix == MAIN_MATRIX { "keys".into() } else { format!("{matrix}.keys") }
}
