//! Row functions: over all rows of a matrix that is partitioned by row, such as a table of features. A fold sums terms of
//! the rows, exactly, so that its answer is the same for any partitioning; a change sets each row by itself.
//!
//! A row exists from its first push on; the others are not visited. A function gets the values of a row as doubles, and
//! what it changes is rounded once to the element type.

use std::sync::Arc;

use math::exact_sum::ExactSum;

use crate::element::Element;
use crate::function::call::catch_panic;
use crate::function::{FunctionCall, FunctionFault, RunMode, pack, unpack};
use crate::rule::RuleElement;
use crate::spec::{Axis, MatrixSpec};
use crate::storage::{Share, Table};

/// Writes the terms of a row: argument, key, values of the row, terms.
type TermsOfRow = dyn Fn(&[f64], u64, &[f64], &mut [f64]) + Send + Sync;
/// Changes a row in place: argument, key, values of the row.
type NewRow = dyn Fn(&[f64], u64, &mut [f64]) + Send + Sync;

/// A fold over rows.
#[derive(Clone)]
pub struct RowFold {
    name: String,
    width: usize,
    terms: Arc<TermsOfRow>,
}

/// A change of rows.
#[derive(Clone)]
pub struct RowChange {
    name: String,
    change: Arc<NewRow>,
}

