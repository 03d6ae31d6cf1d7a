//! The clock table shared by threads: one lock, one condition variable, a deadline for each wait.
//!
//! An atomic holds a copy of the minimum, so that a pull or push that need not wait takes no lock. A thread that reads
//! a minimum from the atomic sees every push that was made before the tick that produced this minimum: the push
//! releases the lock of its partition before the tick stores the minimum with release ordering.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::clock::{BarrierArrival, Clock, ClockFault, ClockTable};
use crate::error::{Error, SlowestTask};
use crate::reduce::sum_in_task_order;
use crate::stats::WaitStats;

/// The place where tasks of a process wait for each other.
#[derive(Debug)]
pub(crate) struct ClockBarrier {
    state: Mutex<State>,
    changed: Condvar,
    /// [`Clock::MAX`] when no task is live.
    minimum: AtomicU64,
    wait_limit: Duration,
    wait_count: AtomicU64,
    wait_ns: AtomicU64,
}

#[derive(Debug)]
struct State {
    table: ClockTable,
    stop_reason: Option<String>,
    /// Tasks that have failed, with the reason. Their clocks no longer change.
    failure_reasons: BTreeMap<u32, String>,
    /// What each task has contributed to the open reduction.
    contributions: Vec<Option<Vec<f64>>>,
    /// The sum of the last reduction. It stays until all tasks have arrived again, so that every task can read it.
    sum: Result<Vec<f64>, Error>,
}

impl ClockBarrier {
    pub(crate) fn new(task_count: u32, wait_limit: Duration) -> Self {
        let table = ClockTable::new(task_count);
        let minimum = AtomicU64::new(table.minimum().unwrap_or(Clock::MAX));
        let parts = vec![None; task_count as usize];
        let state = Mutex::new(State {
            table,
            stop_reason: None,
            failure_reasons: BTreeMap::new(),
            contributions: parts,
            sum: Ok(Vec::new()),
        });
        let (wait_count, wait_ns) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { state, changed: Condvar::new(), minimum, wait_limit, wait_count, wait_ns }
    }

    /// Returns m, or [`Clock::MAX`] when no task is live.
    #[inline]
    pub(crate) fn minimum(&self) -> Clock {
        self.minimum.load(Ordering::Acquire)
    }

    pub(crate) fn waits(&self) -> WaitStats {
        WaitStats {
            count: self.wait_count.load(Ordering::Relaxed),
            nanoseconds: self.wait_ns.load(Ordering::Relaxed),
        }
    }

    /// Waits until the minimum is at least `needed`. `purpose` describes the wait in errors.
    pub(crate) fn wait(
        &self,
        task: u32,
        clock: Clock,
        needed: Clock,
        purpose: impl Fn() -> String,
    ) -> Result<(), Error> {
        if self.minimum() >= needed {
            return Ok(());
        }
        let state = self.lock()?;
        let must_wait = |table: &ClockTable| table.minimum().is_some_and(|m| m < needed);
        let is_behind = |table: &ClockTable, other: u32| table.clock(other).is_ok_and(|clock| clock < needed);
        self.wait_while(state, task, clock, purpose, must_wait, is_behind).map(drop)
    }

    pub(crate) fn tick(&self, task: u32) -> Result<Clock, Error> {
        let mut state = self.lock()?;
        if let Some(reason) = &state.stop_reason {
            return Err(Error::Stopped { reason: reason.clone() });
        }
        let clock = state.table.tick(task).map_err(|fault| Error::Task { task, call: "tick", fault })?;
        self.publish(&mut state, None);
        Ok(clock)
    }

    /// Arrives at the barrier with a contribution to the reduction and waits. Returns the clock after the barrier and
    /// the sum.
    pub(crate) fn barrier(&self, task: u32, part: Option<Vec<f64>>) -> Result<(Clock, Vec<f64>), Error> {
        let call = "barrier";
        let fault = |fault: ClockFault| Error::Task { task, call, fault };
        let mut state = self.lock()?;
        if let Some(reason) = &state.stop_reason {
            return Err(Error::Stopped { reason: reason.clone() });
        }
        let clock = state.table.clock(task).map_err(fault)?;
        let before = state.table.generation();
        state.contributions[task as usize] = part;
        let arrival = state.table.barrier(task).map_err(fault)?;
        self.publish(&mut state, Some(before));
        if let BarrierArrival::Wait { generation } = arrival {
            let purpose = || "at a barrier".to_owned();
            let must_wait = |table: &ClockTable| table.generation() == generation;
            let has_not_come = |table: &ClockTable, other: u32| !table.is_at_barrier(other);
            state = self.wait_while(state, task, clock, purpose, must_wait, has_not_come)?;
        }
        let clock = state.table.clock(task).map_err(fault)?;
        Ok((clock, state.sum.clone()?))
    }

