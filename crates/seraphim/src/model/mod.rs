//! Models: a directory of files in open formats. `model.json` describes the model, `weights.safetensors` has the
//! matrices, `optimizer.safetensors` the slots of the push rules (for continuing training), `dictionary.tsv` the names
//! of keys.

pub mod dictionary;
pub mod manifest;
pub mod read;
pub mod tensors;
#[cfg(test)]
mod tests;
pub mod write;

pub use manifest::{Manifest, MatrixEntry, TrainingPosition, TrainingRecord};
pub use read::{Model, read_manifest};
pub(crate) use write::is_model;
pub use write::{StoredMatrix, WriteResult, check_target, write};

/// The file of all matrices.
pub const WEIGHTS_FILE: &str = "weights.safetensors";
/// The file of the optimizer slots.
pub const OPTIMIZER_FILE: &str = "optimizer.safetensors";
/// The file of the names of keys.
pub const DICTIONARY_FILE: &str = "dictionary.tsv";

/// The matrix whose tensor of keys is named `keys`, without a prefix.
const MAIN_MATRIX: &str = "weights";

/// Name of the tensor of a matrix's keys.
fn keys_tensor(matrix: &str) -> String {
    if matrix == MAIN_MATRIX { "keys".into() } else { format!("{matrix}.keys") }
}
