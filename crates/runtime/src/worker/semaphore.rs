//! `--threads`: a limit of the tasks that compute at once. A task releases its permit while it may have to wait for
//! other tasks, so a limit below the number of tasks cannot cause a deadlock. The time in which permits are held is the
//! time in which tasks compute.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use driver::Error;
use matrix::{Agent, Clock, FunctionCall, MatrixId, PullTicket, Selection, Values, ValuesMut};

/// A counting semaphore, which knows for how long its permits were held.
#[derive(Debug)]
pub struct Semaphore {
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug)]
struct State {
    free: usize,
    taken: u32,
    /// Sum over the permits of the times in which they were held, up to `counted_at`.
    busy: Duration,
    counted_at: Instant,
}

impl State {
    fn count_time(&mut self) {
        let now = Instant::now();
        self.busy += now.saturating_duration_since(self.counted_at) * self.taken;
        self.counted_at = now;
    }
}

impl Semaphore {
    /// Creates a semaphore with `count` permits, at least 1.
    pub fn new(count: usize) -> Arc<Self> {
        let state = State { free: count.max(1), taken: 0, busy: Duration::ZERO, counted_at: Instant::now() };
        Arc::new(Self { state: Mutex::new(state), freed: Condvar::new() })
    }

    pub fn acquire(&self) {
        let mut state = self.lock();
        while state.free == 0 {
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.count_time();
        state.free -= 1;
        state.taken += 1;
    }

    /// Releases a permit.
    pub fn release(&self) {
        let mut state = self.lock();
        state.count_time();
        state.free += 1;
        state.taken -= 1;
        drop(state);
        self.freed.notify_one();
    }

    /// For how long permits were held so far, summed over the permits: the time in which tasks computed.
    pub fn busy_time(&self) -> Duration {
        let mut state = self.lock();
        state.count_time();
        state.busy
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a permit, which is released when the returned value is dropped, also by a panic.
    pub fn acquire_permit(&self) -> Permit<'_> {
        self.acquire();
        Permit(self)
    }

    /// Runs `work`, which may wait for other tasks, without a permit.
    pub fn release_while<T>(&self, work: impl FnOnce() -> T) -> T {
        self.release();
        let _back = ReacquireOnDrop(self);
        work()
    }
}

/// A permit of a [`Semaphore`]; dropping it releases the permit.
#[derive(Debug)]
pub struct Permit<'a>(&'a Semaphore);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Runs `work` with a permit if there is a limit.
pub fn with_permit<T, E: Into<Error>>(
    permits: Option<&Semaphore>,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, Error> {
    let _held = permits.map(Semaphore::acquire_permit);
    work().map_err(Into::into)
}

struct ReacquireOnDrop<'a>(&'a Semaphore);

impl Drop for ReacquireOnDrop<'_> {
    fn drop(&mut self) {
        self.0.acquire();
    }
}

/// An agent that releases the permit of its task while it may wait. Every call may: a connection that is lost is made
/// again in the call that notices it.
pub struct PermittedAgent {
    agent: Box<dyn Agent>,
    permits: Arc<Semaphore>,
}

impl PermittedAgent {
    /// The task of `agent` must have a permit.
    pub fn new(agent: Box<dyn Agent>, permits: Arc<Semaphore>) -> Self {
        Self { agent, permits }
    }
}

