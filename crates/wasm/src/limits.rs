//! What a module may take.

/// Limits of a module. A breach is a fault of the call, never of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the file.
    pub module_bytes: usize,
    /// Bytes of linear memory of an instance, with those in which it gets the rows.
    pub memory_bytes: usize,
    /// Steps of a call, whatever its columns; also of instantiation.
    pub steps: u64,
    /// Steps of a call for each of its columns, on top.
    pub fuel_per_column: u64,
}

impl Limits {
    /// Steps of a call on `columns` columns.
    pub(crate) fn fuel_for(&self, columns: usize) -> u64 {
        self.steps.saturating_add(self.fuel_per_column.saturating_mul(columns as u64))
    }
}

impl Default for Limits {
    /// A module of 4 MiB, 64 MiB of memory, and per column a hundred times what an `exp` takes: an endless loop ends within
    /// hundredths of a second.
    fn default() -> Self {
        Self { module_bytes: 4 << 20, memory_bytes: 64 << 20, steps: 1_000_000, fuel_per_column: 10_000 }
    }
}
