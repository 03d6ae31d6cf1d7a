//! Pull functions of a module with partial answers of their own. `read` makes a partial answer from some columns,
//! `merge` makes one from two neighbours, both at the partition and at the agent, and `answer` makes numbers from the
//! last one.
//!
//! Blocks end at multiples of [`BLOCK_COLUMNS`], counted from the first column of the matrix, and at the ends of
//! partitions. So `merge` must be associative for the answer to be the same for every partitioning. Sums of
//! floating-point numbers are not associative; use [`crate::sum`] for them.

use std::iter;

use bytemuck::Pod;
use matrix::function::value::FunctionValue;
use matrix::function::{Arity, Columns, Shape};
use matrix::{ElementType, FunctionFault, PullFunction, with_element_type};
use wasmtime::TypedFunc;

use crate::exports::{AnswerArguments, ExportKind, MergeArguments, ReadArguments, TYPE_COUNT, type_index};
use crate::memory::{put_argument, put_rows, typed_rows};
use crate::sandbox::{InstancePool, Layout, Sandbox, SandboxFactory};
use crate::signature::{FunctionSignature, signature_methods};

/// Number of columns that one call reads.
pub const BLOCK_COLUMNS: u64 = 4096;

/// A pull function of a module. The argument and the answer are lists of numbers.
pub struct WasmPull {
    signature: FunctionSignature,
    factory: SandboxFactory,
    pool: InstancePool<PullInstance>,
}

/// A partial answer in a format that only the module knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpaquePartial(Vec<u8>);

impl FunctionValue for OpaquePartial {
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

/// An instance with its exported functions.
struct PullInstance {
    sandbox: Sandbox,
    read: [Option<TypedFunc<ReadArguments, u64>>; TYPE_COUNT],
    merge: TypedFunc<MergeArguments, u64>,
    answer: Option<TypedFunc<AnswerArguments, u64>>,
}

impl WasmPull {
    pub(crate) fn new(facts: FunctionSignature, recipe: SandboxFactory) -> Self {
        Self { signature: facts, factory: recipe, pool: InstancePool::new() }
    }

    fn instantiate(&self) -> Result<PullInstance, FunctionFault> {
        let mut sandbox = self.factory.instantiate()?;
        let read = self.signature.code(&mut sandbox, ExportKind::Read)?;
        let lost = |error: crate::Error| FunctionFault::user(error.to_string());
        let name = &self.signature.name;
        let merge = sandbox.function(&format!("merge:{name}")).map_err(lost)?;
        let answer = if self.signature.has_answer {
            Some(sandbox.function(&format!("answer:{name}")).map_err(lost)?)
        } else {
            None
        };
        Ok(PullInstance { sandbox, read, merge, answer })
    }
}

impl PullInstance {
    /// Computes the partial answer for all columns of a partition.
    fn partial<E: Pod>(
        &mut self,
        facts: &FunctionSignature,
        element: usize,
        argument: &[f64],
        columns: &Columns<'_>,
        rows: &[&[E]],
    ) -> Result<OpaquePartial, FunctionFault> {
        let range = columns.range();
        let mut part: Option<OpaquePartial> = None;
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
        part.ok_or_else(|| FunctionFault::user("there are no columns to read"))
    }

    fn read<E: Pod>(
        &mut self,
        facts: &FunctionSignature,
        element: usize,
        argument: &[f64],
        start: u64,
        len: usize,
        rows: &[&[E]],
    ) -> Result<OpaquePartial, FunctionFault> {
        let mut layout = Layout::default();
        let at_argument = layout.reserve(size_of_val(argument));
        let at_from = layout.reserve(rows.len() * len * size_of::<E>());
        let area = self.sandbox.area(layout.bytes())?;
        let (at_argument, at_from) = (area + at_argument, area + at_from);
        let memory = self.sandbox.bytes();
        put_argument(memory, at_argument, argument);
        put_rows(memory, at_from, rows.iter().copied());
        let arguments =
            (at_from as u32, rows.len() as u32, len as u32, start, at_argument as u32, argument.len() as u32);
        let what = ExportKind::Read.prefix();
        let function = self.read[element].as_ref().ok_or_else(|| facts.missing_code(element))?;
        let packed = self.sandbox.call(what, function, len, arguments)?;
        self.sandbox.packed_slice(what, packed).map(|bytes| OpaquePartial(bytes.to_vec()))
    }

