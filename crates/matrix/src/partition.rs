//! A partition: the tables of its block of a matrix, and the pushes and functions staged for them.

use std::sync::Arc;

use crate::clock::Clock;
use crate::error::Error;
use crate::function::{PushProgram, RunMode, StagedProgram, run_program};
use crate::lists::store::ListStore;
use crate::routed_keys::ValueOrder;
use crate::row_positions::PositionedRun;
use crate::rule::{PreparedRule, PushRule, RuleElement, RuleVisitor};
use crate::spec::MatrixSpec;
use crate::staged::{PushId, StagedPush, merge_pushes};
use crate::storage::Table;
use crate::storage::before_images::SnapshotId;
use crate::storage::rows::ABSENT;

/// Maximum number of free buffers that are kept for staged pushes.
const FREE_BUFFER_LIMIT: usize = 64;

/// One block of a matrix. By row: one table. By column: a table for each row, over a range of the columns.
#[derive(Debug)]
pub(crate) struct Partition<E> {
    number: u32,
    tables: Vec<Table<E>>,
    /// The lists of a list matrix, which has no tables.
    lists: Option<ListStore<E>>,
    /// Number of snapshots so far.
    snapshot_count: u64,
    rule: PushRule,
    columns: usize,
    /// Whether pushes wait for the end of their clock.
    stages_pushes: bool,
    staged: Vec<StagedPush<E>>,
    /// Functions that wait for the end of their clock, beside the pushes.
    staged_calls: Vec<StagedProgram>,
    /// The error of the first staged function that failed. Its caller has already returned, so the error goes to all
    /// readers.
    staged_failure: Option<Error>,
    free_buffers: Vec<StagedPush<E>>,
    /// Memory for a row that a function overwrites. It is not counted.
    spare_row: Vec<E>,
    merge_buffer: StagedPush<E>,
    /// Changes when positions become invalid: the tables were cleared, or rows have moved.
    generation: u64,
}

impl<E: RuleElement> Partition<E> {
    pub(crate) fn new(spec: &MatrixSpec, number: u32, tables: Vec<Table<E>>) -> Self {
        Self {
            number,
            tables,
            lists: spec.storage.has_lists().then(|| ListStore::new(spec)),
            snapshot_count: 0,
            rule: spec.rule,
            columns: spec.columns_of_table(),
            stages_pushes: spec.consistency.stages_pushes(),
            staged: Vec::new(),
            staged_calls: Vec::new(),
            staged_failure: None,
            free_buffers: Vec::new(),
            spare_row: Vec::new(),
            merge_buffer: StagedPush::default(),
            generation: 0,
        }
    }

    pub(crate) fn tables(&self) -> &[Table<E>] {
        &self.tables
    }

    pub(crate) fn lists_mut(&mut self) -> Option<&mut ListStore<E>> {
        self.lists.as_mut()
    }

    /// The lists of a list matrix.
    pub(crate) fn lists(&self) -> Option<&ListStore<E>> {
        self.lists.as_ref()
    }

    /// Runs a program on all tables. `old_rows` is a buffer.
    pub(crate) fn run(
        &mut self,
        program: &PushProgram,
        mode: RunMode,
        old_rows: &mut Vec<E>,
    ) -> Result<(), Error> {
        if let Some(write) = &program.list_write {
            let lists = self.lists.as_mut().expect("the call was checked");
            return match mode {
                RunMode::Try => Ok(()),
                RunMode::Commit => write.run(self.number, lists),
            };
        }
        run_program(program, &mut self.tables, mode, old_rows, &mut self.spare_row)
    }

    /// Merges what a read at `clock` sees. Returns the error of a staged function that failed, if any.
    pub(crate) fn prepare_read(&mut self, clock: Clock) -> Result<(), Error> {
        if let Some(lists) = &mut self.lists {
            lists.prepare_read()?;
        }
        if self.stages_pushes {
            self.merge_below(clock);
        }
        self.staged_failure.clone().map_or(Ok(()), Err)
    }

    /// Number of rows that exist, in all tables.
    pub(crate) fn row_count(&self) -> u64 {
        let listed = self.lists.as_ref().map_or(0, ListStore::row_count);
        self.tables.iter().map(|table| u64::from(table.row_count())).sum::<u64>() + listed
    }

    pub(crate) fn table_mut(&mut self, i: usize) -> &mut Table<E> {
        &mut self.tables[i]
    }

