//! Sums over the columns: a module writes the term of each column, we add them, so that the sum has the same bytes however
//! the columns are cut ([`RangeSum`]).

use bytemuck::Pod;
use matrix::function::sum::RangeSum;
use matrix::function::{Columns, Count, Shape};
use matrix::{FunctionFault, PullFunction, Values};
use wasmtime::TypedFunc;

use crate::module::{Facts, says_its_facts};
use crate::names::{Kind, TermsArguments, place};
use crate::push::{put_argument, put_rows};
use crate::sandbox::{Layout, Pool, Recipe, Sandbox, check_status};

/// A sum of a module. The argument is a list of numbers, the answer one number.
pub struct WasmSum {
    facts: Facts,
    recipe: Recipe,
    pool: Pool<Ready>,
}

/// An instance with the functions that are called.
struct Ready {
    sandbox: Sandbox,
    terms: [Option<TypedFunc<TermsArguments, i32>>; 3],
}

impl WasmSum {
    pub(crate) fn new(facts: Facts, recipe: Recipe) -> Self {
        Self { facts, recipe, pool: Pool::new() }
    }

    fn ready(&self) -> Result<Ready, FunctionFault> {
        let mut sandbox = self.recipe.sandbox()?;
        let terms = self.facts.code(&mut sandbox, Kind::Terms)?;
        Ok(Ready { sandbox, terms })
    }
}

impl Ready {
    /// Writes the terms of some columns, of which `start` is the first.
    fn terms<E: Pod>(
        &mut self,
        facts: &Facts,
        element: usize,
        argument: &[f64],
        rows: &[&[E]],
        start: u64,
        terms: &mut [f64],
    ) -> Result<(), FunctionFault> {
        let len = terms.len();
        let mut layout = Layout::default();
        let at_argument = layout.place(size_of_val(argument));
        let at_from = layout.place(rows.len() * len * size_of::<E>());
        let at_terms = layout.place(size_of_val(terms));
        let area = self.sandbox.area(layout.bytes())?;
        let (at_argument, at_from, at_terms) = (area + at_argument, area + at_from, area + at_terms);
        let memory = self.sandbox.bytes();
        put_argument(memory, at_argument, argument);
        put_rows(memory, at_from, rows.iter().copied());
        let arguments = (
            at_from as u32,
            rows.len() as u32,
            at_terms as u32,
            len as u32,
            start,
            at_argument as u32,
            argument.len() as u32,
        );
        let what = Kind::Terms.word();
        let function = self.terms[element].as_ref().ok_or_else(|| facts.no_code(element))?;
        let status = self.sandbox.call(what, function, len, arguments)?;
        check_status(what, status)?;
        let bytes = &self.sandbox.bytes()[at_terms..at_terms + size_of_val(terms)];
        bytemuck::cast_slice_mut(terms).copy_from_slice(bytes);
        Ok(())
    }

    fn sum<E: Pod>(
        &mut self,
        facts: &Facts,
        element: usize,
        argument: &[f64],
        columns: &Columns<'_>,
        rows: &[&[E]],
    ) -> Result<RangeSum, FunctionFault> {
        let start = columns.range().start;
        let mut outcome = Ok(());
        let sum = RangeSum::of(start, columns.len(), |range, terms| {
            if outcome.is_ok() {
                let rows: Vec<&[E]> = rows.iter().map(|row| &row[range.clone()]).collect();
                let at = start + range.start as u64;
                outcome = self.terms(facts, element, argument, &rows, at, terms);
            }
        });
        outcome.map(|()| sum)
    }
}

/// The rows of a call, of one type.
pub(crate) enum Rows<'a> {
    F32(Vec<&'a [f32]>),
    F64(Vec<&'a [f64]>),
    I64(Vec<&'a [i64]>),
}

/// The rows of a call. Functions that read none do so as of doubles.
pub(crate) fn rows<'a>(columns: &Columns<'a>) -> Result<Rows<'a>, FunctionFault> {
    let count = columns.row_count();
    let first = (count > 0).then(|| columns.row(0));
    Ok(match first {
        Some(Values::F32(_)) => Rows::F32((0..count).map(|i| columns.typed(i)).collect::<Result<_, _>>()?),
        Some(Values::I64(_)) => Rows::I64((0..count).map(|i| columns.typed(i)).collect::<Result<_, _>>()?),
        _ => Rows::F64((0..count).map(|i| columns.typed(i)).collect::<Result<_, _>>()?),
    })
}

impl PullFunction for WasmSum {
    type Argument = Vec<f64>;
    type Part = RangeSum;
    type Answer = f64;

    says_its_facts!();

    fn read(&self, argument: &Vec<f64>, columns: &Columns<'_>) -> Result<RangeSum, FunctionFault> {
        let element = columns.element_type().map_or(1, place);
        let facts = &self.facts;
        let rows = rows(columns)?;
        self.pool.with(
            || self.ready(),
            |ready| match &rows {
                Rows::F32(rows) => ready.sum(facts, element, argument, columns, rows),
                Rows::F64(rows) => ready.sum(facts, element, argument, columns, rows),
                Rows::I64(rows) => ready.sum(facts, element, argument, columns, rows),
            },
        )
    }

    fn merge(
        &self,
        _argument: &Vec<f64>,
        _shape: &Shape,
        parts: Vec<RangeSum>,
    ) -> Result<f64, FunctionFault> {
        RangeSum::total(&parts)
    }
}