    fn merge(
        &mut self,
        argument: &[f64],
        left: &OpaquePartial,
        right: &OpaquePartial,
    ) -> Result<OpaquePartial, FunctionFault> {
        let mut layout = Layout::default();
        let at_argument = layout.reserve(size_of_val(argument));
        let at_left = layout.reserve(left.0.len());
        let at_right = layout.reserve(right.0.len());
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
        // A partial answer may be as long as a block of columns.
        let packed = self.sandbox.call("merge", &self.merge, BLOCK_COLUMNS as usize, arguments)?;
        self.sandbox.packed_slice("merge", packed).map(|bytes| OpaquePartial(bytes.to_vec()))
    }

    fn answer(&mut self, argument: &[f64], part: &OpaquePartial) -> Result<Vec<f64>, FunctionFault> {
        let Some(answer) = &self.answer else { return decode_numbers("the last part", &part.0) };
        let mut layout = Layout::default();
        let at_argument = layout.reserve(size_of_val(argument));
        let at_part = layout.reserve(part.0.len());
        let area = self.sandbox.area(layout.bytes())?;
        let (at_argument, at_part) = (area + at_argument, area + at_part);
        let memory = self.sandbox.bytes();
        put_argument(memory, at_argument, argument);
        put_rows(memory, at_part, iter::once(&part.0[..]));
        let arguments = (at_part as u32, part.0.len() as u32, at_argument as u32, argument.len() as u32);
        let packed = self.sandbox.call("answer", answer, BLOCK_COLUMNS as usize, arguments)?;
        decode_numbers("answer", self.sandbox.packed_slice("answer", packed)?)
    }
}

/// Decodes little-endian doubles.
fn decode_numbers(what: &str, bytes: &[u8]) -> Result<Vec<f64>, FunctionFault> {
    let (numbers, rest) = bytes.as_chunks::<8>();
    if rest.is_empty() {
        return Ok(numbers.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect());
    }
    let actual = format!("{} bytes", bytes.len());
    Err(FunctionFault::argument(format!("{what} of the module"), actual, "doubles, 8 bytes each"))
}

impl PullFunction for WasmPull {
    type Argument = Vec<f64>;
    type Partial = OpaquePartial;
    type Answer = Vec<f64>;

    signature_methods!();

    fn read(&self, argument: &Vec<f64>, columns: &Columns<'_>) -> Result<OpaquePartial, FunctionFault> {
        // A function that reads no rows gets an empty list of doubles.
        let element = columns.element_type().unwrap_or(ElementType::F64);
        let (facts, index) = (&self.signature, type_index(element));
        with_element_type!(element, E => {
            let rows = typed_rows::<E>(columns)?;
            self.pool.with(|| self.instantiate(), |ready| ready.partial(facts, index, argument, columns, &rows))
        })
    }

    fn merge(
        &self,
        argument: &Vec<f64>,
        _shape: &Shape,
        parts: Vec<OpaquePartial>,
    ) -> Result<Vec<f64>, FunctionFault> {
        let mut parts = parts.into_iter();
        let first = parts.next().ok_or_else(|| FunctionFault::user("there are no columns to read"))?;
        self.pool.with(
            || self.instantiate(),
            |ready| {
                let part = parts.try_fold(first, |left, right| ready.merge(argument, &left, &right))?;
                ready.answer(argument, &part)
            },
        )
    }
}
