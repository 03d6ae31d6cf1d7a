//! Functions on the partitions of a lane: the server half of what [`crate::LocalStore`] does in one process.

use std::sync::Arc;

use super::{AnyLaneMatrix, LaneMatrix, TypedLaneMatrix};
use crate::clock::Clock;
use crate::error::Error;
use crate::function::{
    BoundPull, FunctionCall, FunctionTable, PushProgram, columns, run_on_partitions, try_all,
};
use crate::partition::Partition;
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

impl LaneMatrix {
    /// Returns the partial answers of the partitions of this lane, as of `clock`. [`merge_partial_answers`] makes the
    /// answer from those of all lanes.
    pub fn pull_function(
        &mut self,
        functions: &FunctionTable,
        call: &FunctionCall,
        clock: Clock,
    ) -> Result<Vec<PartialAnswer>, Error> {
        with_lane_matrix!(&mut self.typed, held => held.pull_function(functions, call, clock))
    }

    /// Checks whether push functions would succeed on all partitions of this lane as they are now, and returns the
    /// error that [`Self::push_function`] would return. It changes nothing. For a matrix with staged pushes only the
    /// calls are checked, because the later values of the rows are not known yet.
    pub fn try_function(&mut self, functions: &FunctionTable, steps: &[FunctionCall]) -> Result<(), Error> {
        let program = PushProgram::new(functions, self.spec(), steps)?;
        with_lane_matrix!(&mut self.typed, held => held.try_function(&program))
    }

    /// Runs push functions on all partitions of this lane, in this order and in one visit, or stages them until their
    /// clock has ended. The arguments may be those that [`FunctionCall::split`] makes for these columns.
    pub fn push_function(
        &mut self,
        functions: &FunctionTable,
        steps: &[FunctionCall],
        name: PushId,
    ) -> Result<(), Error> {
        let program = PushProgram::new(functions, self.spec(), steps)?;
        with_lane_matrix!(&mut self.typed, held => held.push_function(program, name))
    }
}

/// Makes the answer of a pull function from the partial answers of all partitions, in any order.
pub fn merge_partial_answers(
    functions: &FunctionTable,
    spec: &MatrixSpec,
    call: &FunctionCall,
    mut parts: Vec<PartialAnswer>,
) -> Result<Vec<u8>, Error> {
    parts.sort_by_key(|part| part.partition);
    let parts: Vec<Vec<u8>> = parts.into_iter().map(|part| part.bytes).collect();
    BoundPull::new(functions, spec, call)?.merge(&parts)
}

impl<E: RuleElement> TypedLaneMatrix<E> {
    fn pull_function(
        &mut self,
        functions: &FunctionTable,
        call: &FunctionCall,
        clock: Clock,
    ) -> Result<Vec<PartialAnswer>, Error> {
        let bound = BoundPull::new(functions, &self.spec, call)?;
        let merges = self.spec.consistency.stages_pushes();
        let mut parts = Vec::new();
        for (partition, held) in (0u32..).zip(&mut self.partitions) {
            let Some(held) = held else { continue };
            if merges {
                held.merge_below(clock);
            }
            held.check_staged_failure()?;
            if let Some(columns) = columns(held.tables(), &bound.from) {
                parts.push(PartialAnswer { partition, bytes: bound.read(&columns)? });
            }
        }
        Ok(parts)
    }

    fn try_function(&mut self, program: &PushProgram) -> Result<(), Error> {
        if self.spec.consistency.stages_pushes() {
            return Ok(());
        }
        let held = self.partitions.iter_mut().flatten();
        try_all(program, &mut held.map(Partition::tables_mut).collect::<Vec<_>>())
    }

    fn push_function(&mut self, program: PushProgram, name: PushId) -> Result<(), Error> {
        let stages = self.spec.consistency.stages_pushes();
        let count = self.partitions.iter().flatten().count();
        let held = self.partitions.iter_mut().flatten();
        if stages {
            let program = Arc::new(program);
            held.for_each(|partition| partition.stage_call(name, &program, count));
            return Ok(());
        }
        run_on_partitions(&program, &mut held.map(Partition::tables_mut).collect::<Vec<_>>())
    }
}
