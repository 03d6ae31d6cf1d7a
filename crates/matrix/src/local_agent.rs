//! The agent of a task in the process of the matrices: it works on the partitions in the caller's thread.

use std::sync::Arc;

use crate::agent::{Agent, MatrixId, Selection};
use crate::clock::{Clock, ClockFault};
use crate::element::{Values, ValuesMut};
use crate::error::Error;
use crate::function::{BoundPull, FunctionCall, PushProgram};
use crate::local::{LocalMatrix, LocalStore};
use crate::partitions::VisitOrder;
use crate::row_positions::PositionedKeys;
use crate::staged::PushId;

/// An [`Agent`] on a [`LocalStore`]. Calls after `finish` are errors; dropping the agent finishes the task.
#[derive(Debug)]
pub struct LocalAgent {
    store: Arc<LocalStore>,
    task: u32,
    clock: Clock,
    /// Number of pushes since the last tick: the index of the next push.
    push_count: u32,
    /// The keys of the last pull or push of each matrix.
    keys: Vec<PositionedKeys>,
    is_finished: bool,
}

impl LocalAgent {
    pub(crate) fn new(store: Arc<LocalStore>, task: u32, clock: Clock) -> Self {
        let clock = store.barrier().clock(task).unwrap_or(clock);
        Self { store, task, clock, push_count: 0, keys: Vec::new(), is_finished: false }
    }

    fn check_live(&self, call: &'static str) -> Result<(), Error> {
        if self.is_finished {
            return Err(Error::Task { task: self.task, call, fault: ClockFault::Left });
        }
        Ok(())
    }

    /// Takes the keys of a matrix out of the agent, set to a selection with `value_count` values. The caller gives them
    /// back after use.
    fn take_keys(
        &mut self,
        id: MatrixId,
        part: Selection<'_>,
        value_count: usize,
    ) -> Result<PositionedKeys, Error> {
        let matrix = &self.store.matrix(id)?.matrix;
        let i = id.0 as usize;
        if self.keys.len() <= i {
            self.keys.resize_with(i + 1, PositionedKeys::default);
        }
        let (spec, columns) = (matrix.spec(), matrix.spec().columns_of_table());
        self.keys[i].set(spec, matrix.placement(), part)?;
        let count = self.keys[i].runs().key_count();
        assert_eq!(
            value_count,
            count.saturating_mul(columns),
            "matrix {:?}: {count} keys of {columns} columns",
            spec.name
        );
        Ok(std::mem::take(&mut self.keys[i]))
    }

    fn pull_keys(&self, id: MatrixId, keys: &mut PositionedKeys, out: ValuesMut<'_>) -> Result<(), Error> {
        let LocalMatrix { matrix, counters } = self.store.matrix(id)?;
        let spec = matrix.spec();
        spec.check_element(out.element_type())?;
        let purpose = || format!("to pull from matrix {:?}", spec.name);
        let minimum = self.wait_for_clock(spec.consistency.pull_needs(self.clock), purpose)?;
        counters.record_pull(keys.runs().key_count(), self.clock, minimum);
        let mut out = out;
        let len = out.len();
        matrix.pull_shared(self.visit_order(), keys, self.clock, out.slice_mut(0..len))?;
        spec.check_overflow(out.as_values(), |i| keys.runs().key(i))
    }

    fn push_keys(&self, id: MatrixId, keys: &mut PositionedKeys, values: Values<'_>) -> Result<(), Error> {
        let LocalMatrix { matrix, counters } = self.store.matrix(id)?;
        let spec = matrix.spec();
        spec.check_element(values.element_type())?;
        spec.check_finite(values, |i| keys.runs().key(i)).inspect_err(|_| counters.record_refused_push())?;
        let purpose = || format!("to push to matrix {:?}", spec.name);
        self.wait_for_clock(spec.consistency.push_needs(self.clock), purpose)?;
        counters.record_push(keys.runs().key_count());
        matrix.push_shared(self.visit_order(), keys, self.next_push_id(), values)
    }

