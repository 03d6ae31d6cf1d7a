//! Runs functions on partitions: the same code for one process and for the lanes of servers.
//!
//! A program processes a partition in blocks of columns that stay in the cache from one step to the next. Before a
//! block is changed, its changed rows are saved, so that everything can be restored when a later block or the code of a
//! user fails. Rows that are overwritten are written to new memory instead.

use std::cmp::Ordering;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::element::Element;
use crate::error::Error;
use crate::function::call::panic_message;
use crate::function::view::{Block, TypedBlock};
use crate::function::{BoundPush, Columns, FunctionFault, PushProgram};
use crate::rule::RuleElement;
use crate::staged::PushId;
use crate::storage::Table;

/// Number of columns of a block: a few rows of it fit in the first-level cache.
const BLOCK_COLUMNS: usize = 4096;

/// A partition keeps the memory of a replaced row for the next one if it has at least so many rows, so that this takes
/// little beside them.
const ROWS_WITH_SPARE: usize = 8;

/// What happens to the changes of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunMode {
    /// They are undone block by block: only faults matter.
    Try,
    /// They are kept, unless there is a fault.
    Commit,
}

/// A program that is staged until its clock has ended.
#[derive(Clone, Debug)]
pub(crate) struct StagedProgram {
    pub(crate) id: PushId,
    pub(crate) program: Arc<PushProgram>,
    /// The share of the arguments that counts for this partition, in bytes.
    pub(crate) argument_bytes: usize,
}

/// Runs a program on the tables of a partition. An error restores them. `old_rows` is a buffer.
///
/// A row that is overwritten before it is read ([`PushProgram::overwritten_rows`]) gets new memory, which replaces the
/// old when all blocks have succeeded. So its old values need not be saved. `spare` is memory for such a row, if there
/// is some, and receives that of a row that was replaced.
pub(crate) fn run_program<E: RuleElement>(
    program: &PushProgram,
    tables: &mut [Table<E>],
    mode: RunMode,
    old_rows: &mut Vec<E>,
    spare: &mut Vec<E>,
) -> Result<(), Error> {
    if let Some(change) = &program.row_change {
        return change.run(&mut tables[0], mode).map_err(|fault| program.row_error(fault));
    }
    let Some((start, len)) = columns_of(tables) else { return Ok(()) };
    let (saved_rows, new_rows) = match mode {
        RunMode::Try => (&program.written_rows, &[][..]),
        RunMode::Commit => (&program.changed_rows, &program.overwritten_rows[..]),
    };
    old_rows.clear();
    if mode == RunMode::Commit {
        old_rows.reserve(len * saved_rows.len());
    }
    let mut rows = rows_of(tables, program, new_rows);
    let mut new_values: Vec<Vec<E>> = new_rows.iter().map(|_| memory_of_row(spare, len)).collect();
    let mut at_step = 0;
    let mut changed = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut buffers = Buffers::new(rows.len());
        for block in blocks(len) {
            for row in saved_rows {
                old_rows.extend_from_slice(&rows[*row][block.clone()]);
            }
            changed = block.end;
            let mut parts = parts_of_block(&mut rows, new_rows, &mut new_values, block.clone());
            run_block(program, &mut parts, start + block.start as u64, &mut buffers, &mut at_step)?;
            if mode == RunMode::Try {
                restore_block(saved_rows, &mut rows, block.clone(), old_rows);
                old_rows.clear();
                changed = 0;
            }
        }
        Ok(())
    }));
    let fault = match outcome {
        Ok(Ok(())) => {
            for (row, values) in new_rows.iter().zip(new_values) {
                let replaced = tables[program.rows[*row] as usize].replace_contiguous_values(values);
                if tables.len() >= ROWS_WITH_SPARE {
                    *spare = replaced;
                }
            }
            return Ok(());
        }
        Ok(Err(fault)) => fault,
        Err(panic) => FunctionFault::Panicked { message: panic_message(&*panic) },
    };
    restore_all_blocks(saved_rows, &mut rows, mode, changed, old_rows);
    Err(program.error(at_step, fault))
}

/// Takes the spare memory if it has the right size, or allocates: asking the system for pages costs more than writing
/// them.
fn memory_of_row<E>(spare: &mut Vec<E>, len: usize) -> Vec<E> {
    let mut values = std::mem::take(spare);
    values.clear();
    if values.capacity() == len { values } else { Vec::with_capacity(len) }
}

/// Cuts the columns of a block out of the rows. Rows with new memory have it up to the end of the block.
fn parts_of_block<'a, E: Element>(
    rows: &'a mut [&mut [E]],
    new_rows: &[usize],
    new_values: &'a mut [Vec<E>],
    block: Range<usize>,
) -> Vec<&'a mut [E]> {
    let mut parts: Vec<&mut [E]> = Vec::with_capacity(rows.len());
    for row in rows {
        parts.push(if row.is_empty() { &mut [] } else { &mut row[block.clone()] });
    }
    for (row, values) in new_rows.iter().zip(new_values) {
        // The block stays in the cache until it is overwritten.
        values.resize(block.end, E::ZERO);
        parts[*row] = &mut values[block.clone()];
    }
    parts
}

