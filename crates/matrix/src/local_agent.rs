//! The agent of a task in the process of the matrices: it works on the partitions in the caller's thread.

use std::sync::Arc;

use crate::agent::{Agent, MatrixId, Selection};
use crate::clock::{Clock, ClockFault};
use crate::element::{Values, ValuesMut};
use crate::error::Error;
use crate::function::FunctionCall;
use crate::local::{AnyMatrix, LocalStore};
use crate::matrix::{Matrix, VisitOrder};
use crate::row_positions::PositionedKeys;
use crate::rule::RuleElement;
use crate::staged::PushId;

/// An [`Agent`] on a [`LocalStore`]. Calls after `finish` are errors; dropping the agent finishes the task.
#[derive(Debug)]
pub struct LocalAgent {
    store: Arc<LocalStore>,
    task: u32,
    clock: Clock,
    /// Number of pushes since the last tick: the index of the next push.
    push_count: u32,
    key_runs: Vec<PositionedKeys>,
    is_finished: bool,
}

impl LocalAgent {
    pub(crate) fn new(store: Arc<LocalStore>, task: u32, clock: Clock) -> Self {
        let clock = store.barrier().clock(task).unwrap_or(clock);
        Self { store, task, clock, push_count: 0, key_runs: Vec::new(), is_finished: false }
    }

    fn check_live(&self, call: &'static str) -> Result<(), Error> {
        if self.is_finished {
            return Err(Error::Task { task: self.task, call, fault: ClockFault::Left });
        }
        Ok(())
    }

    /// Takes the key runs of a matrix out of the agent, set to a selection with `value_count` values. The caller gives
    /// them back after use.
    fn take_key_runs(
        &mut self,
        id: MatrixId,
        part: Selection<'_>,
        value_count: usize,
    ) -> Result<PositionedKeys, Error> {
        let i = id.0 as usize;
        if self.key_runs.len() <= i {
            self.key_runs.resize_with(i + 1, PositionedKeys::default);
        }
        let matrix = self.store.matrix(id)?;
        let (spec, placement) = match matrix {
            AnyMatrix::F32(matrix) => (&matrix.spec, &matrix.placement),
            AnyMatrix::F64(matrix) => (&matrix.spec, &matrix.placement),
            AnyMatrix::I64(matrix) => (&matrix.spec, &matrix.placement),
        };
        let columns = spec.columns_of_table();
        let (Selection::Rows(keys) | Selection::Columns { keys, .. }) = part;
        let key_count = keys.len();
        assert_eq!(
            value_count,
            key_count.saturating_mul(columns),
            "matrix {:?}: {key_count} keys of {columns} columns",
            spec.name
        );
        let mut route = std::mem::take(&mut self.key_runs[i]);
        let set = route.set(spec, placement, part);
        if let Err(error) = set {
            self.key_runs[i] = route;
            return Err(error);
        }
        Ok(route)
    }

    fn pull_from<E: RuleElement>(
        &self,
        matrix: &Matrix<E>,
        route: &mut PositionedKeys,
        out: ValuesMut<'_>,
    ) -> Result<(), Error> {
        let actual = out.element_type();
        let key_count = out.len() / matrix.spec.columns_of_table();
        let slice = E::slice_mut(out).ok_or_else(|| Error::ElementType {
            matrix: matrix.spec.name.clone(),
            expected: E::TYPE,
            actual,
        })?;
        let gate = self.store.barrier();
        let needed = matrix.spec.consistency.pull_needs(self.clock);
        let purpose = || format!("to pull from matrix {:?}", matrix.spec.name);
        gate.wait(self.task, self.clock, needed, purpose)?;
        matrix.counters.record_pull(key_count, self.clock, gate.minimum());
        matrix.pull(self.visit_order(), route, self.clock, slice)
    }

    fn push_to<E: RuleElement>(
        &self,
        matrix: &Matrix<E>,
        route: &mut PositionedKeys,
        values: Values<'_>,
    ) -> Result<(), Error> {
        let spec = &matrix.spec;
        let slice = E::slice(values).ok_or_else(|| Error::ElementType {
            matrix: spec.name.clone(),
            expected: E::TYPE,
            actual: values.element_type(),
        })?;
        let columns = spec.columns_of_table();
        if let Some(at) = E::first_non_finite(slice) {
            matrix.counters.record_refused_push();
            let (key, column, value) =
                (route.runs().key(at / columns), (at % columns) as u64, slice[at].to_f64());
            return Err(Error::NonFinite { matrix: spec.name.clone(), key, column, value });
        }
        let needed = spec.consistency.push_needs(self.clock);
        let purpose = || format!("to push to matrix {:?}", spec.name);
        self.store.barrier().wait(self.task, self.clock, needed, purpose)?;
        matrix.counters.record_push(slice.len() / columns);
        let name = PushId { clock: self.clock, task: self.task, index: self.push_count };
        matrix.push(self.visit_order(), route, name, slice)
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
        let mut route = self.take_key_runs(id, part, out.len())?;
        let result = match self.store.matrix(id)? {
            AnyMatrix::F32(matrix) => self.pull_from(matrix, &mut route, out),
            AnyMatrix::F64(matrix) => self.pull_from(matrix, &mut route, out),
            AnyMatrix::I64(matrix) => self.pull_from(matrix, &mut route, out),
        };
        self.key_runs[id.0 as usize] = route;
        result
    }

    fn push(&mut self, id: MatrixId, part: Selection<'_>, values: Values<'_>) -> Result<(), Error> {
        self.check_live("push")?;
        let mut route = self.take_key_runs(id, part, values.len())?;
        let result = match self.store.matrix(id)? {
            AnyMatrix::F32(matrix) => self.push_to(matrix, &mut route, values),
            AnyMatrix::F64(matrix) => self.push_to(matrix, &mut route, values),
            AnyMatrix::I64(matrix) => self.push_to(matrix, &mut route, values),
        };
        self.key_runs[id.0 as usize] = route;
        self.push_count += u32::from(result.is_ok());
        result
    }

    fn pull_function(&mut self, id: MatrixId, call: &FunctionCall) -> Result<Vec<u8>, Error> {
        self.check_live("pull_function")?;
        self.store.pull_function(self.task, self.clock, id, call)
    }

    fn push_function(&mut self, id: MatrixId, steps: &[FunctionCall]) -> Result<(), Error> {
        self.check_live("push_function")?;
        let name = PushId { clock: self.clock, task: self.task, index: self.push_count };
        self.store.push_function(name, id, steps)?;
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