impl RowFold {
    /// Sums `N` terms of each row, which `terms` makes of the argument, the key and the values of the row.
    pub fn new<const N: usize>(
        name: impl Into<String>,
        terms: impl Fn(&[f64], u64, &[f64]) -> [f64; N] + Send + Sync + 'static,
    ) -> Self {
        let terms = move |argument: &[f64], key: u64, row: &[f64], out: &mut [f64]| {
            out.copy_from_slice(&terms(argument, key, row));
        };
        Self { name: name.into(), width: N, terms: Arc::new(terms) }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same fold with another name.
    #[must_use]
    pub fn named(self, name: String) -> Self {
        Self { name, ..self }
    }
}

impl FunctionCall {
    /// A call of a row function.
    pub fn of_rows(name: &str, argument: &[f64]) -> FunctionCall {
        let argument = pack(&argument.to_vec());
        FunctionCall { name: name.to_owned(), version: 1, from: Vec::new(), into: Vec::new(), argument }
    }
}

impl RowChange {
    /// Changes each row by itself: `change` gets the argument, the key and the values of the row.
    pub fn new(
        name: impl Into<String>,
        change: impl Fn(&[f64], u64, &mut [f64]) + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), change: Arc::new(change) }
    }

    /// The same change with another name.
    #[must_use]
    pub fn named(self, name: String) -> Self {
        Self { name, ..self }
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Refuses matrices that have no rows by key, and calls that name rows.
fn check(spec: &MatrixSpec, call: &FunctionCall) -> Result<Vec<f64>, FunctionFault> {
    if spec.storage.has_lists() {
        let actual = "lists".to_owned();
        return Err(FunctionFault::Matrix {
            actual,
            expected: "rows of one length, for this function of rows",
        });
    }
    if spec.axis != Axis::Row {
        let actual = "partitions by column".to_owned();
        return Err(FunctionFault::Matrix {
            actual,
            expected: "partitions by row, for this function of rows in a training",
        });
    }
    if !call.from.is_empty() || !call.into.is_empty() {
        let rows = call.from.len() + call.into.len();
        return Err(FunctionFault::argument(
            "rows",
            rows.to_string(),
            "none: a row function visits all rows",
        ));
    }
    unpack(&call.argument)
}

/// A fold with its argument, for one matrix.
pub(crate) struct BoundRowFold {
    fold: RowFold,
    argument: Vec<f64>,
    columns: usize,
}

impl BoundRowFold {
    pub(crate) fn new(fold: &RowFold, spec: &MatrixSpec, call: &FunctionCall) -> Result<Self, FunctionFault> {
        Ok(Self { fold: fold.clone(), argument: check(spec, call)?, columns: spec.columns as usize })
    }

    /// The exact sums over the rows of a partition: the digits of one after those of the other.
    pub(crate) fn read<E: RuleElement>(&self, table: &Table<E>) -> Result<Vec<u8>, FunctionFault> {
        let mut sums = vec![ExactSum::default(); self.fold.width];
        let (mut row, mut terms) = (vec![0.0; self.columns], vec![0.0; self.fold.width]);
        let mut failed = None;
        catch_panic(|| {
            table.for_each_key(Share::WHOLE, |key, position| {
                widen(&table.row(position)[..self.columns], &mut row);
                (self.fold.terms)(&self.argument, key, &row, &mut terms);
                if !sums.iter_mut().zip(&terms).all(|(sum, term)| sum.add(*term)) {
                    failed = failed.min(Some(key)).or(Some(key));
                }
            });
            Ok(())
        })?;
        match failed {
            Some(key) => {
                Err(FunctionFault::user(format!("a term of the row with the key {key} is not finite")))
            }
            None => Ok(pack(&sums.into_iter().flat_map(ExactSum::into_digits).collect::<Vec<i64>>())),
        }
    }

    /// The sums over all partitions, packed.
    pub(crate) fn merge(&self, parts: &[Vec<u8>]) -> Result<Vec<u8>, FunctionFault> {
        let mut sums = vec![ExactSum::default(); self.fold.width];
        for part in parts {
            let digits: Vec<i64> = unpack(part)?;
            let mut of_sums = digits.chunks_exact((digits.len() / self.fold.width.max(1)).max(1));
            if !sums.iter_mut().all(|sum| of_sums.next().is_some_and(|digits| sum.add_digits(digits))) {
                return Err(FunctionFault::user("a partial answer has no sums"));
            }
        }
        let values: Vec<f64> = sums.into_iter().map(ExactSum::value).collect();
        if values.iter().all(|value| value.is_finite()) {
            return Ok(pack(&values));
        }
        Err(FunctionFault::NonFiniteAnswer)
    }
}

/// A change with its argument, for one matrix.
pub(crate) struct BoundRowChange {
    change: RowChange,
    argument: Vec<f64>,
    columns: usize,
}

impl BoundRowChange {
    pub(crate) fn new(
        change: &RowChange,
        spec: &MatrixSpec,
        call: &FunctionCall,
    ) -> Result<Self, FunctionFault> {
        if !spec.rule.slots().is_empty() {
            let actual = format!("the push rule {}, which keeps slots", spec.rule.name());
            return Err(FunctionFault::Matrix { actual, expected: "a push rule without slots" });
        }
        Ok(Self { change: change.clone(), argument: check(spec, call)?, columns: spec.columns as usize })
    }

    pub(crate) fn name(&self) -> &str {
        &self.change.name
    }

    /// Changes all rows of a partition, or none if one of them fails.
    pub(crate) fn run<E: RuleElement>(
        &self,
        table: &mut Table<E>,
        mode: RunMode,
    ) -> Result<(), FunctionFault> {
        let (mut positions, mut values) = (Vec::new(), Vec::<E>::new());
        let mut row = vec![0.0; self.columns];
        let mut failed = None;
        catch_panic(|| {
            table.for_each_key(Share::WHOLE, |key, position| {
                widen(&table.row(position)[..self.columns], &mut row);
                (self.change.change)(&self.argument, key, &mut row);
                let start = values.len();
                values.extend(row.iter().map(|value| E::from_f64(*value)));
                positions.push(position);
                if E::first_non_finite(&values[start..]).is_some() {
                    failed = failed.min(Some(key)).or(Some(key));
                }
            });
            Ok(())
        })?;
        if let Some(key) = failed {
            let text = format!(
                "a value of the row with the key {key} is not finite; no row of that partition has changed"
            );
            return Err(FunctionFault::user(text));
        }
        if mode == RunMode::Commit {
            for (position, values) in positions.into_iter().zip(values.chunks_exact(self.columns.max(1))) {
                table.set(position, values, None);
            }
        }
        Ok(())
    }
}

/// Converts the values of a row to doubles.
fn widen<E: Element>(row: &[E], out: &mut [f64]) {
    out.iter_mut().zip(row).for_each(|(out, value)| *out = value.to_f64());
}
