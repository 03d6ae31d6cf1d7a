//! Sums over columns. A module writes the term of each column and the host adds them, so that the sum has the same
//! bytes for any partitioning ([`RangeSum`]).

use bytemuck::Pod;
use matrix::function::sum::RangeSum;
use matrix::function::{Arity, Columns, Shape};
use matrix::{ElementType, FunctionFault, PullFunction, with_element_type};
use wasmtime::TypedFunc;

use crate::exports::{ExportKind, TYPE_COUNT, TermsArguments, type_index};
use crate::memory::{put_argument, put_rows, typed_rows};
use crate::sandbox::{InstancePool, Layout, Sandbox, SandboxFactory, check_status};
use crate::signature::{FunctionSignature, signature_methods};

/// A sum of a module. The argument is a list of numbers, the answer one number.
pub struct WasmSum {
    signature: FunctionSignature,
    factory: SandboxFactory,
    pool: InstancePool<SumInstance>,
}

/// An instance with its exported functions.
struct SumInstance {
    sandbox: Sandbox,
    terms: [Option<TypedFunc<TermsArguments, i32>>; TYPE_COUNT],
}

impl WasmSum {
    pub(crate) fn new(facts: FunctionSignature, recipe: SandboxFactory) -> Self {
        Self { signature: facts, factory: recipe, pool: InstancePool::new() }
    }

    fn instantiate(&self) -> Result<SumInstance, FunctionFault> {
        let mut sandbox = self.factory.instantiate()?;
        let terms = self.signature.code(&mut sandbox, ExportKind::Terms)?;
        Ok(SumInstance { sandbox, terms })
    }
}

impl SumInstance {
    /// Writes the terms of some columns, the first of which is `start`.
    fn terms<E: Pod>(
        &mut self,
        facts: &FunctionSignature,
        element: usize,
        argument: &[f64],
        rows: &[&[E]],
        start: u64,
        terms: &mut [f64],
    ) -> Result<(), FunctionFault> {
        let len = terms.len();
        let mut layout = Layout::default();
        let at_argument = layout.reserve(size_of_val(argument));
        let at_from = layout.reserve(rows.len() * len * size_of::<E>());
        let at_terms = layout.reserve(size_of_val(terms));
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
        let what = ExportKind::Terms.prefix();
        let function = self.terms[element].as_ref().ok_or_else(|| facts.missing_code(element))?;
        let status = self.sandbox.call(what, function, len, arguments)?;
        check_status(what, status)?;
        let bytes = &self.sandbox.bytes()[at_terms..at_terms + size_of_val(terms)];
        bytemuck::cast_slice_mut(terms).copy_from_slice(bytes);
        Ok(())
    }

    fn sum<E: Pod>(
        &mut self,
        facts: &FunctionSignature,
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

impl PullFunction for WasmSum {
    type Argument = Vec<f64>;
    type Partial = RangeSum;
    type Answer = f64;

    signature_methods!();

    fn read(&self, argument: &Vec<f64>, columns: &Columns<'_>) -> Result<RangeSum, FunctionFault> {
        // A function that reads no rows gets an empty list of doubles.
        let element = columns.element_type().unwrap_or(ElementType::F64);
        let (facts, index) = (&self.signature, type_index(element));
        with_element_type!(element, E => {
            let rows = typed_rows::<E>(columns)?;
            self.pool.with(|| self.instantiate(), |ready| ready.sum(facts, index, argument, columns, &rows))
        })
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