    /// Keeps the rows as they are now for a snapshot, until it ends.
    pub(crate) fn begin_snapshot(&mut self, records_changes: bool) -> SnapshotId {
        self.snapshot_count += 1;
        let id = SnapshotId(self.snapshot_count);
        self.tables.iter_mut().for_each(|table| table.begin_snapshot(id, records_changes));
        id
    }

    /// Frees what is kept for a snapshot.
    pub(crate) fn end_snapshot(&mut self, id: SnapshotId) {
        self.tables.iter_mut().for_each(|table| table.end_snapshot(id));
    }

    /// The staged pushes; `None` while functions are staged or one has failed.
    pub(crate) fn staged_pushes(&self) -> Option<&[StagedPush<E>]> {
        (self.staged_calls.is_empty() && self.staged_failure.is_none()).then_some(&self.staged)
    }

    /// Replaces all rows by those of a snapshot, and discards what is staged.
    pub(crate) fn restore(&mut self, id: SnapshotId) {
        self.tables.iter_mut().for_each(|table| table.restore(id));
        self.discard_staged();
    }

    /// Size of tables, staged pushes and staged arguments, in bytes.
    pub(crate) fn size_bytes(&self) -> u64 {
        let lists = self.lists.as_ref().map_or(0, ListStore::size_bytes);
        let tables: u64 = self.tables.iter().map(Table::bytes).sum::<u64>() + lists;
        let buffers = self.staged.iter().chain(&self.free_buffers).chain(std::iter::once(&self.merge_buffer));
        let staged: usize = buffers
            .map(|push| {
                push.keys.capacity() * 8
                    + push.positions.capacity() * 4
                    + push.values.capacity() * size_of::<E>()
            })
            .sum();
        let arguments: usize = self.staged_calls.iter().map(|call| call.argument_bytes).sum();
        tables + (staged + arguments) as u64
    }

    /// Resets all rows to their initial values, discards what is staged, and makes room for so many rows.
    pub(crate) fn clear(&mut self, row_count: u64) {
        if let Some(lists) = &mut self.lists {
            lists.clear();
        }
        let share = row_count as usize / self.tables.len().max(1);
        self.tables.iter_mut().for_each(|table| table.clear(share));
        self.discard_staged();
    }

    fn discard_staged(&mut self) {
        self.staged.clear();
        self.staged_calls.clear();
        self.staged_failure = None;
        self.generation += 1;
    }

    /// Invalidates the positions that callers have kept.
    pub(crate) fn invalidate_positions(&mut self) {
        self.generation += 1;
    }

    /// Reads the values of a run into `out`.
    pub(crate) fn pull(&self, run: &mut PositionedRun<'_>, out: &mut [E]) {
        let table = &self.tables[run.table as usize];
        if let ValueOrder::Contiguous { first, count } = run.order {
            let columns = self.columns;
            if table.pull_contiguous(run.keys, &mut out[first * columns..(first + count) * columns]) {
                return;
            }
        }
        self.clear_stale_positions(run.generation, run.positions);
        match run.order {
            ValueOrder::Contiguous { first, .. } => table.pull(run.keys, run.positions, out, |i| first + i),
            ValueOrder::Scattered(rows) => table.pull(run.keys, run.positions, out, |i| rows[i] as usize),
        }
    }

    /// Appends the values of a run, which has the caller's order, to `out`.
    pub(crate) fn pull_append(&self, run: &mut PositionedRun<'_>, out: &mut Vec<E>) {
        if self.tables[run.table as usize].append_contiguous(run.keys, out) {
            return;
        }
        let start = out.len();
        out.resize(start + run.keys.len() * self.columns, E::ZERO);
        self.pull(run, &mut out[start..]);
    }

    /// Merges a push at once, or stages it until its clock has ended.
    pub(crate) fn push(&mut self, mut run: PositionedRun<'_>, id: PushId, values: &[E]) {
        if self.stages_pushes { self.stage(&mut run, id, values) } else { self.apply(run, id.clock, values) }
    }

    fn apply(&mut self, run: PositionedRun<'_>, clock: Clock, values: &[E]) {
        self.clear_stale_positions(&mut *run.generation, run.positions);
        let PositionedRun { table, generation, .. } = run;
        let table = &mut self.tables[table as usize];
        let run = PositionedRun { generation: &mut self.generation, ..run };
        E::with_prepared_rule(&self.rule, clock, ApplyRun { columns: self.columns, table, run, values });
        *generation = self.generation;
    }

