//! Pull functions of a module with parts of their own: `read` makes a part of some columns, `merge` makes one of two
//! neighbours, at the partition and at the agent alike, `answer` makes numbers of the last.
//!
//! Blocks end at multiples of [`BLOCK_COLUMNS`], counted from the first column of the matrix, and at the ends of partitions, so
//! `merge` must be associative for the answer to be the same for every cut; sums of floating-point numbers are not, for
//! them there is [`crate::sum`].

use std::iter;

use bytemuck::Pod;
use matrix::function::data::Data;
use matrix::function::{Columns, Count, Shape};
use matrix::{FunctionFault, PullFunction};
use wasmtime::TypedFunc;

use crate::module::{Facts, says_its_facts};
use crate::names::{AnswerArguments, Kind, MergeArguments, ReadArguments, place};
use crate::push::{put_argument, put_rows};
use crate::sandbox::{Layout, Pool, Recipe, Sandbox};
use crate::sum::{Rows, rows};

/// Columns that are read in one call.
pub const BLOCK_COLUMNS: u64 = 4096;

/// A pull function of a module. The argument and the answer are lists of numbers.
pub struct WasmPull {
    facts: Facts,
    recipe: Recipe,
    pool: Pool<Ready>,
}

/// Bytes that only the module understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(Vec<u8>);

impl Data for Bytes {
    fn pack(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        Ok(Self(std::mem::take(bytes).to_vec()))
    }

    fn is_finite(&self) -> bool {
        true
    }
}

/// An instance with the functions that are called.
struct Ready {
    sandbox: Sandbox,
    read: [Option<TypedFunc<ReadArguments, u64>>; 3],
    merge: TypedFunc<MergeArguments, u64>,
    answer: Option<TypedFunc<AnswerArguments, u64>>,
}

impl WasmPull {
    pub(crate) fn new(facts: Facts, recipe: Recipe) -> Self {
        Self { facts, recipe, pool: Pool::new() }
    }

    fn ready(&self) -> Result<Ready, FunctionFault> {
        let mut sandbox = self.recipe.sandbox()?;
        let read = self.facts.code(&mut sandbox, Kind::Read)?;
        let lost = |error: crate::Error| FunctionFault::own(error.to_string());
        let name = &self.facts.name;
        let merge = sandbox.function(&format!("merge:{name}")).map_err(lost)?;
        let answer = if self.facts.answers {
            Some(sandbox.function(&format!("answer:{name}")).map_err(lost)?)
        } else {
            None
        };
        Ok(Ready { sandbox, read, merge, answer })
    }
}