/// Runs all steps on a block, whose first column is `start`. `at_step` receives the index of the current step.
fn run_block<E: BlockElement>(
    program: &PushProgram,
    rows: &mut [&mut [E]],
    start: u64,
    buffers: &mut Buffers<E>,
    at_step: &mut usize,
) -> Result<(), FunctionFault> {
    buffers.are_finite.fill(false);
    for (i, step) in program.functions.iter().enumerate() {
        *at_step = i;
        let is_checked = !buffers.result_is_finite(step);
        if !run_in_place(step, rows, start, is_checked, buffers)? {
            buffers.flush_scratch_row(rows);
            run_step(step, rows, start, is_checked, &mut buffers.row_copies)?;
        }
        step.into.iter().for_each(|row| buffers.are_finite[*row] = true);
    }
    buffers.flush_scratch_row(rows);
    Ok(())
}

/// Returns the blocks of a partition of `len` columns.
fn blocks(len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(BLOCK_COLUMNS).map(move |start| start..len.min(start + BLOCK_COLUMNS))
}

fn restore_all_blocks<E: Element>(
    saved_rows: &[usize],
    rows: &mut [&mut [E]],
    mode: RunMode,
    changed: usize,
    old_rows: &[E],
) {
    if changed == 0 {
        return;
    }
    let last = (changed - 1) / BLOCK_COLUMNS * BLOCK_COLUMNS;
    if mode == RunMode::Try {
        restore_block(saved_rows, rows, last..changed, old_rows);
        return;
    }
    let mut old_rows = old_rows;
    for block in blocks(changed) {
        let (own, rest) = old_rows.split_at(block.len() * saved_rows.len());
        restore_block(saved_rows, rows, block, own);
        old_rows = rest;
    }
}

/// Restores a block from its saved values.
fn restore_block<E: Element>(written: &[usize], rows: &mut [&mut [E]], block: Range<usize>, old_rows: &[E]) {
    for (row, old_rows) in written.iter().zip(old_rows.chunks_exact(block.len())) {
        rows[*row][block.clone()].copy_from_slice(old_rows);
    }
}

/// Buffers that are reused from block to block.
struct Buffers<E> {
    /// Copies of rows that are both read and written.
    row_copies: Vec<E>,
    /// Holds the block of one row that steps change in place. The row alternates between the table and this buffer, so
    /// that a step needs no copy.
    scratch_row: Vec<E>,
    /// The row whose current block is in `scratch_row` instead of the table.
    scratch_row_index: Option<usize>,
    /// For each row, whether an earlier step has left finite values in the whole block.
    are_finite: Vec<bool>,
}

impl<E: Element> Buffers<E> {
    fn new(row_count: usize) -> Self {
        let are_finite = vec![false; row_count];
        Self { row_copies: Vec::new(), scratch_row: Vec::new(), scratch_row_index: None, are_finite }
    }

    /// Whether the results of a step are finite without a check. The values of the table are never assumed to be
    /// finite.
    fn result_is_finite(&self, step: &BoundPush) -> bool {
        step.keeps_finite && step.from.iter().all(|row| self.are_finite[*row])
    }

    /// Copies the block in the scratch row back to the table.
    fn flush_scratch_row(&mut self, rows: &mut [&mut [E]]) {
        if let Some(row) = self.scratch_row_index.take() {
            let len = rows[row].len();
            rows[row].copy_from_slice(&self.scratch_row[..len]);
        }
    }
}

/// Runs a step on a block if it changes one row in place and overwrites all of it. It reads the row from the table and
/// writes the scratch row, or the reverse. Returns false without a change when the step does not fit or another row is
/// in the scratch row.
fn run_in_place<E: BlockElement>(
    step: &BoundPush,
    rows: &mut [&mut [E]],
    start: u64,
    is_checked: bool,
    buffers: &mut Buffers<E>,
) -> Result<bool, FunctionFault> {
    let [row] = step.into[..] else { return Ok(false) };
    let other_away = buffers.scratch_row_index.is_some_and(|away| away != row);
    if other_away || !step.overwrites || !step.from.contains(&row) {
        return Ok(false);
    }
    let len = rows[row].len();
    if buffers.scratch_row.len() < len {
        buffers.scratch_row.resize(len, E::ZERO);
    }
    let (before, rest) = rows.split_at_mut(row);
    let (own, behind) = rest.split_first_mut().expect("a step has rows of its program");
    let home = &mut **own;
    let away = &mut buffers.scratch_row[..len];
    let is_away = buffers.scratch_row_index.is_some();
    let (current, next) = if is_away { (away, home) } else { (home, away) };
    let of = |from: &usize| match from.cmp(&row) {
        Ordering::Less => &*before[*from],
        Ordering::Equal => &*current,
        Ordering::Greater => &*behind[*from - row - 1],
    };
    let from = step.from.iter().map(of).collect();
    change(step, TypedBlock { start, from, into: vec![next], into_rows: &step.into_rows }, is_checked)?;
    buffers.scratch_row_index = if is_away { None } else { Some(row) };
    Ok(true)
}

