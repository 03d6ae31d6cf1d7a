//! Arguments and rows in the memory of a module.

use bytemuck::Pod;
use matrix::function::Columns;
use matrix::{Element, FunctionFault};

/// Copies an argument into the memory of the module.
pub(crate) fn put_argument(memory: &mut [u8], at: usize, argument: &[f64]) {
    memory[at..at + size_of_val(argument)].copy_from_slice(bytemuck::cast_slice(argument));
}

/// Copies rows into the memory of the module, one after the other.
pub(crate) fn put_rows<'a, E: Pod>(memory: &mut [u8], at: usize, rows: impl Iterator<Item = &'a [E]>) {
    let mut rest = &mut memory[at..];
    for row in rows {
        let bytes: &[u8] = bytemuck::cast_slice(row);
        let (own, behind) = rest.split_at_mut(bytes.len());
        own.copy_from_slice(bytes);
        rest = behind;
    }
}

/// The rows of a call as slices of one type.
pub(crate) fn typed_rows<'a, E: Element>(columns: &Columns<'a>) -> Result<Vec<&'a [E]>, FunctionFault> {
    (0..columns.row_count()).map(|i| columns.typed(i)).collect()
}