    /// Waits until the smallest clock is at least `needed`, and returns it.
    fn wait_for_clock(&self, needed: Clock, purpose: impl Fn() -> String) -> Result<Clock, Error> {
        let barrier = self.store.barrier();
        barrier.wait(self.task, self.clock, needed, purpose)?;
        Ok(barrier.minimum())
    }

    fn next_push_id(&self) -> PushId {
        PushId { clock: self.clock, task: self.task, index: self.push_count }
    }

    fn visit_order(&self) -> VisitOrder {
        let task_count = self.store.task_count();
        VisitOrder { task: self.task % task_count, task_count }
    }

    /// Ends an open step, so that the pushes of this step precede the barrier for all tasks.
    fn end_step(&mut self) -> Result<(), Error> {
        if self.push_count > 0 { self.tick() } else { Ok(()) }
    }

    fn wait_at_barrier(&mut self, part: Option<Vec<f64>>) -> Result<Vec<f64>, Error> {
        self.end_step()?;
        let (clock, sum) = self.store.barrier().barrier(self.task, part)?;
        self.clock = clock;
        Ok(sum)
    }
}

impl Agent for LocalAgent {
    fn task(&self) -> u32 {
        self.task
    }

    fn task_count(&self) -> u32 {
        self.store.task_count()
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn pull(&mut self, id: MatrixId, part: Selection<'_>, out: ValuesMut<'_>) -> Result<(), Error> {
        self.check_live("pull")?;
        let mut keys = self.take_keys(id, part, out.len())?;
        let result = self.pull_keys(id, &mut keys, out);
        self.keys[id.0 as usize] = keys;
        result
    }

    fn push(&mut self, id: MatrixId, part: Selection<'_>, values: Values<'_>) -> Result<(), Error> {
        self.check_live("push")?;
        let mut keys = self.take_keys(id, part, values.len())?;
        let result = self.push_keys(id, &mut keys, values);
        self.keys[id.0 as usize] = keys;
        self.push_count += u32::from(result.is_ok());
        result
    }

    fn pull_function(&mut self, id: MatrixId, call: &FunctionCall) -> Result<Vec<u8>, Error> {
        self.check_live("pull_function")?;
        let LocalMatrix { matrix, counters } = self.store.matrix(id)?;
        let spec = matrix.spec();
        let bound = BoundPull::new(self.store.functions(), spec, call)?;
        let purpose = || format!("to pull {:?} from matrix {:?}", call.name, spec.name);
        let minimum = self.wait_for_clock(spec.consistency.pull_needs(self.clock), purpose)?;
        counters.record_pull(bound.value_count(), self.clock, minimum);
        bound.merge(matrix.partial_answers(&bound, self.clock)?)
    }

    fn push_function(&mut self, id: MatrixId, steps: &[FunctionCall]) -> Result<(), Error> {
        self.check_live("push_function")?;
        let LocalMatrix { matrix, counters } = self.store.matrix(id)?;
        let spec = matrix.spec();
        let program = PushProgram::new(self.store.functions(), spec, steps)?;
        let purpose = || format!("to push functions to matrix {:?}", spec.name);
        self.wait_for_clock(spec.consistency.push_needs(self.clock), purpose)?;
        counters.record_push(program.written_rows.len() * spec.columns as usize);
        matrix.push_program(program, self.next_push_id())?;
        self.push_count += 1;
        Ok(())
    }

    fn tick(&mut self) -> Result<(), Error> {
        self.clock = self.store.barrier().tick(self.task)?;
        self.push_count = 0;
        Ok(())
    }

    fn barrier(&mut self) -> Result<(), Error> {
        self.wait_at_barrier(None).map(drop)
    }

    fn all_reduce(&mut self, values: &mut [f64]) -> Result<(), Error> {
        let sum = self.wait_at_barrier(Some(values.to_vec()))?;
        values.copy_from_slice(&sum);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.is_finished = true;
        self.store.barrier().leave(self.task);
        Ok(())
    }
}

impl Drop for LocalAgent {
    fn drop(&mut self) {
        self.store.barrier().leave(self.task);
    }
}