/// Runs a step on a block. `aliased` is a buffer: rows that are both read and written are read from a copy in it.
fn run_step<E: BlockElement>(
    step: &BoundPush,
    rows: &mut [&mut [E]],
    start: u64,
    is_checked: bool,
    aliased: &mut Vec<E>,
) -> Result<(), FunctionFault> {
    let len = step.from.iter().chain(&step.into).next().map_or(0, |row| rows[*row].len());
    aliased.clear();
    for row in step.from.iter().filter(|row| step.into.contains(row)) {
        aliased.extend_from_slice(rows[*row]);
    }
    let mut parts: Vec<Option<&mut [E]>> = rows.iter_mut().map(|row| Some(&mut **row)).collect();
    let into: Vec<&mut [E]> =
        step.into.iter().map(|row| parts[*row].take().expect("each row is written once")).collect();
    let mut copies = aliased.chunks_exact(len.max(1));
    let from: Vec<&[E]> = step
        .from
        .iter()
        .map(|row| match &parts[*row] {
            Some(part) => &**part,
            None => copies.next().expect("every row that is also written was copied"),
        })
        .collect();
    change(step, TypedBlock { start, from, into, into_rows: &step.into_rows }, is_checked)
}

/// Calls the function of a step.
fn change<E: BlockElement>(
    step: &BoundPush,
    typed: TypedBlock<'_, E>,
    is_checked: bool,
) -> Result<(), FunctionFault> {
    let mut view = E::block(typed);
    step.function.change(&mut view)?;
    match E::typed(view) {
        Some(typed) if is_checked => check_finite(&typed),
        Some(_) => Ok(()),
        None => Err(FunctionFault::user(
            "the function has put another block in the place of the one it was given",
        )),
    }
}

fn check_finite<E: Element>(block: &TypedBlock<'_, E>) -> Result<(), FunctionFault> {
    for (row, values) in block.into_rows.iter().zip(&block.into) {
        if let Some(at) = E::first_non_finite(values) {
            let inputs = block.from.iter().map(|from| from[at].to_f64()).collect();
            let (column, value) = (block.start + at as u64, values[at].to_f64());
            return Err(FunctionFault::NonFinite { row: *row, column, value, inputs });
        }
    }
    Ok(())
}

/// Returns the columns of a partition for a pull function.
pub(crate) fn columns<'a, E: RuleElement>(tables: &'a [Table<E>], rows: &[u32]) -> Option<Columns<'a>> {
    let (start, len) = columns_of(tables)?;
    let rows = rows
        .iter()
        .filter_map(|row| tables[*row as usize].contiguous_values())
        .map(|(_, line)| E::values(line));
    Some(Columns::new(start, len, rows.collect()))
}

/// Returns the first column of a partition and the number of its columns; `None` when there are none.
fn columns_of<E: RuleElement>(tables: &[Table<E>]) -> Option<(u64, usize)> {
    let (start, line) = tables.first()?.contiguous_values()?;
    (!line.is_empty()).then_some((start, line.len()))
}

/// Returns the rows of a program. Those with the indices `new_rows` are empty.
fn rows_of<'a, E: RuleElement>(
    mut tables: &'a mut [Table<E>],
    program: &PushProgram,
    new_rows: &[usize],
) -> Vec<&'a mut [E]> {
    let mut rows = Vec::with_capacity(program.rows.len());
    let mut passed = 0;
    for (i, row) in program.rows.iter().enumerate() {
        let (own, rest) = tables.split_at_mut(*row as usize - passed + 1);
        passed = *row as usize + 1;
        tables = rest;
        if new_rows.contains(&i) {
            rows.push(&mut [][..]);
            continue;
        }
        rows.push(
            own.last_mut()
                .and_then(Table::contiguous_values_mut)
                .expect("functions are bound to dense matrices alone"),
        );
    }
    rows
}

/// An element type that blocks can have.
pub(crate) trait BlockElement: Element {
    fn block(typed: TypedBlock<'_, Self>) -> Block<'_>;
    fn typed(block: Block<'_>) -> Option<TypedBlock<'_, Self>>;
}

macro_rules! blocked {
    ($type:ty, $variant:ident) => {
        impl BlockElement for $type {
            fn block(typed: TypedBlock<'_, Self>) -> Block<'_> {
                Block::$variant(typed)
            }

            fn typed(block: Block<'_>) -> Option<TypedBlock<'_, Self>> {
                if let Block::$variant(typed) = block { Some(typed) } else { None }
            }
        }
    };
}

blocked!(f32, F32);
blocked!(f64, F64);
blocked!(i64, I64);
blocked!(i32, I32);
blocked!(u32, U32);
