//! The declared structure of a matrix.

use serde::{Deserialize, Serialize};

use crate::agent::{Keys, Selection};
use crate::clock::Consistency;
use crate::element::{ElementType, Values};
use crate::error::Error;
use crate::function::FunctionTable;
use crate::initializer::Initializer;
use crate::partitioner::{Partitioner, Placement};
use crate::rule::PushRule;

/// The axis along which a matrix is cut into partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// Each key is a row with a short vector.
    Row,
    /// The matrix has a few very long rows, cut into ranges of columns.
    Column,
}

/// How a partition stores its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// Contiguous arrays over a contiguous key range.
    Dense,
    /// Open addressing over arbitrary keys; a row is created when it is first pushed.
    Sparse,
    /// Sorted lists ([`crate::lists`]). Of the entries of a row with equal keys, the push rule makes one.
    List,
    /// Lists in which equal keys are an error.
    UniqueList,
}

impl Storage {
    /// Whether rows are lists.
    pub fn has_lists(self) -> bool {
        matches!(self, Self::List | Self::UniqueList)
    }
}

/// The declared structure of a matrix: `rows x columns` of one element type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixSpec {
    /// Unique in the job.
    pub name: String,
    pub element: ElementType,
    /// Number of rows. Keys of rows are below it. `1 << 63` when the number is not known.
    pub rows: u64,
    pub columns: u64,
    pub axis: Axis,
    pub storage: Storage,
    pub partitioner: Partitioner,
    pub initializer: Initializer,
    pub rule: PushRule,
    /// What a read may miss.
    pub consistency: Consistency,
    /// Seed of the initializer.
    pub seed: u64,
}

/// Keys are below this bound, so that their upper bit is free for flags.
pub const KEY_BOUND: u64 = 1 << 63;
/// Maximum number of rows of a dense partition, so that a position fits in 32 bits.
pub const DENSE_ROW_LIMIT: u64 = 1 << 31;
/// Maximum number of columns of a matrix partitioned by row. Longer rows should be partitioned by column.
pub const COLUMN_LIMIT: u64 = 1 << 24;
/// Maximum number of rows of a matrix partitioned by column.
pub const LONG_ROW_LIMIT: u64 = 1 << 16;

impl MatrixSpec {
    /// A matrix with a row for each key below 2^63 that is ever pushed, 0 at first, placed by hash, under ASP.
    pub fn sparse(
        name: &str,
        element: ElementType,
        columns: u64,
        rule: PushRule,
        partition_count: u32,
    ) -> Self {
        Self {
            name: name.to_owned(),
            element,
            rows: 1 << 63,
            columns,
            axis: Axis::Row,
            storage: Storage::Sparse,
            partitioner: Partitioner::Hash { partition_count },
            initializer: Initializer::Zero,
            rule,
            consistency: Consistency::Asp,
            seed: 0,
        }
    }

    /// The same matrix placed with another of its job: a key is in the partition of the same number in both, and
    /// partitions of the same number are on the same lane.
    #[must_use]
    pub fn placed_with(mut self, other: &Self) -> Self {
        self.partitioner = match other.partitioner.ranges(other.key_bound()) {
            // Ranges of equal length depend on the number of keys.
            Some(Placement::Ranges { starts, .. }) => Partitioner::Explicit { starts },
            _ => other.partitioner.clone(),
        };
        self
    }

    /// Number of keys along the axis: rows or columns.
    pub fn key_bound(&self) -> u64 {
        match self.axis {
            Axis::Row => self.rows,
            Axis::Column => self.columns,
        }
    }

    /// Number of tables in each partition: one by row, and one for each row by column.
    pub fn table_count(&self) -> usize {
        match self.axis {
            Axis::Row => 1,
            Axis::Column => self.rows as usize,
        }
    }

    /// Number of values of a key: the columns by row, one by column.
    pub fn columns_of_table(&self) -> usize {
        match self.axis {
            Axis::Row => self.columns as usize,
            Axis::Column => 1,
        }
    }

    /// The offset that makes a key of a table unique in the matrix.
    pub(crate) fn key_offset(&self, table: usize) -> u64 {
        match self.axis {
            Axis::Row => 0,
            Axis::Column => table as u64 * self.columns,
        }
    }

    /// Refuses values of another element type than that of the matrix.
    pub fn check_element(&self, actual: ElementType) -> Result<(), Error> {
        let expected = self.element;
        if actual == expected {
            return Ok(());
        }
        Err(Error::ElementType { matrix: self.name.clone(), expected, actual })
    }

