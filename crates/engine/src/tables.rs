//! The tables of a program: formats, families of algorithms, PS functions.

use algo::{Families, Family};
use data::FormatTable;
use matrix::{FunctionTable, OwnPartitioner};

use driver::Error;

/// What a program can do. A program of your own adds rows to these tables. Servers and workers that it starts are the
/// same program, so they have the same tables.
#[derive(Clone)]
pub struct Tables {
    /// Formats of input files.
    pub formats: FormatTable,
    /// Families of algorithms.
    pub families: Families,
    /// PS functions, those of the families included, and partitioners.
    pub functions: FunctionTable,
}

impl Default for Tables {
    fn default() -> Self {
        Self { formats: FormatTable::builtin(), families: families::all(), functions: families::functions() }
    }
}

impl Tables {
    /// Adds a family of algorithms and its PS functions.
    ///
    /// # Errors
    /// If a name is taken.
    pub fn with_family(self, family: &'static Family) -> Result<Self, Error> {
        let Self { formats, families, mut functions } = self;
        (family.functions)(&mut functions).map_err(|error| {
            Error::request(
                format!("the functions of the family {}: {error}", family.name),
                "give the function another name",
            )
        })?;
        Ok(Self { formats, families: families.with(family)?, functions })
    }

    /// Adds a partitioner of matrices ([`matrix::Partitioner::Own`]) to the functions.
    ///
    /// # Errors
    /// If the name is taken.
    pub fn with_partitioner(mut self, partitioner: OwnPartitioner) -> Result<Self, Error> {
        self.functions.add_partitioner(partitioner).map_err(|error| {
            Error::request(
                format!("the partitioner {}: {error}", partitioner.name),
                "give the partitioner another name",
            )
        })?;
        Ok(self)
    }
}
