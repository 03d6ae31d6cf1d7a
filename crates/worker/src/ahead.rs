//! An agent that prefetches. The stream of batches gives the columns of the next batch, and the step before shows which
//! pulls use them. The algorithm needs no change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use matrix::{Agent, Clock, Error, FunctionCall, MatrixId, Selection, Values, ValuesMut};

use crate::agent::RemoteAgent;
use crate::pull_pattern::PullPattern;

/// Columns of the batches of this step and of the next. The stream writes them, the agent of the same task reads them.
#[derive(Clone, Debug, Default)]
pub struct Upcoming(Arc<Mutex<Columns>>);

#[derive(Debug, Default)]
struct Columns {
    now: Vec<u64>,
    next: Vec<u64>,
}

impl Upcoming {
    /// Begins a step whose batch has the columns `now`. `next` is the columns of the next batch, empty when there is
    /// none. Both must be strictly ascending.
    pub fn set(&self, now: &[u64], next: &[u64]) {
        let mut columns = self.columns();
        // The next columns become the current ones, unless the epoch was aborted.
        let columns = &mut *columns;
        std::mem::swap(&mut columns.now, &mut columns.next);
        if columns.now != now {
            columns.now.clear();
            columns.now.extend_from_slice(now);
        }
        columns.next.clear();
        columns.next.extend_from_slice(next);
    }

    fn columns(&self) -> MutexGuard<'_, Columns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A [`RemoteAgent`] that prefetches what the next step reads: after the tick or before the step computes, as the
/// [`crate::Prefetch`] of its layout says.
#[derive(Debug)]
pub struct AheadAgent {
    agent: RemoteAgent,
    upcoming: Upcoming,
    pull_pattern: PullPattern,
}

impl AheadAgent {
    /// Wraps an agent. Its batches must come from a stream that writes `upcoming`.
    pub fn new(agent: RemoteAgent, upcoming: Upcoming) -> Self {
        Self { agent, upcoming, pull_pattern: PullPattern::default() }
    }

    /// The agent inside, for its counts.
    pub fn agent(&self) -> &RemoteAgent {
        &self.agent
    }

    /// Unwraps the agent, which then prefetches no more by itself.
    pub fn into_agent(self) -> RemoteAgent {
        self.agent
    }
}

impl Agent for AheadAgent {
    fn task(&self) -> u32 {
        self.agent.task()
    }

    fn task_count(&self) -> u32 {
        self.agent.task_count()
    }

    fn clock(&self) -> Clock {
        self.agent.clock()
    }

    fn pull(&mut self, matrix: MatrixId, part: Selection<'_>, out: ValuesMut<'_>) -> Result<(), Error> {
        self.agent.pull(matrix, part, out)?;
        let columns = self.upcoming.columns();
        self.pull_pattern.pulled(matrix, part, &columns.now);
        if self.pull_pattern.is_complete() && !columns.next.is_empty() {
            // An error of a prefetch is ignored: the pull itself returns it.
            self.pull_pattern
                .ask(&columns.next, |matrix, part| self.agent.prefetch_next(matrix, part).unwrap_or(false));
        }
        Ok(())
    }

    fn pull_ahead(&mut self, matrix: MatrixId, part: Selection<'_>) -> Result<(), Error> {
        self.agent.pull_ahead(matrix, part)
    }

    fn push(&mut self, matrix: MatrixId, part: Selection<'_>, values: Values<'_>) -> Result<(), Error> {
        self.agent.push(matrix, part, values)
    }

    fn pull_function(&mut self, matrix: MatrixId, call: &FunctionCall) -> Result<Vec<u8>, Error> {
        self.agent.pull_function(matrix, call)
    }

    fn push_function(&mut self, matrix: MatrixId, steps: &[FunctionCall]) -> Result<(), Error> {
        self.agent.push_function(matrix, steps)
    }

    fn tick(&mut self) -> Result<(), Error> {
        let (pattern, columns) = (&mut self.pull_pattern, self.upcoming.columns());
        self.agent.tick_and_prefetch(|agent| {
            pattern.ticked();
            if !columns.next.is_empty() {
                pattern.ask(&columns.next, |matrix, part| agent.prefetch(matrix, part).is_ok());
            }
            pattern.begins();
        })
    }

    fn barrier(&mut self) -> Result<(), Error> {
        self.agent.barrier()
    }

    fn all_reduce(&mut self, values: &mut [f64]) -> Result<(), Error> {
        self.agent.all_reduce(values)
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.agent.finish()
    }
}
