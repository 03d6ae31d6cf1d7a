//! Push functions of a module: the rows of a block are copied into the memory of the module, `change` runs, and the
//! written rows are copied back.

use std::ops::Range;

use bytemuck::Pod;
use matrix::function::{Arity, Block, Shape, TypedBlock};
use matrix::{FunctionFault, PushFunction, with_block};
use wasmtime::TypedFunc;

use crate::exports::{ChangeArguments, ExportKind, TYPE_COUNT, type_index};
use crate::memory::{put_argument, put_rows};
use crate::sandbox::{InstancePool, Layout, Sandbox, SandboxFactory, check_status};
use crate::signature::{FunctionSignature, signature_methods};

/// Number of columns that are copied into the module at a time: a few rows of them, and their copies, fit in the
/// first-level cache.
const CHUNK: usize = 4096;

/// A push function of a module. The argument is a list of numbers.
pub struct WasmPush {
    signature: FunctionSignature,
    factory: SandboxFactory,
    pool: InstancePool<PushInstance>,
}

/// An instance with its exported functions.
struct PushInstance {
    sandbox: Sandbox,
    change: [Option<TypedFunc<ChangeArguments, i32>>; TYPE_COUNT],
}

impl WasmPush {
    pub(crate) fn new(facts: FunctionSignature, recipe: SandboxFactory) -> Self {
        Self { signature: facts, factory: recipe, pool: InstancePool::new() }
    }

    fn instantiate(&self) -> Result<PushInstance, FunctionFault> {
        let mut sandbox = self.factory.instantiate()?;
        let change = self.signature.code(&mut sandbox, ExportKind::Change)?;
        Ok(PushInstance { sandbox, change })
    }

    fn change_block<E: Pod>(
        &self,
        argument: &[f64],
        block: &mut TypedBlock<'_, E>,
        element: usize,
    ) -> Result<(), FunctionFault> {
        let len = block.len();
        if len == 0 {
            return Ok(());
        }
        self.pool.with(
            || self.instantiate(),
            |ready| {
                (0..len).step_by(CHUNK).try_for_each(|start| {
                    let columns = start..len.min(start + CHUNK);
                    ready.change(&self.signature, argument, block, columns, element)
                })
            },
        )
    }
}

impl PushInstance {
    /// Changes some columns of a block.
    fn change<E: Pod>(
        &mut self,
        facts: &FunctionSignature,
        argument: &[f64],
        block: &mut TypedBlock<'_, E>,
        columns: Range<usize>,
        element: usize,
    ) -> Result<(), FunctionFault> {
        let len = columns.len();
        let row_bytes = len * size_of::<E>();
        let mut layout = Layout::default();
        let at_argument = layout.reserve(size_of_val(argument));
        let at_from = layout.reserve(block.from.len() * row_bytes);
        let at_into = layout.reserve(block.into.len() * row_bytes);
        let area = self.sandbox.area(layout.bytes())?;
        let (at_argument, at_from, at_into) = (area + at_argument, area + at_from, area + at_into);
        let memory = self.sandbox.bytes();
        put_argument(memory, at_argument, argument);
        put_rows(memory, at_from, block.from.iter().map(|row| &row[columns.clone()]));
        if !facts.overwrites {
            put_rows(memory, at_into, block.into.iter().map(|row| &row[columns.clone()]));
        }
        let arguments = (
            at_from as u32,
            block.from.len() as u32,
            at_into as u32,
            block.into.len() as u32,
            len as u32,
            block.start + columns.start as u64,
            at_argument as u32,
            argument.len() as u32,
        );
        let what = ExportKind::Change.prefix();
        let change = self.change[element].as_ref().ok_or_else(|| facts.missing_code(element))?;
        let status = self.sandbox.call(what, change, len, arguments)?;
        check_status(what, status)?;
        let memory = self.sandbox.bytes();
        for (row, bytes) in block.into.iter_mut().zip(memory[at_into..].chunks_exact(row_bytes)) {
            bytemuck::cast_slice_mut(&mut row[columns.clone()]).copy_from_slice(bytes);
        }
        Ok(())
    }
}

impl PushFunction for WasmPush {
    type Argument = Vec<f64>;

    signature_methods!();

    fn writes(&self) -> Arity {
        self.signature.writes
    }

    fn tries_first(&self) -> bool {
        self.signature.tries_first
    }

    fn overwrites(&self) -> bool {
        self.signature.overwrites
    }

    fn change(&self, argument: &Vec<f64>, block: &mut Block<'_>) -> Result<(), FunctionFault> {
        let element = type_index(block.element_type());
        with_block!(block, block => self.change_block(argument, block, element))
    }
}
