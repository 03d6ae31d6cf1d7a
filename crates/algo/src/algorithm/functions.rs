//! Functions of an algorithm that run at the servers, over all rows of a table: the rows do not travel.

use matrix::FunctionTable;
use matrix::function::{FunctionFault, RowChange, RowFold};

/// The functions of an algorithm, by names of its own.
#[derive(Clone, Default)]
pub struct RowFunctions {
    folds: Vec<(&'static str, RowFold)>,
    changes: Vec<(&'static str, RowChange)>,
}

impl RowFunctions {
    pub fn none() -> Self {
        Self::default()
    }

    /// With a sum over the rows of a table ([`super::Task::fold`]): `terms` gets the argument of the call, and the key and the
    /// numbers of a row. The sums are exact until they are rounded at the end, so they are the same for any servers.
    #[must_use]
    pub fn fold<const N: usize>(
        mut self,
        name: &'static str,
        terms: fn(&[f64], u64, &[f64]) -> [f64; N],
    ) -> Self {
        self.folds.push((name, RowFold::new(name, terms)));
        self
    }

    /// With a change of the rows of a table ([`super::Task::change`]), each by itself: `change` gets the argument of the call,
    /// and the key and the numbers of a row.
    #[must_use]
    pub fn change(mut self, name: &'static str, change: fn(&[f64], u64, &mut [f64])) -> Self {
        self.changes.push((name, RowChange::new(name, change)));
        self
    }

    /// Adds the functions to the table of a program.
    pub(super) fn register(self, algorithm: &str, table: &mut FunctionTable) -> Result<(), FunctionFault> {
        for (name, fold) in self.folds {
            table.add_row_fold(fold.named(full_name(algorithm, name)))?;
        }
        for (name, change) in self.changes {
            table.add_row_change(change.named(full_name(algorithm, name)))?;
        }
        Ok(())
    }
}

/// The name of a function in the table of a program.
pub(super) fn full_name(algorithm: &str, name: &str) -> String {
    format!("{algorithm}_{name}")
}