    fn stage(&mut self, run: &mut PositionedRun<'_>, id: PushId, values: &[E]) {
        self.clear_stale_positions(run.generation, run.positions);
        let mut push = self.free_buffers.pop().unwrap_or_default();
        push.id = id;
        push.table = run.table;
        push.generation = self.generation;
        push.keys.extend_from_slice(run.keys);
        push.positions.extend_from_slice(run.positions);
        run.order.gather(self.columns, values, &mut push.values);
        self.staged.push(push);
    }

    /// Stages functions, which `sharers` partitions share, until their clock has ended.
    pub(crate) fn stage_call(&mut self, name: PushId, program: &Arc<PushProgram>, sharers: usize) {
        let (program, bytes) = (Arc::clone(program), program.argument_bytes.div_ceil(sharers.max(1)));
        self.staged_calls.push(StagedProgram { id: name, program, argument_bytes: bytes });
    }

    /// Merges what is staged under stamps below `bound`: clock after clock, with one update for each key and clock. A
    /// function runs after the pushes before it and before the pushes after it.
    fn merge_below(&mut self, bound: Clock) {
        let bound = PushId { clock: bound, task: 0, index: 0 };
        if self.staged_calls.iter().any(|call| call.id < bound) {
            let mut calls = std::mem::take(&mut self.staged_calls);
            calls.sort_by_key(|call| call.id);
            let ready = calls.partition_point(|call| call.id < bound);
            for call in calls.drain(..ready) {
                self.merge_before(call.id);
                if let Err(error) = self.run(&call.program, RunMode::Commit, &mut Vec::new()) {
                    self.staged_failure.get_or_insert(error);
                }
            }
            self.staged_calls = calls;
        }
        self.merge_before(bound);
    }

    /// Merges the pushes with ids below `bound`.
    fn merge_before(&mut self, bound: PushId) {
        if self.staged.iter().all(|push| push.id >= bound) {
            return;
        }
        let mut staged = std::mem::take(&mut self.staged);
        staged.sort_by_key(|push| (push.id >= bound, push.id.clock, push.table, push.id));
        let ready = staged.partition_point(|push| push.id < bound);
        for group in staged[..ready].chunk_by_mut(|a, b| (a.id.clock, a.table) == (b.id.clock, b.table)) {
            self.merge_group(group);
        }
        for mut push in staged.drain(..ready) {
            if self.free_buffers.len() < FREE_BUFFER_LIMIT {
                push.clear();
                self.free_buffers.push(push);
            }
        }
        self.staged = staged;
    }

    /// Merges the pushes to one table under one clock.
    fn merge_group(&mut self, group: &mut [StagedPush<E>]) {
        for push in group.iter_mut() {
            self.clear_stale_positions(&mut push.generation, &mut push.positions);
        }
        let (clock, table) = (group[0].id.clock, group[0].table);
        let push = if let [push] = group {
            push
        } else {
            merge_pushes(group, self.columns, self.rule.merge(), &mut self.merge_buffer);
            &mut self.merge_buffer
        };
        let StagedPush { keys, positions, values, .. } = push;
        let order = ValueOrder::Contiguous { first: 0, count: keys.len() };
        let run = PositionedRun { table, keys, positions, order, generation: &mut self.generation };
        let table = &mut self.tables[table as usize];
        E::with_prepared_rule(&self.rule, clock, ApplyRun { columns: self.columns, table, run, values });
    }

    fn clear_stale_positions(&self, generation: &mut u64, positions: &mut [u32]) {
        if *generation != self.generation {
            positions.fill(ABSENT);
            *generation = self.generation;
        }
    }
}

/// Applies the prepared rule to a run. The run's generation is that of the partition.
struct ApplyRun<'a, 'b, E> {
    columns: usize,
    table: &'a mut Table<E>,
    run: PositionedRun<'b>,
    values: &'a [E],
}

impl<E: RuleElement> RuleVisitor<E> for ApplyRun<'_, '_, E> {
    type Out = ();

    fn visit<S: PreparedRule<E>>(self, step: &S) {
        let PositionedRun { keys, positions, order, generation, .. } = self.run;
        let columns = self.columns;
        if let ValueOrder::Contiguous { first, count } = order
            && self.table.push_contiguous(
                keys,
                &self.values[first * columns..(first + count) * columns],
                step,
            )
        {
            return;
        }
        let moved = match order {
            ValueOrder::Contiguous { first, .. } => {
                self.table.push(keys, positions, self.values, |i| first + i, step)
            }
            ValueOrder::Scattered(rows) => {
                self.table.push(keys, positions, self.values, |i| rows[i] as usize, step)
            }
        };
        *generation += u64::from(moved);
    }
}
