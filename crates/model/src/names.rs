//! Names of files and tensors of a model.

/// The file of all matrices.
pub const WEIGHTS_FILE: &str = "weights.safetensors";
/// The file of the optimizer slots.
pub const OPTIMIZER_FILE: &str = "optimizer.safetensors";
/// The file of the names of keys.
pub const DICTIONARY_FILE: &str = "dictionary.tsv";

/// The matrix whose tensor of keys is named `keys`, without a prefix.
const MAIN_MATRIX: &str = "weights";

/// Name of the tensor of the numbers of entries of the rows of a list matrix.
pub(crate) fn lengths_tensor(matrix: &str) -> String {
    format!("{matrix}.lengths")
}

/// Name of the tensor of the keys of the entries of a list matrix.
pub(crate) fn entries_tensor(matrix: &str) -> String {
    format!("{matrix}.entries")
}

/// Name of the tensor of a matrix's keys.
pub(crate) fn keys_tensor(matrix: &str) -> String {
    if matrix == MAIN_MATRIX { "keys".into() } else { format!("{matrix}.keys") }
}
