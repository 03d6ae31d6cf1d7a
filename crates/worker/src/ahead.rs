//! An agent that asks ahead: it knows the columns of the next batch from the stream that gives the batches, and what is
//! pulled of them from the step before. The algorithm between the two does not change for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use matrix::{Agent, Clock, Error, FunctionCall, MatrixId, Selection, Values, ValuesMut};

use crate::agent::RemoteAgent;
use crate::pull_pattern::PullPattern;

/// Columns of the batch of this step and of the next: said by a stream, read by the agent of the same task.
#[derive(Clone, Debug, Default)]
pub struct Upcoming(Arc<Mutex<Columns>>);

#[derive(Debug, Default)]
struct Columns {
    now: Vec<u64>,
    next: Vec<u64>,
}

impl Upcoming {
    /// A step begins whose batch has the columns `now`; that of the next step has `next`, none when there is no next one.
    /// Both strictly ascending.
    pub fn set(&self, now: &[u64], next: &[u64]) {
        let mut columns = self.columns();
        // What was next is now, unless an epoch was broken off.
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

/// A [`RemoteAgent`] that asks for what the next step reads, as [`crate::Prefetch`] of its layout says: behind the tick, or
/// before the step computes.
#[derive(Debug)]
pub struct AheadAgent {
    agent: RemoteAgent,
    upcoming: Upcoming,
    pull_pattern: PullPattern,
}

impl AheadAgent {
    /// Around an agent whose batches come from a stream that tells `upcoming`.
    pub fn new(agent: RemoteAgent, upcoming: Upcoming) -> Self {
        Self { agent, upcoming, pull_pattern: PullPattern::default() }
    }

    /// The agent, for its figures.
    pub fn agent(&self) -> &RemoteAgent {
        &self.agent
    }

    /// The agent, which asks for nothing ahead any more.
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
            // What cannot be asked is an error when it is pulled.
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
        let (habit, columns) = (&mut self.pull_pattern, self.upcoming.columns());
        self.agent.tick_and_prefetch(|agent| {
            habit.ticked();
            if !columns.next.is_empty() {
                habit.ask(&columns.next, |matrix, part| agent.prefetch(matrix, part).is_ok());
            }
            habit.begins();
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
