//! Checks whether the matrices of a job fit into memory.

use matrix::{MatrixSpec, Storage};

use crate::amounts;
use crate::error::Error;

/// Refuses matrices that cannot fit: dense matrices allocate all rows at the start. `holders` names what has `limit`
/// bytes.
pub(crate) fn check_memory(
    matrices: &[MatrixSpec],
    limit: u64,
    holders: &str,
    advice: &str,
) -> Result<(), Error> {
    let bytes = |spec: &MatrixSpec| {
        let width = spec.rule.row_width(spec.columns_of_table()) as u128;
        let size = if spec.element == matrix::ElementType::F32 { 4 } else { 8 };
        u128::from(spec.key_bound()) * spec.table_count() as u128 * width * size
    };
    let shown = |bytes: u128| amounts::bytes(u64::try_from(bytes).unwrap_or(u64::MAX));
    let dense: Vec<&MatrixSpec> = matrices.iter().filter(|spec| spec.storage == Storage::Dense).collect();
    let sum: u128 = dense.iter().map(|spec| bytes(spec)).sum();
    if sum <= u128::from(limit) {
        return Ok(());
    }
    let parts: Vec<String> =
        dense.iter().map(|spec| format!("{} {}", spec.name, shown(bytes(spec)))).collect();
    let what = format!(
        "the matrices take {} ({}), the limit of {holders} is {}",
        shown(sum),
        parts.join(" + "),
        amounts::bytes(limit)
    );
    Err(Error::request(what, advice))
}