    /// Refuses values that are not all finite. The error names the first such value by its key; `key` gives the key of
    /// a row.
    pub fn check_finite(&self, values: Values<'_>, key: impl Fn(usize) -> u64) -> Result<(), Error> {
        let Some((at, value)) = values.first_non_finite() else { return Ok(()) };
        let columns = self.columns_of_table();
        let (key, column) = (key(at / columns), (at % columns) as u64);
        Err(Error::NonFinite { matrix: self.name.clone(), key, column, value })
    }

    /// Refuses values that were read if a sum among them has overflowed. The error names the row; `key` gives its key.
    pub fn check_overflow(&self, values: Values<'_>, key: impl Fn(usize) -> u64) -> Result<(), Error> {
        if !self.element.may_overflow() {
            return Ok(());
        }
        let Some((at, _)) = values.first_non_finite() else { return Ok(()) };
        let columns = self.columns_of_table();
        let (key, column) = (key(at / columns), (at % columns) as u64);
        Err(Error::Overflow { matrix: self.name.clone(), key, column, element: self.element.name() })
    }

    /// Selects keys. By column: `table` is the row.
    pub fn selection<'a>(&self, table: u32, keys: Keys<'a>) -> Selection<'a> {
        match self.axis {
            Axis::Row => Selection::Rows(keys),
            Axis::Column => Selection::Columns { row: table, keys },
        }
    }

    /// Size of a row with its slots, in bytes. For a matrix partitioned by column: the size of one element with its
    /// slots.
    pub fn row_bytes(&self) -> u64 {
        (self.rule.row_width(self.columns_of_table()) as u64).saturating_mul(self.element.size() as u64)
    }

    /// Size of the `owned_partitions` before the first push, in bytes: all rows of dense partitions with their slots.
    pub fn initial_size_bytes(&self, owned_partitions: &[u32]) -> u64 {
        let placement = self.partitioner.ranges(self.key_bound());
        let Some(placement) = placement.filter(|_| self.storage == Storage::Dense) else { return 0 };
        let ranges = owned_partitions.iter().filter_map(|partition| placement.range(*partition as usize));
        let keys: u64 = ranges.map(|range| range.end - range.start).sum();
        keys.saturating_mul(self.row_bytes()).saturating_mul(self.table_count() as u64)
    }

    /// Checks every field by itself and together with the others. The error names the first field that is not valid.
    /// `functions` has the partitioners that the process knows.
    pub fn check(&self, functions: &FunctionTable) -> Result<(), Error> {
        self.placement(functions).map(drop)
    }

    /// Checks the spec as [`Self::check`] does, and returns the placement of its keys.
    pub fn placement(&self, functions: &FunctionTable) -> Result<Placement, Error> {
        if self.name.is_empty() {
            return self.fault("name", "empty", "a name");
        }
        self.check_shape()?;
        if self.storage.has_lists() {
            self.check_lists()?;
        }
        let placement = match self.partitioner.placement(self.key_bound(), functions) {
            Ok(placement) => placement,
            Err((actual, expected)) => return self.fault("partitioner", actual, expected),
        };
        self.check_storage(&placement)?;
        if let Some((actual, expected)) = self.initializer.fault() {
            return self.fault("initializer", actual, expected);
        }
        if self.element.is_integer() && self.rule.is_optimizer() {
            let element = self.element.name();
            return self.fault(
                "rule",
                format!("{} on {element}", self.rule.name()),
                format!("add, assign, min or max on {element}"),
            );
        }
        match self.rule.fault() {
            Some((field, actual, expected)) => self.fault(field, actual, expected),
            None => Ok(placement),
        }
    }

    pub(crate) fn check_shape(&self) -> Result<(), Error> {
        let (rows, columns) = match self.axis {
            Axis::Row => (KEY_BOUND, COLUMN_LIMIT),
            Axis::Column => (LONG_ROW_LIMIT, KEY_BOUND / LONG_ROW_LIMIT),
        };
        if self.rows == 0 || self.rows > rows {
            return self.fault("rows", self.rows.to_string(), format!("1 to {rows}"));
        }
        if (self.columns == 0 && !self.storage.has_lists()) || self.columns > columns {
            return self.fault("columns", self.columns.to_string(), format!("1 to {columns}"));
        }
        Ok(())
    }

    fn check_lists(&self) -> Result<(), Error> {
        if self.axis == Axis::Column {
            return self.fault("axis", "column", "row, with lists");
        }
        if self.columns > 1 {
            let expected = "1, or 0 for entries without values, with lists";
            return self.fault("columns", self.columns.to_string(), expected);
        }
        if self.rule.is_optimizer() {
            return self.fault("rule", self.rule.name(), "add, assign, min or max with lists");
        }
        if self.initializer != Initializer::Zero {
            return self.fault("initializer", "not zero", "zero with lists");
        }
        if self.consistency != Consistency::Asp {
            return self.fault(
                "consistency",
                "not asp",
                "asp with lists: they do not change while they are read",
            );
        }
        Ok(())
    }

    /// Refuses lists, for calls on rows of one length.
    pub(crate) fn check_no_lists(&self) -> Result<(), Error> {
        if !self.storage.has_lists() {
            return Ok(());
        }
        let what = "its rows are lists: append to them and pull them as a ListMatrix".to_owned();
        Err(Error::Lists { matrix: self.name.clone(), what })
    }

    fn check_storage(&self, placement: &Placement) -> Result<(), Error> {
        if self.storage != Storage::Dense {
            return Ok(());
        }
        if let Initializer::NormalOnFirstPush { .. } = self.initializer {
            let expected = "normal with dense storage, whose rows all exist";
            return self.fault("initializer", "normal_on_first_push", expected);
        }
        for i in 0..placement.partition_count() {
            let Some(range) = placement.range(i) else {
                return self.fault(
                    "partitioner",
                    "hash or a partitioner of the program, with dense storage",
                    "range or explicit with dense storage",
                );
            };
            if range.end - range.start > DENSE_ROW_LIMIT {
                let actual = format!("dense with {} keys in partition {i}", range.end - range.start);
                let expected = format!("at most {DENSE_ROW_LIMIT} keys a partition (use sparse storage)");
                return self.fault("storage", actual, expected);
            }
        }
        Ok(())
    }

    fn fault<T>(
        &self,
        field: &'static str,
        actual: impl Into<String>,
        expected: impl Into<String>,
    ) -> Result<T, Error> {
        let (actual, expected) = (actual.into(), expected.into());
        Err(Error::Spec { matrix: self.name.clone(), field, actual, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::PushRule;

    fn good() -> MatrixSpec {
        MatrixSpec {
            name: "w".into(),
            element: ElementType::F32,
            rows: KEY_BOUND,
            columns: 1,
            axis: Axis::Row,
            storage: Storage::Sparse,
            partitioner: Partitioner::Hash { partition_count: 8 },
            initializer: Initializer::Zero,
            rule: PushRule::FtrlProximal { alpha: 0.1, beta: 1.0, l1: 0.0, l2: 0.0 },
            consistency: Consistency::Bsp,
            seed: 1,
        }
    }

    fn field_at_fault(spec: &MatrixSpec) -> Option<&'static str> {
        match spec.check(&FunctionTable::builtin()) {
            Err(Error::Spec { field, .. }) => Some(field),
            _ => None,
        }
    }

    #[test]
    fn a_spec_that_cannot_be_names_its_field() {
        assert_eq!(field_at_fault(&good()), None);
        let bad = |change: fn(&mut MatrixSpec)| {
            let mut spec = good();
            change(&mut spec);
            field_at_fault(&spec).expect("refused")
        };
        assert_eq!(bad(|spec| spec.name.clear()), "name");
        assert_eq!(bad(|spec| spec.rows = KEY_BOUND + 1), "rows");
        assert_eq!(bad(|spec| spec.columns = 0), "columns");
        assert_eq!(bad(|spec| spec.storage = Storage::Dense), "partitioner");
        assert_eq!(bad(|spec| spec.partitioner = Partitioner::Hash { partition_count: 0 }), "partitioner");
        assert_eq!(bad(|spec| spec.element = ElementType::I64), "rule");
        assert_eq!(bad(|spec| spec.initializer = Initializer::Normal { deviation: -1.0 }), "initializer");
        assert_eq!(
            bad(|spec| {
                spec.storage = Storage::Dense;
                spec.initializer = Initializer::NormalOnFirstPush { deviation: 1.0 };
            }),
            "initializer"
        );
        assert_eq!(
            bad(|spec| spec.rule = PushRule::FtrlProximal { alpha: 0.0, beta: 1.0, l1: 0.0, l2: 0.0 }),
            "rule.alpha"
        );
        assert_eq!(
            bad(|spec| {
                spec.storage = Storage::Dense;
                spec.partitioner = Partitioner::Range { partition_count: 2 };
            }),
            "storage"
        );
    }
}