    /// Marks a task as failed, so that its clock no longer advances. Tasks that have to wait for it get
    /// [`Error::Stopped`]; all others continue until they have to wait for it.
    pub(crate) fn fail(&self, task: u32, reason: String) {
        if let Ok(mut state) = self.lock() {
            state.failure_reasons.entry(task).or_insert(reason);
            self.changed.notify_all();
        }
    }

    /// Removes a task. Returns false when it had left before or has failed.
    pub(crate) fn leave(&self, task: u32) -> bool {
        let Ok(mut state) = self.lock() else { return false };
        if state.failure_reasons.contains_key(&task) {
            return false;
        }
        let before = state.table.generation();
        if let Some(part) = state.contributions.get_mut(task as usize) {
            *part = None;
        }
        let left = state.table.finish(task);
        self.publish(&mut state, Some(before));
        left
    }

    pub(crate) fn join(&self) -> Result<(u32, Clock), Error> {
        let mut state = self.lock()?;
        let task = state.table.join();
        state.contributions.push(None);
        self.publish(&mut state, None);
        let clock = state.table.clock(task).map_err(|fault| Error::Task { task, call: "join", fault })?;
        Ok((task, clock))
    }

    pub(crate) fn clock(&self, task: u32) -> Result<Clock, ClockFault> {
        match self.lock() {
            Ok(state) => state.table.clock(task),
            Err(_) => Err(ClockFault::Left),
        }
    }

    pub(crate) fn stop(&self, reason: String) {
        if let Ok(mut state) = self.lock() {
            state.stop_reason.get_or_insert(reason);
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> Result<MutexGuard<'_, State>, Error> {
        self.state.lock().map_err(|_| Error::Panicked { what: "the clocks".into() })
    }

    /// Publishes a change: closes the reduction when a barrier was passed since generation `before`, and wakes the
    /// waiting tasks when the minimum or the barrier has changed.
    fn publish(&self, state: &mut State, before: Option<u64>) {
        let minimum = state.table.minimum().unwrap_or(Clock::MAX);
        let passed = before.is_some_and(|before| before != state.table.generation());
        if passed {
            state.sum = sum_in_task_order(&mut state.contributions);
        }
        let old = self.minimum.swap(minimum, Ordering::AcqRel);
        if passed || old != minimum {
            self.changed.notify_all();
        }
    }

    fn wait_while<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        task: u32,
        clock: Clock,
        purpose: impl Fn() -> String,
        must_wait: impl Fn(&ClockTable) -> bool,
        is_awaited: impl Fn(&ClockTable, u32) -> bool,
    ) -> Result<MutexGuard<'a, State>, Error> {
        let start = Instant::now();
        self.wait_count.fetch_add(1, Ordering::Relaxed);
        let result = loop {
            if let Some(reason) = &state.stop_reason {
                break Err(Error::Stopped { reason: reason.clone() });
            }
            if !must_wait(&state.table) {
                break Ok(());
            }
            if let Some((_, reason)) =
                state.failure_reasons.iter().find(|failed| is_awaited(&state.table, *failed.0))
            {
                break Err(Error::Stopped { reason: reason.clone() });
            }
            let waited = start.elapsed();
            let Some(left) = self.wait_limit.checked_sub(waited).filter(|left| !left.is_zero()) else {
                let waited_for = SlowestTask { task_and_clock: state.table.slowest_task() };
                let seconds = waited.as_secs_f64();
                break Err(Error::WaitTimeout { task, clock, seconds, purpose: purpose(), waited_for });
            };
            match self.changed.wait_timeout(state, left) {
                Ok((guard, _)) => state = guard,
                Err(_) => return Err(Error::Panicked { what: "the clocks".into() }),
            }
        };
        self.wait_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        result.map(|()| state)
    }
}