impl Ready {
    /// The part of all columns of a partition.
    fn part<E: Pod>(
        &mut self,
        facts: &Facts,
        element: usize,
        argument: &[f64],
        columns: &Columns<'_>,
        rows: &[&[E]],
    ) -> Result<Bytes, FunctionFault> {
        let range = columns.range();
        let mut part: Option<Bytes> = None;
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min((start / BLOCK_COLUMNS + 1) * BLOCK_COLUMNS);
            let block = (start - range.start) as usize..(end - range.start) as usize;
            let own: Vec<&[E]> = rows.iter().map(|row| &row[block.clone()]).collect();
            let next = self.read(facts, element, argument, start, block.len(), &own)?;
            part = Some(match part {
                None => next,
                Some(left) => self.merge(argument, &left, &next)?,
            });
            start = end;
        }
        part.ok_or_else(|| FunctionFault::own("there are no columns to read"))
    }

    fn read<E: Pod>(
        &mut self,
        facts: &Facts,
        element: usize,
        argument: &[f64],
        start: u64,
        len: usize,
        rows: &[&[E]],
    ) -> Result<Bytes, FunctionFault> {
        let mut layout = Layout::default();
        let at_argument = layout.place(size_of_val(argument));
        let at_from = layout.place(rows.len() * len * size_of::<E>());
        let area = self.sandbox.area(layout.bytes())?;
        let (at_argument, at_from) = (area + at_argument, area + at_from);
        let memory = self.sandbox.bytes();
        put_argument(memory, at_argument, argument);
        put_rows(memory, at_from, rows.iter().copied());
        let arguments =
            (at_from as u32, rows.len() as u32, len as u32, start, at_argument as u32, argument.len() as u32);
        let what = Kind::Read.word();
        let function = self.read[element].as_ref().ok_or_else(|| facts.no_code(element))?;
        let place = self.sandbox.call(what, function, len, arguments)?;
        self.sandbox.named(what, place).map(|bytes| Bytes(bytes.to_vec()))
    }

    fn merge(&mut self, argument: &[f64], left: &Bytes, right: &Bytes) -> Result<Bytes, FunctionFault> {
        let mut layout = Layout::default();
        let at_argument = layout.place(size_of_val(argument));
        let at_left = layout.place(left.0.len());
        let at_right = layout.place(right.0.len());
        let area = self.sandbox.area(layout.bytes())?;
        let (at_argument, at_left, at_right) = (area + at_argument, area + at_left, area + at_right);
        let memory = self.sandbox.bytes();
        put_argument(memory, at_argument, argument);
        put_rows(memory, at_left, iter::once(&left.0[..]));
        put_rows(memory, at_right, iter::once(&right.0[..]));
        let arguments = (
            at_left as u32,
            left.0.len() as u32,
            at_right as u32,
            right.0.len() as u32,
            at_argument as u32,
            argument.len() as u32,
        );
        // Parts may be as long as a block of columns.
        let place = self.sandbox.call("merge", &self.merge, BLOCK_COLUMNS as usize, arguments)?;
        self.sandbox.named("merge", place).map(|bytes| Bytes(bytes.to_vec()))
    }

    fn answer(&mut self, argument: &[f64], part: &Bytes) -> Result<Vec<f64>, FunctionFault> {
        let Some(answer) = &self.answer else { return doubles("the last part", &part.0) };
        let mut layout = Layout::default();
        let at_argument = layout.place(size_of_val(argument));
        let at_part = layout.place(part.0.len());
        let area = self.sandbox.area(layout.bytes())?;
        let (at_argument, at_part) = (area + at_argument, area + at_part);
        let memory = self.sandbox.bytes();
        put_argument(memory, at_argument, argument);
        put_rows(memory, at_part, iter::once(&part.0[..]));
        let arguments = (at_part as u32, part.0.len() as u32, at_argument as u32, argument.len() as u32);
        let place = self.sandbox.call("answer", answer, BLOCK_COLUMNS as usize, arguments)?;
        doubles("answer", self.sandbox.named("answer", place)?)
    }
}

/// The numbers that bytes are.
fn doubles(what: &str, bytes: &[u8]) -> Result<Vec<f64>, FunctionFault> {
    let (numbers, rest) = bytes.as_chunks::<8>();
    if rest.is_empty() {
        return Ok(numbers.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect());
    }
    let actual = format!("{} bytes", bytes.len());
    Err(FunctionFault::argument(format!("{what} of the module"), actual, "doubles, 8 bytes each"))
}

impl PullFunction for WasmPull {
    type Argument = Vec<f64>;
    type Part = Bytes;
    type Answer = Vec<f64>;

    says_its_facts!();

    fn read(&self, argument: &Vec<f64>, columns: &Columns<'_>) -> Result<Bytes, FunctionFault> {
        let element = columns.element_type().map_or(1, place);
        let facts = &self.facts;
        let rows = rows(columns)?;
        self.pool.with(
            || self.ready(),
            |ready| match &rows {
                Rows::F32(rows) => ready.part(facts, element, argument, columns, rows),
                Rows::F64(rows) => ready.part(facts, element, argument, columns, rows),
                Rows::I64(rows) => ready.part(facts, element, argument, columns, rows),
            },
        )
    }

    fn merge(
        &self,
        argument: &Vec<f64>,
        _shape: &Shape,
        parts: Vec<Bytes>,
    ) -> Result<Vec<f64>, FunctionFault> {
        let mut parts = parts.into_iter();
        let first = parts.next().ok_or_else(|| FunctionFault::own("there are no columns to read"))?;
        self.pool.with(
            || self.ready(),
            |ready| {
                let part = parts.try_fold(first, |left, right| ready.merge(argument, &left, &right))?;
                ready.answer(argument, &part)
            },
        )
    }
}