impl Agent for PermittedAgent {
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
        out: ValuesMut<'_>,
    ) -> Result<(), matrix::Error> {
        self.permits.release_while(|| self.agent.pull(matrix, part, out))
    }

    fn sends_prefetches(&self) -> bool {
        self.agent.sends_prefetches()
    }

    fn prefetch(&mut self, matrix: MatrixId, selection: Selection<'_>, clock: Clock) -> PullTicket {
        self.permits.release_while(|| self.agent.prefetch(matrix, selection, clock))
    }

    fn wait(&mut self, ticket: &PullTicket, out: ValuesMut<'_>) -> Result<(), matrix::Error> {
        self.permits.release_while(|| self.agent.wait(ticket, out))
    }

    fn push(
        &mut self,
        matrix: MatrixId,
        part: Selection<'_>,
        values: Values<'_>,
    ) -> Result<(), matrix::Error> {
        self.permits.release_while(|| self.agent.push(matrix, part, values))
    }

    fn pull_function(&mut self, matrix: MatrixId, call: &FunctionCall) -> Result<Vec<u8>, matrix::Error> {
        self.permits.release_while(|| self.agent.pull_function(matrix, call))
    }

    fn push_function(&mut self, matrix: MatrixId, steps: &[FunctionCall]) -> Result<(), matrix::Error> {
        self.permits.release_while(|| self.agent.push_function(matrix, steps))
    }

    fn tick(&mut self) -> Result<(), matrix::Error> {
        self.permits.release_while(|| self.agent.tick())
    }

    fn barrier(&mut self) -> Result<(), matrix::Error> {
        self.permits.release_while(|| self.agent.barrier())
    }

    fn all_reduce(&mut self, values: &mut [f64]) -> Result<(), matrix::Error> {
        self.permits.release_while(|| self.agent.all_reduce(values))
    }

    fn finish(&mut self) -> Result<(), matrix::Error> {
        self.permits.release_while(|| self.agent.finish())
    }
}

#[cfg(test)]
mod tests {
    use matrix::Keys;

    use super::*;

    /// An agent each of whose calls takes as long as a lost connection.
    struct StuckAgent;

    fn stuck<T>(value: T) -> T {
        std::thread::sleep(Duration::from_millis(20));
        value
    }

    impl Agent for StuckAgent {
        fn task(&self) -> u32 {
            0
        }

        fn task_count(&self) -> u32 {
            1
        }

        fn clock(&self) -> Clock {
            0
        }

        fn pull(&mut self, _: MatrixId, _: Selection<'_>, _: ValuesMut<'_>) -> Result<(), matrix::Error> {
            stuck(Ok(()))
        }

        fn prefetch(&mut self, matrix: MatrixId, selection: Selection<'_>, clock: Clock) -> PullTicket {
            stuck(PullTicket::new(matrix, selection, clock))
        }

        fn wait(&mut self, _: &PullTicket, _: ValuesMut<'_>) -> Result<(), matrix::Error> {
            stuck(Ok(()))
        }

        fn push(&mut self, _: MatrixId, _: Selection<'_>, _: Values<'_>) -> Result<(), matrix::Error> {
            stuck(Ok(()))
        }

        fn pull_function(&mut self, _: MatrixId, _: &FunctionCall) -> Result<Vec<u8>, matrix::Error> {
            stuck(Ok(Vec::new()))
        }

        fn push_function(&mut self, _: MatrixId, _: &[FunctionCall]) -> Result<(), matrix::Error> {
            stuck(Ok(()))
        }

        fn tick(&mut self) -> Result<(), matrix::Error> {
            stuck(Ok(()))
        }

        fn barrier(&mut self) -> Result<(), matrix::Error> {
            stuck(Ok(()))
        }

        fn all_reduce(&mut self, _: &mut [f64]) -> Result<(), matrix::Error> {
            stuck(Ok(()))
        }

        fn finish(&mut self) -> Result<(), matrix::Error> {
            stuck(Ok(()))
        }
    }

    #[test]
    fn no_call_of_an_agent_counts_as_computing() {
        let permits = Semaphore::new(1);
        let mut agent = PermittedAgent::new(Box::new(StuckAgent), Arc::clone(&permits));
        let _held = permits.acquire_permit();
        let (matrix, keys) = (MatrixId(0), [1, 2]);
        let rows = || Selection::Rows(Keys::Sorted(&keys));
        let mut values = [0.0; 2];
        agent.pull(matrix, rows(), ValuesMut::F64(&mut values)).unwrap();
        let ticket = agent.prefetch(matrix, rows(), 0);
        agent.wait(&ticket, ValuesMut::F64(&mut values)).unwrap();
        agent.push(matrix, rows(), Values::F64(&values)).unwrap();
        agent.tick().unwrap();
        agent.barrier().unwrap();
        agent.all_reduce(&mut values).unwrap();
        agent.finish().unwrap();
        let busy = permits.busy_time();
        assert!(busy < Duration::from_millis(20), "{busy:?} of at least 160 ms");
    }
}
