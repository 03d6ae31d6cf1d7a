//! Residuals: what rounding took from the pushes of a task, kept until it can be sent (error feedback).
//!
//! A push of a gradient g that is rounded sends `round(g + residual)`. The new residual is `g + residual - round(g +
//! residual)`, for each key separately. So nothing is lost, it only arrives later. Without the residual a value below
//! half a step of the rounding would never arrive. Sources: Seide et al., Interspeech 2014, section 3.3; Karimireddy et
//! al., ICML 2019, algorithm 2.
//!
//! All residuals are pushed without rounding, and cleared, before a barrier and before the task leaves, those of a
//! matrix before a function changes it, and all when they would take more memory than [`RESIDUAL_LIMIT_BYTES`]. A push
//! that would take more alone is not rounded.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use matrix::{Error, KeyRuns, Keys, MatrixSpec, Values};
use rpc::{WireType, WireValues};

use crate::state::AgentState;

/// Most bytes of residuals of an agent, over all its matrices.
pub const RESIDUAL_LIMIT_BYTES: u64 = 128 << 20;
/// Bytes of a key and its index, in a table that is about half full.
const KEY_BYTES: u64 = 32;

/// The residuals of a matrix.
#[derive(Debug)]
pub(crate) struct Residuals {
    columns: usize,
    /// By row for a matrix that is partitioned by column, otherwise one table.
    tables: BTreeMap<u32, ResidualTable>,
}

#[derive(Debug, Default)]
struct ResidualTable {
    rows: HashMap<u64, u32, FixedState>,
    /// Rows by index.
    residuals: Vec<f32>,
}

/// The sum, limited to the finite range.
fn clamped_sum(value: f32, rest: f32) -> f32 {
    (value + rest).clamp(-f32::MAX, f32::MAX)
}

impl Residuals {
    pub(crate) fn new(spec: &MatrixSpec) -> Self {
        Self { columns: spec.columns_of_table(), tables: BTreeMap::new() }
    }

    /// Bytes of the residuals of this number of keys.
    fn bytes_of(&self, key_count: usize) -> u64 {
        (KEY_BYTES + 4 * self.columns as u64).saturating_mul(key_count as u64)
    }

    fn bytes(&self) -> u64 {
        self.tables.values().map(|table| self.bytes_of(table.rows.len())).sum()
    }

    /// Adds the residuals to the rows of `keys`, rounds the sums, and stores the new residuals. `rows` is overwritten.
    pub(crate) fn round(&mut self, table: u32, keys: &[u64], rows: &mut [f32], wire: WireType) -> WireValues {
        let columns = self.columns;
        let ResidualTable { rows: places, residuals: rests } = self.tables.entry(table).or_default();
        let mut own = Vec::with_capacity(keys.len());
        for (key, row) in keys.iter().zip(rows.chunks_exact_mut(columns)) {
            let next = places.len() as u32;
            let place = *places.entry(*key).or_insert(next);
            let start = place as usize * columns;
            if place == next {
                rests.resize(start + columns, 0.0);
            }
            for (value, rest) in row.iter_mut().zip(&rests[start..start + columns]) {
                *value = clamped_sum(*value, *rest);
            }
            own.push(start);
        }
        let rounded = WireValues::split(rows, wire);
        for (start, row) in own.into_iter().zip(rows.chunks_exact(columns)) {
            rests[start..start + columns].copy_from_slice(row);
        }
        rounded
    }

    /// Takes all residuals that are not 0: the row of a matrix that is partitioned by column, the keys in ascending
    /// order, their rows.
    fn take(&mut self) -> Vec<(u32, Vec<u64>, Vec<f32>)> {
        let columns = self.columns;
        let taken = std::mem::take(&mut self.tables).into_iter().map(|(row, table)| {
            let rest = |place: &u32| &table.residuals[*place as usize * columns..][..columns];
            let mut places: Vec<(u64, u32)> = table.rows.iter().map(|(key, place)| (*key, *place)).collect();
            places.retain(|(_, place)| rest(place).iter().any(|value| *value != 0.0));
            places.sort_unstable();
            let rows = places.iter().flat_map(|(_, place)| rest(place)).copied().collect();
            (row, places.into_iter().map(|(key, _)| key).collect::<Vec<u64>>(), rows)
        });
        taken.filter(|(_, keys, _)| !keys.is_empty()).collect()
    }
}

impl AgentState {
    /// The encoding of a push of `key_count` keys. Makes room for its residuals.
    pub(crate) fn wire_of_push(&mut self, matrix: usize, key_count: usize) -> Result<WireType, Error> {
        let wire = self.layout.wire_of(matrix);
        if !wire.is_rounded() {
            return Ok(wire);
        }
        let used: u64 = self.matrices.iter().map(|state| state.residuals.bytes()).sum();
        let needed = self.matrices[matrix].residuals.bytes_of(key_count);
        if used.saturating_add(needed) > self.residual_limit_bytes {
            self.push_residuals()?;
        }
        Ok(if needed > self.residual_limit_bytes { WireType::F32 } else { wire })
    }

    /// Pushes all residuals without rounding.
    pub(crate) fn push_residuals(&mut self) -> Result<(), Error> {
        (0..self.matrices.len()).try_for_each(|matrix| self.push_matrix_residuals(matrix))
    }

    /// Pushes the residuals of a matrix without rounding.
    pub(crate) fn push_matrix_residuals(&mut self, matrix: usize) -> Result<(), Error> {
        for (row, keys, values) in self.matrices[matrix].residuals.take() {
            let (spec, state) = (&self.layout.matrices[matrix], &self.matrices[matrix]);
            let mut key_runs = KeyRuns::default();
            key_runs.set(spec, &state.placement, spec.selection(row, Keys::Sorted(&keys)))?;
            self.enqueue_values(matrix, &key_runs, Values::F32(&values), WireType::F32);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
