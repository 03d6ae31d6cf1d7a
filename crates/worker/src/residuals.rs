//! What rounding has taken away from the pushes of a task, kept until it can be sent: error feedback.
//!
//! A push of a gradient g that travels rounded sends `round(g + residuals)`, and `g + residuals - round(g + residuals)` is the rest from
//! then on, for each key by itself. So nothing is lost, it comes later. Without the rest a value below half a step of the
//! rounding would never arrive at all.
//! Sources: Seide et al., Interspeech 2014, section 3.3; Karimireddy et al., ICML 2019, algorithm 2.
//!
//! All rests are pushed as they are, and forgotten, before a barrier, before the task leaves, those of a matrix before a
//! function changes it, and all when they would take
//! more memory than [`RESIDUAL_LIMIT_BYTES`]. A push that alone would take more travels exactly.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use matrix::{Error, Keys, MatrixSpec, Selection, Values};
use rpc::{WireType, WireValues};

use crate::route::Route;
use crate::state::AgentState;

/// Most bytes of rests that an agent keeps, of all its matrices.
pub const RESIDUAL_LIMIT_BYTES: u64 = 128 << 20;
/// Bytes of a key with its place, in a table that is about half full.
const KEY_BYTES: u64 = 32;

/// The rests of a matrix.
#[derive(Debug)]
pub(crate) struct Residuals {
    columns: usize,
    /// By row of a matrix that is partitioned by column; else one.
    tables: BTreeMap<u32, ResidualTable>,
}

#[derive(Debug, Default)]
struct ResidualTable {
    rows: HashMap<u64, u32, BuildHasherDefault<KeyHasher>>,
    /// Rows by place.
    residuals: Vec<f32>,
}

/// Keys may follow each other or be hashes already.
#[derive(Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = math::hash::mix64(self.0 ^ key);
    }
}

/// The sum, or the largest finite value when there is none.
fn clamped_sum(value: f32, rest: f32) -> f32 {
    (value + rest).clamp(-f32::MAX, f32::MAX)
}

impl Residuals {
    pub(crate) fn new(spec: &MatrixSpec) -> Self {
        Self { columns: spec.columns_of_table(), tables: BTreeMap::new() }
    }

    /// Bytes of rests for so many keys.
    fn bytes_of(&self, key_count: usize) -> u64 {
        (KEY_BYTES + 4 * self.columns as u64).saturating_mul(key_count as u64)
    }

    fn bytes(&self) -> u64 {
        self.tables.values().map(|table| self.bytes_of(table.rows.len())).sum()
    }

    /// Rounds the rows of `keys` with their rests, and keeps the new rests.
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

    /// Takes all rests that are not 0: the row of a matrix that is partitioned by column, keys ascending, their rows.
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
    /// How a push of so many keys travels. Makes room for its rests.
    pub(crate) fn wire_of_push(&mut self, matrix: usize, key_count: usize) -> Result<WireType, Error> {
        let wire = self.layout.wire_of(matrix);
        if wire == WireType::F32 {
            return Ok(wire);
        }
        let kept: u64 = self.matrices.iter().map(|state| state.residuals.bytes()).sum();
        let needed = self.matrices[matrix].residuals.bytes_of(key_count);
        if kept.saturating_add(needed) > self.residual_limit_bytes {
            self.push_residuals()?;
        }
        Ok(if needed > self.residual_limit_bytes { WireType::F32 } else { wire })
    }

    /// Pushes all rests as they are.
    pub(crate) fn push_residuals(&mut self) -> Result<(), Error> {
        (0..self.matrices.len()).try_for_each(|matrix| self.push_matrix_residuals(matrix))
    }

    /// Pushes the rests of a matrix as they are.
    pub(crate) fn push_matrix_residuals(&mut self, matrix: usize) -> Result<(), Error> {
        for (row, keys, values) in self.matrices[matrix].residuals.take() {
            let (spec, state) = (&self.layout.matrices[matrix], &self.matrices[matrix]);
            let keys = Keys::Sorted(&keys);
            let part = match spec.axis {
                matrix::Axis::Row => Selection::Rows(keys),
                matrix::Axis::Column => Selection::Columns { row, keys },
            };
            let mut route = Route::default();
            route.set(spec, &state.placement, part)?;
            self.enqueue_values(matrix, &route, Values::F32(&values), WireType::F32);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
