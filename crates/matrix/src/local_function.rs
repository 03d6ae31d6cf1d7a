//! Functions in one process: they are bound to the matrix, wait for the clocks, and run in the caller's thread.

use crate::agent::MatrixId;
use crate::clock::Clock;
use crate::error::Error;
use crate::function::{BoundPull, FunctionCall, PushProgram, columns, run_on_partitions};
use crate::local::{AnyMatrix, LocalStore};
use crate::matrix::Matrix;
use crate::rule::RuleElement;
use crate::staged::PushId;

use std::sync::Arc;

impl LocalStore {
    /// Runs a pull function for a task at `clock`.
    pub(crate) fn pull_function(
        &self,
        task: u32,
        clock: Clock,
        id: MatrixId,
        call: &FunctionCall,
    ) -> Result<Vec<u8>, Error> {
        let matrix = self.matrix(id)?;
        let spec = matrix.spec();
        let bound = BoundPull::new(self.functions(), spec, call)?;
        let purpose = || format!("to pull {:?} from matrix {:?}", call.name, spec.name);
        self.barrier().wait(task, clock, spec.consistency.pull_needs(clock), purpose)?;
        let minimum = self.barrier().minimum();
        match matrix {
            AnyMatrix::F32(matrix) => matrix.pull_function(&bound, clock, minimum),
            AnyMatrix::F64(matrix) => matrix.pull_function(&bound, clock, minimum),
            AnyMatrix::I64(matrix) => matrix.pull_function(&bound, clock, minimum),
        }
    }

    /// Runs push functions for the task in `id`, or stages them.
    pub(crate) fn push_function(
        &self,
        name: PushId,
        id: MatrixId,
        steps: &[FunctionCall],
    ) -> Result<(), Error> {
        let matrix = self.matrix(id)?;
        let spec = matrix.spec();
        let program = PushProgram::new(self.functions(), spec, steps)?;
        let purpose = || format!("to push functions to matrix {:?}", spec.name);
        self.barrier().wait(name.task, name.clock, spec.consistency.push_needs(name.clock), purpose)?;
        match matrix {
            AnyMatrix::F32(matrix) => matrix.push_function(program, name),
            AnyMatrix::F64(matrix) => matrix.push_function(program, name),
            AnyMatrix::I64(matrix) => matrix.push_function(program, name),
        }
    }
}

impl<E: RuleElement> Matrix<E> {
    fn pull_function(&self, bound: &BoundPull, clock: Clock, minimum: Clock) -> Result<Vec<u8>, Error> {
        self.counters.record_pull(bound.value_count(), clock, minimum);
        let mut parts = Vec::with_capacity(self.partitions.len());
        for p in 0..self.partitions.len() {
            let mut partition = self.lock(p)?;
            if self.spec.consistency.stages_pushes() {
                partition.merge_below(clock);
            }
            partition.check_staged_failure()?;
            if let Some(columns) = columns(partition.tables(), &bound.from) {
                parts.push(bound.read(&columns)?);
            }
        }
        bound.merge(&parts)
    }

    fn push_function(&self, program: PushProgram, name: PushId) -> Result<(), Error> {
        self.counters.record_push(program.written_rows.len() * self.spec.columns as usize);
        if self.spec.consistency.stages_pushes() {
            let program = Arc::new(program);
            let count = self.partitions.len();
            for p in 0..count {
                self.lock(p)?.stage_call(name, &program, count);
            }
            return Ok(());
        }
        if !program.tries_first {
            for p in 0..self.partitions.len() {
                run_on_partitions(&program, &mut [self.lock(p)?.tables_mut()])?;
            }
            return Ok(());
        }
        // Partitions are always locked in ascending order, so that two tasks that lock all of them do not deadlock.
        let mut locked =
            (0..self.partitions.len()).map(|p| self.lock(p)).collect::<Result<Vec<_>, Error>>()?;
        let mut tables: Vec<_> = locked.iter_mut().map(|partition| partition.tables_mut()).collect();
        run_on_partitions(&program, &mut tables)
    }
}
