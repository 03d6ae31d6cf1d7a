//! Functions on the partitions that a server holds: its half of what [`crate::LocalStore`] does in one process.

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

/// The part of one partition in the answer of a pull function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialAnswer {
    /// The partition.
    pub partition: u32,
    /// The part, packed.
    pub bytes: Vec<u8>,
}

impl LaneMatrix {
    /// The parts of the partitions held here, as of `clock`; [`merge_partial_answers`] makes the answer of those of all servers.
    pub fn pull_function(
        &mut self,
        functions: &FunctionTable,
        call: &FunctionCall,
        clock: Clock,
    ) -> Result<Vec<PartialAnswer>, Error> {
        with_lane_matrix!(&mut self.typed, held => held.pull_function(functions, call, clock))
    }

    /// Whether push functions could be carried out on all partitions held here as these are now; the error that
    /// [`Self::push_function`] would give. Changes nothing. Of a matrix whose pushes are staged only the calls are checked:
    /// nobody knows yet what the rows will hold.
    pub fn try_function(&mut self, functions: &FunctionTable, steps: &[FunctionCall]) -> Result<(), Error> {
        let program = PushProgram::new(functions, self.spec(), steps)?;
        with_lane_matrix!(&mut self.typed, held => held.try_function(&program))
    }

    /// Carries push functions out on all partitions held here, in this order and in one visit; or keeps them until their
    /// clock is over. The arguments may be those that [`FunctionCall::split`] leaves of these columns.
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

/// The answer of a pull function, of the parts of all partitions in any order.
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
