//! The only file that decides what a read may see: the clocks of tasks and the three consistency modes.
//!
//! [`ClockTable`] is pure: it has no thread, no time and no lock. Calls that come early, late or twice have defined
//! results.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Number of ticks that a task has made.
pub type Clock = u64;

/// What a read may miss. A push made before its task's `(k + 1)`-th tick is stamped `k`; `m` is the smallest clock of
/// the live tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Consistency {
    /// A pull at clock `c` is answered when `m >= c` and sees exactly the pushes stamped below `c`.
    Bsp,
    /// Pulls and pushes of a task at clock `c` wait until `m >= c - staleness`; pushes apply on arrival.
    Ssp {
        /// Maximum number of clocks that a task may be ahead of the slowest task.
        staleness: u64,
    },
    /// Nothing waits.
    Asp,
}

/// When the request of a prefetched pull is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Prefetch {
    /// Not before the wait.
    Off,
    /// As soon as the task is at the clock of the pull. Reads return the same as without prefetch.
    #[default]
    Exact,
}

/// What the task knows of the answer of a prefetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefetchedAnswer {
    /// The clock of the pull for which it was requested.
    pub clock: Clock,
    /// The smallest m of the lanes that have answered.
    pub minimum: Clock,
    /// The task has pushed to the matrix since the request.
    pub lacks_own_push: bool,
    /// A later read of the matrix was returned to the task.
    pub is_overtaken: bool,
}

impl Consistency {
    /// Returns the smallest `m` at which a task at clock `c` may pull.
    #[inline]
    pub fn pull_needs(self, c: Clock) -> Clock {
        match self {
            Consistency::Bsp => c,
            Consistency::Ssp { staleness } => c.saturating_sub(staleness),
            Consistency::Asp => 0,
        }
    }

    /// Returns the smallest `m` at which a task at clock `c` may push. Under BSP a push is staged and could be accepted
    /// at once; it waits nevertheless, so that staged pushes never cover more than one clock.
    #[inline]
    pub fn push_needs(self, c: Clock) -> Clock {
        self.pull_needs(c)
    }

    /// Whether a pull at clock `c` may return a prefetched answer: a pull at that clock might have read the same. Reads
    /// never go back, so an answer is of no use after a later read. Under BSP an answer serves its own clock only.
    #[inline]
    pub fn may_use_prefetch(self, answer: PrefetchedAnswer, c: Clock) -> bool {
        if answer.minimum < self.pull_needs(c) {
            return false;
        }
        match self {
            Consistency::Bsp => answer.clock == c,
            Consistency::Ssp { .. } | Consistency::Asp => {
                answer.clock <= c && !answer.is_overtaken && !answer.lacks_own_push
            }
        }
    }

    /// Whether a push is staged until the clock of its stamp has ended, instead of applied on arrival.
    #[inline]
    pub fn stages_pushes(self) -> bool {
        match self {
            Consistency::Bsp => true,
            Consistency::Ssp { .. } | Consistency::Asp => false,
        }
    }
}

/// Why a call for a task was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClockFault {
    /// The task has ended or was removed.
    #[error("it has ended or was removed")]
    Left,
    /// The task waits at the barrier.
    #[error("it waits at a barrier")]
    AtBarrier,
    /// There is no such task.
    #[error("there is no such task")]
    Unknown,
}

/// The result of arriving at the barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierArrival {
    /// The task was the last to arrive: all tasks continue.
    Released,
    /// The task waits until [`ClockTable::generation`] is no longer this number.
    Wait {
        /// Generation of the barrier at which the task waits.
        generation: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum TaskState {
    Live,
    AtBarrier,
    Left,
}

/// The clocks of all tasks. Invariants: the minimum never falls; a task that has left never comes back (it joins again
/// under another number); at least one live task is not at the barrier, unless all have left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockTable {
    tasks: Vec<(TaskState, Clock)>,
    generation: u64,
    /// Live tasks that have not yet arrived at a barrier that is already over in this table: see [`Self::join_late`].
    late_joiners: BTreeSet<u32>,
    /// The value of m when the last late joiner arrived or left. The new clocks of the other tasks may become known
    /// only later.
    floor: Clock,
}

impl ClockTable {
    /// Creates a table of `task_count` live tasks at clock 0.
    pub fn new(task_count: u32) -> Self {
        let tasks = vec![(TaskState::Live, 0); task_count as usize];
        Self { tasks, generation: 0, late_joiners: BTreeSet::new(), floor: 0 }
    }

    /// Ends a step of `task` and returns its new clock.
    pub fn tick(&mut self, task: u32) -> Result<Clock, ClockFault> {
        let clock = self.live_clock(task)?;
        self.tasks[task as usize].1 = clock + 1;
        Ok(clock + 1)
    }

    /// Sets the clock of `task` to at least `clock` and returns its clock. An earlier clock changes nothing and is an
    /// error only for a task that has left, so that a tick may arrive late or twice. A later clock is refused while the
    /// task is at the barrier.
    pub fn advance(&mut self, task: u32, clock: Clock) -> Result<Clock, ClockFault> {
        let known = self.clock(task)?;
        if clock <= known {
            return Ok(known);
        }
        self.live_clock(task)?;
        self.tasks[task as usize].1 = clock;
        Ok(clock)
    }

    /// Ends `task`: from now on it does not hold back the others. Returns false when it had left before.
    pub fn finish(&mut self, task: u32) -> bool {
        if self.tasks.get(task as usize).is_none_or(|entry| entry.0 == TaskState::Left) {
            return false;
        }
        self.remove_late_joiner(task);
        self.tasks[task as usize].0 = TaskState::Left;
        self.release_if_complete();
        true
    }

