//! Functions on the partitions of a matrix, for tasks of this process and for lanes.

use std::sync::Arc;

use super::{AnyPartitions, Matrix};
use crate::clock::Clock;
use crate::error::Error;
use crate::function::{BoundPull, FunctionCall, FunctionTable, PushProgram, RunMode};
use crate::partitions::Partitions;
use crate::rule::RuleElement;
use crate::spec::MatrixSpec;
use crate::staged::PushId;

/// The partial answer of one partition for a pull function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialAnswer {
    pub partition: u32,
    /// The packed partial answer.
    pub bytes: Vec<u8>,
}

impl Matrix {
    /// Returns the partial answers of these partitions, as of `clock`. [`merge_partial_answers`] makes the answer from
    /// those of all lanes.
    pub fn pull_function(
        &self,
        functions: &FunctionTable,
        call: &FunctionCall,
        clock: Clock,
    ) -> Result<Vec<PartialAnswer>, Error> {
        self.partial_answers(&BoundPull::new(functions, &self.spec, call)?, clock)
    }

    /// Checks whether push functions would succeed on all of these partitions as they are now, and returns the error
    /// that [`Self::push_function`] would return. It changes nothing. For a matrix with staged pushes only the calls
    /// are checked, because the later values of the rows are not known yet.
    pub fn try_function(&self, functions: &FunctionTable, steps: &[FunctionCall]) -> Result<(), Error> {
        let program = PushProgram::new(functions, &self.spec, steps)?;
        if self.spec.consistency.stages_pushes() {
            return Ok(());
        }
        with_partitions!(&self.partitions, partitions => partitions.run(&program, &[RunMode::Try]))
    }

    /// Runs push functions on all of these partitions, in this order and in one visit, or stages them until their clock
    /// has ended. The arguments may be those that [`FunctionCall::split`] makes for these columns.
    pub fn push_function(
        &self,
        functions: &FunctionTable,
        steps: &[FunctionCall],
        id: PushId,
    ) -> Result<(), Error> {
        self.push_program(PushProgram::new(functions, &self.spec, steps)?, id)
    }

    pub(crate) fn partial_answers(
        &self,
        bound: &BoundPull,
        clock: Clock,
    ) -> Result<Vec<PartialAnswer>, Error> {
        with_partitions!(&self.partitions, partitions => partitions.partial_answers(bound, clock))
    }

    pub(crate) fn push_program(&self, mut program: PushProgram, id: PushId) -> Result<(), Error> {
        if let Some(write) = &mut program.list_write {
            write.id = id;
        }
        if self.spec.consistency.stages_pushes() {
            return with_partitions!(&self.partitions, partitions => partitions.stage(&Arc::new(program), id));
        }
        // If a step asks for it, the program is first tried on all partitions.
        let modes =
            if program.tries_first { &[RunMode::Try, RunMode::Commit][..] } else { &[RunMode::Commit] };
        with_partitions!(&self.partitions, partitions => partitions.run(&program, modes))
    }
}

/// Makes the answer of a pull function from the partial answers of all partitions, in any order.
pub fn merge_partial_answers(
    functions: &FunctionTable,
    spec: &MatrixSpec,
    call: &FunctionCall,
    parts: Vec<PartialAnswer>,
) -> Result<Vec<u8>, Error> {
    BoundPull::new(functions, spec, call)?.merge(parts)
}

impl<E: RuleElement> Partitions<E> {
    fn partial_answers(&self, bound: &BoundPull, clock: Clock) -> Result<Vec<PartialAnswer>, Error> {
        let mut parts = Vec::new();
        for locked in self.lock_each() {
            let (partition, mut locked) = locked?;
            locked.prepare_read(clock)?;
            if let Some(bytes) = bound.read(partition, locked.tables(), locked.lists())? {
                parts.push(PartialAnswer { partition, bytes });
            }
        }
        Ok(parts)
    }

    fn stage(&self, program: &Arc<PushProgram>, id: PushId) -> Result<(), Error> {
        let mut locked = self.lock_all()?;
        let count = locked.len();
        for (_, partition) in &mut locked {
            partition.stage_call(id, program, count);
        }
        Ok(())
    }

    /// Runs a program on all partitions, once in each mode. With one mode, one partition after the other is locked.
    fn run(&self, program: &PushProgram, modes: &[RunMode]) -> Result<(), Error> {
        let mut saved = Vec::new();
        if let [mode] = modes {
            return self.lock_each().try_for_each(|locked| locked?.1.run(program, *mode, &mut saved));
        }
        let mut locked = self.lock_all()?;
        // A single partition is restored after a fault anyway.
        let modes = if locked.len() > 1 { modes } else { &modes[modes.len() - 1..] };
        for mode in modes {
            for (_, partition) in &mut locked {
                partition.run(program, *mode, &mut saved)?;
            }
        }
        Ok(())
    }
}
