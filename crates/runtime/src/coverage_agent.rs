//! An agent that notes for which features the model has parameters.

use matrix::{Agent, Clock, FunctionCall, Keys, MatrixId, PullTicket, Selection, Values, ValuesMut};

use crate::coverage_recorder::CoverageRecorder;

/// An agent that notes the rows of features that are read through it.
pub(crate) struct CoverageAgent {
    agent: Box<dyn Agent>,
    /// The matrices whose rows are features.
    matrices: Vec<MatrixId>,
    recorder: CoverageRecorder,
}

impl CoverageAgent {
    pub(crate) fn new(agent: Box<dyn Agent>, matrices: Vec<MatrixId>, recorder: CoverageRecorder) -> Self {
        Self { agent, matrices, recorder }
    }

    fn note(&self, matrix: MatrixId, selection: Selection<'_>, values: &ValuesMut<'_>) {
        if let (Selection::Rows(Keys::Sorted(keys)), true) = (selection, self.matrices.contains(&matrix)) {
            self.recorder.add_rows(keys, values);
        }
    }
}

impl Agent for CoverageAgent {
    fn task(&self) -> u32 {
        self.agent.task()
    }

    fn task_count(&self) -> u32 {
        self.agent.task_count()
    }

    fn clock(&self) -> Clock {
        self.agent.clock()
    }

    fn pull(
        &mut self,
        matrix: MatrixId,
        part: Selection<'_>,
        mut out: ValuesMut<'_>,
    ) -> Result<(), matrix::Error> {
        let all = 0..out.len();
        self.agent.pull(matrix, part, out.slice_mut(all))?;
        self.note(matrix, part, &out);
        Ok(())
    }

    fn sends_prefetches(&self) -> bool {
        self.agent.sends_prefetches()
    }

    fn prefetch(&mut self, matrix: MatrixId, selection: Selection<'_>, clock: Clock) -> PullTicket {
        self.agent.prefetch(matrix, selection, clock)
    }

    fn wait(&mut self, ticket: &PullTicket, mut out: ValuesMut<'_>) -> Result<(), matrix::Error> {
        let all = 0..out.len();
        self.agent.wait(ticket, out.slice_mut(all))?;
        self.note(ticket.matrix(), ticket.selection(), &out);
        Ok(())
    }

    fn push(
        &mut self,
        matrix: MatrixId,
        part: Selection<'_>,
        values: Values<'_>,
    ) -> Result<(), matrix::Error> {
        self.agent.push(matrix, part, values)
    }

    fn pull_function(&mut self, matrix: MatrixId, call: &FunctionCall) -> Result<Vec<u8>, matrix::Error> {
        self.agent.pull_function(matrix, call)
    }

    fn push_function(&mut self, matrix: MatrixId, steps: &[FunctionCall]) -> Result<(), matrix::Error> {
        self.agent.push_function(matrix, steps)
    }

    fn tick(&mut self) -> Result<(), matrix::Error> {
        self.agent.tick()
    }

    fn barrier(&mut self) -> Result<(), matrix::Error> {
        self.agent.barrier()
    }

    fn all_reduce(&mut self, values: &mut [f64]) -> Result<(), matrix::Error> {
        self.agent.all_reduce(values)
    }

    fn finish(&mut self) -> Result<(), matrix::Error> {
        self.agent.finish()
    }
}