    /// Removes `task` for an external reason (it died or was moved). It has the same effect as [`Self::finish`].
    pub fn remove(&mut self, task: u32) -> bool {
        self.finish(task)
    }

    /// Adds a task at the smallest clock of the live ones (the largest of all when none is live) and returns its
    /// number.
    pub fn join(&mut self) -> u32 {
        let clock = self.minimum().unwrap_or_else(|| self.max_clock());
        self.tasks.push((TaskState::Live, clock));
        self.tasks.len() as u32 - 1
    }

    /// Adds a task as [`Self::join`] does, while the other tasks still wait for it in other tables at a barrier that is
    /// already over here. The others do not hold back the minimum until the new task arrives at that barrier or leaves,
    /// as if they still waited for it here.
    pub fn join_late(&mut self) -> u32 {
        let task = self.join();
        self.late_joiners.insert(task);
        task
    }

    /// Whether a task has joined by [`Self::join_late`] and has neither arrived at the barrier nor left since.
    pub fn is_late(&self, task: u32) -> bool {
        self.late_joiners.contains(&task)
    }

    /// Registers that `task` has arrived at the barrier. A waiting task does not hold back the minimum. When all live
    /// tasks have arrived, the clocks of all of them become the largest of all tasks, including those that have left.
    /// For a late joiner the barrier is already over, so it continues at once.
    pub fn barrier(&mut self, task: u32) -> Result<BarrierArrival, ClockFault> {
        self.live_clock(task)?;
        if self.remove_late_joiner(task) {
            return Ok(BarrierArrival::Released);
        }
        self.tasks[task as usize].0 = TaskState::AtBarrier;
        let generation = self.generation;
        self.release_if_complete();
        Ok(if self.generation == generation {
            BarrierArrival::Wait { generation }
        } else {
            BarrierArrival::Released
        })
    }

    /// Number of barriers passed.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns m: the smallest clock of the live tasks that do not wait at a barrier, in this table or in others.
    /// `None` when there is no such task.
    pub fn minimum(&self) -> Option<Clock> {
        let clocks = self.counted_tasks().map(|(_, clock)| clock);
        Some(clocks.min()?.max(self.floor))
    }

    /// Returns the clock of a task that has not left.
    pub fn clock(&self, task: u32) -> Result<Clock, ClockFault> {
        match self.tasks.get(task as usize) {
            None => Err(ClockFault::Unknown),
            Some((TaskState::Left, _)) => Err(ClockFault::Left),
            Some((TaskState::Live | TaskState::AtBarrier, clock)) => Ok(*clock),
        }
    }

    /// Number of tasks that have ever existed.
    pub fn task_count(&self) -> u32 {
        self.tasks.len() as u32
    }

    /// Returns the last clock of a task, even if it has left.
    pub fn last_clock(&self, task: u32) -> Option<Clock> {
        self.tasks.get(task as usize).map(|entry| entry.1)
    }

    /// Whether a task waits at the barrier.
    pub fn is_at_barrier(&self, task: u32) -> bool {
        self.tasks.get(task as usize).is_some_and(|entry| entry.0 == TaskState::AtBarrier)
    }

    /// Returns the slowest live task that is not at the barrier, and its clock; the first of several.
    pub fn slowest_task(&self) -> Option<(u32, Clock)> {
        self.counted_tasks().min_by_key(|(_, clock)| *clock)
    }

    /// Returns the live tasks that do not wait at a barrier, in this table or in others, with their clocks.
    fn counted_tasks(&self) -> impl Iterator<Item = (u32, Clock)> {
        let live = self.tasks.iter().zip(0u32..).filter(|(entry, _)| entry.0 == TaskState::Live);
        let counts = |task: &u32| self.late_joiners.is_empty() || self.late_joiners.contains(task);
        live.map(|(entry, task)| (task, entry.1)).filter(move |(task, _)| counts(task))
    }

    /// Removes a late joiner. Returns false when the task was none.
    fn remove_late_joiner(&mut self, task: u32) -> bool {
        let floor = self.minimum();
        let was_late = self.late_joiners.remove(&task);
        if was_late && self.late_joiners.is_empty() {
            self.floor = floor.map_or(self.floor, |floor| floor.max(self.floor));
        }
        was_late
    }

    fn live_clock(&self, task: u32) -> Result<Clock, ClockFault> {
        match self.tasks.get(task as usize) {
            None => Err(ClockFault::Unknown),
            Some((TaskState::Left, _)) => Err(ClockFault::Left),
            Some((TaskState::AtBarrier, _)) => Err(ClockFault::AtBarrier),
            Some((TaskState::Live, clock)) => Ok(*clock),
        }
    }

    fn max_clock(&self) -> Clock {
        self.tasks.iter().map(|task| task.1).max().unwrap_or(0)
    }

    fn release_if_complete(&mut self) {
        let waits = |entry: &(TaskState, Clock)| entry.0 == TaskState::AtBarrier;
        if self.tasks.iter().any(|entry| entry.0 == TaskState::Live) || !self.tasks.iter().any(waits) {
            return;
        }
        // Tasks that have left count too: others may have seen the minimum at their clock, and it must not fall.
        let largest = self.max_clock();
        for entry in self.tasks.iter_mut().filter(|entry| waits(entry)) {
            *entry = (TaskState::Live, largest);
        }
        self.generation += 1;
    }
}

#[cfg(test)]
mod tests;
