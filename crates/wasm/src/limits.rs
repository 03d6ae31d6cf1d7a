//! Limits on what a module uses.

/// Limits of a module. A call that exceeds a limit fails; the server continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of the file, in bytes.
    pub module_bytes: usize,
    /// Maximum linear memory of an instance, in bytes, including the area that holds the rows.
    pub memory_bytes: usize,
    /// Fuel of a call, independent of its number of columns. Also the fuel of instantiation.
    pub steps: u64,
    /// Additional fuel of a call for each of its columns.
    pub fuel_per_column: u64,
}

impl Limits {
    /// The fuel of a call on `columns` columns.
    pub(crate) fn fuel_for(&self, columns: usize) -> u64 {
        self.steps.saturating_add(self.fuel_per_column.saturating_mul(columns as u64))
    }
}

impl Default for Limits {
    /// 4 MiB for the file, 64 MiB of memory, and for each column a hundred times the fuel of an `exp`. An endless loop
    /// ends within hundredths of a second.
    fn default() -> Self {
        Self { module_bytes: 4 << 20, memory_bytes: 64 << 20, steps: 1_000_000, fuel_per_column: 10_000 }
    }
}
