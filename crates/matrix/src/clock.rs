//! The only file that decides freshness: the clocks of tasks and the three consistency modes.
//!
//! [`ClockTable`] is pure: no thread, no time, no lock. Calls that come early, late or twice have defined results.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Number of ticks that a task has made.
pub type Clock = u64;

/// What a read may miss. A push made before its task's `(k + 1)`-th tick is stamped `k`; `m` is the smallest clock of
/// the live tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Consistency {
    /// A pull at clock `c` answers when `m >= c` and sees exactly the pushes stamped below `c`.
    Bsp,
    /// Pulls and pushes of a task at clock `c` wait until `m >= c - staleness`; pushes apply on arrival.
    Ssp {
        /// How many clocks a task may run ahead of the slowest.
        staleness: u64,
    },
    /// Nothing waits.
    Asp,
}

impl Consistency {
    /// The smallest `m` at which a task at clock `c` may pull.
    #[inline]
    pub fn pull_needs(self, c: Clock) -> Clock {
        match self {
            Consistency::Bsp => c,
            Consistency::Ssp { staleness } => c.saturating_sub(staleness),
            Consistency::Asp => 0,
        }
    }

    /// The smallest `m` at which a task at clock `c` may push. Under BSP a push would be staged and could be taken at
    /// once; it waits all the same, so that what is staged never grows beyond one clock.
    #[inline]
    pub fn push_needs(self, c: Clock) -> Clock {
        self.pull_needs(c)
    }

    /// Whether a value that was read may serve a pull at clock `c` without asking again. It was read by a pull stamped
    /// `stamp`, and m was `minimum` when that was answered. Under BSP every clock has values of its own; under SSP it
    /// serves while no push is missing from it that a pull at `c` must see; ASP promises nothing that could be kept.
    #[inline]
    pub fn may_reuse(self, stamp: Clock, minimum: Clock, c: Clock) -> bool {
        match self {
            Consistency::Bsp => stamp == c,
            Consistency::Ssp { .. } => minimum >= self.pull_needs(c),
            Consistency::Asp => false,
        }
    }

    /// Whether a push is staged until the clock of its stamp is over, instead of applied on arrival.
    #[inline]
    pub fn stages_pushes(self) -> bool {
        match self {
            Consistency::Bsp => true,
            Consistency::Ssp { .. } | Consistency::Asp => false,
        }
    }
}

/// Why a call about a task was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClockFault {
    /// The task has ended or was removed.
    #[error("it has ended or was removed")]
    Left,
    /// The task waits at the barrier.
    #[error("it waits at a barrier")]
    AtBarrier,
    /// No such task.
    #[error("there is no such task")]
    Unknown,
}

/// What a task that came to the barrier does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierArrival {
    /// It was the last: all go on.
    Released,
    /// It waits until [`ClockTable::generation`] is no longer this number.
    Wait {
        /// The generation of the barrier that it waits at.
        generation: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskState {
    Live,
    AtBarrier,
    Left,
}

/// The clocks of all tasks. Invariants: the minimum never falls; a task that left never comes back (it joins anew under
/// another number); at least one live task is not at the barrier, unless all have left.
#[derive(Clone, Debug)]
pub struct ClockTable {
    tasks: Vec<(TaskState, Clock)>,
    generation: u64,
    /// Live tasks that have not come to a barrier that is over here: [`Self::join_late`].
    late_joiners: BTreeSet<u32>,
    /// m when the last of them came or left: the clocks of the others may be told only later.
    floor: Clock,
}

impl ClockTable {
    /// `task_count` live tasks at clock 0.
    pub fn new(task_count: u32) -> Self {
        let tasks = vec![(TaskState::Live, 0); task_count as usize];
        Self { tasks, generation: 0, late_joiners: BTreeSet::new(), floor: 0 }
    }

    /// Ends a step of `task`; its new clock.
    pub fn tick(&mut self, task: u32) -> Result<Clock, ClockFault> {
        let clock = self.live_clock(task)?;
        self.tasks[task as usize].1 = clock + 1;
        Ok(clock + 1)
    }

    /// Sets the clock of `task` to at least `clock`; its clock. An earlier one changes nothing and is never an error while
    /// the task has not left, so that a tick may come late or twice; at the barrier a later one is refused.
    pub fn advance(&mut self, task: u32, clock: Clock) -> Result<Clock, ClockFault> {
        let known = self.clock(task)?;
        if clock <= known {
            return Ok(known);
        }
        self.live_clock(task)?;
        self.tasks[task as usize].1 = clock;
        Ok(clock)
    }

    /// `task` has ended: from now on it holds nobody back. False when it had left before.
    pub fn finish(&mut self, task: u32) -> bool {
        if self.tasks.get(task as usize).is_none_or(|entry| entry.0 == TaskState::Left) {
            return false;
        }
        self.remove_late_joiner(task);
        self.tasks[task as usize].0 = TaskState::Left;
        self.release_if_complete();
        true
    }

    /// Takes `task` out for another's reason (it died, it is moved). The same effect as [`Self::finish`].
    pub fn remove(&mut self, task: u32) -> bool {
        self.finish(task)
    }

    /// A new task, at the smallest clock of the live ones (the largest of all when none is live); its number.
    pub fn join(&mut self) -> u32 {
        let clock = self.minimum().unwrap_or_else(|| self.max_clock());
        self.tasks.push((TaskState::Live, clock));
        self.tasks.len() as u32 - 1
    }

    /// A new task, as [`Self::append`], for which the others wait elsewhere at the barrier that is over here. They do not
    /// hold back the minimum before it has come to that one, as if they still waited for it here, or has left.
    pub fn join_late(&mut self) -> u32 {
        let task = self.join();
        self.late_joiners.insert(task);
        task
    }

    /// Whether a task has joined by [`Self::join_late`], and has neither come nor left since.
    pub fn is_late(&self, task: u32) -> bool {
        self.late_joiners.contains(&task)
    }

    /// `task` comes to the barrier. While it waits it does not hold back the minimum. When all live tasks have come,
    /// all their clocks become the largest of all tasks, those that have left included. Who is late comes to one that is
    /// over, and goes on at once.
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

    /// The number of barriers passed.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// m: the smallest clock of the live tasks that are not at the barrier, here or elsewhere; `None` when there is none
    /// left.
    pub fn minimum(&self) -> Option<Clock> {
        let clocks = self.counted_tasks().map(|(_, clock)| clock);
        Some(clocks.min()?.max(self.floor))
    }

    /// The clock of a task that has not left.
    pub fn clock(&self, task: u32) -> Result<Clock, ClockFault> {
        match self.tasks.get(task as usize) {
            None => Err(ClockFault::Unknown),
            Some((TaskState::Left, _)) => Err(ClockFault::Left),
            Some((TaskState::Live | TaskState::AtBarrier, clock)) => Ok(*clock),
        }
    }

    /// Number of tasks that there ever were.
    pub fn task_count(&self) -> u32 {
        self.tasks.len() as u32
    }

    /// The last clock of a task, whether it has left or not.
    pub fn last_clock(&self, task: u32) -> Option<Clock> {
        self.tasks.get(task as usize).map(|entry| entry.1)
    }

    /// Whether a task waits at the barrier.
    pub fn is_at_barrier(&self, task: u32) -> bool {
        self.tasks.get(task as usize).is_some_and(|entry| entry.0 == TaskState::AtBarrier)
    }

    /// The slowest live task that is not at the barrier, and its clock; of several the first.
    pub fn slowest_task(&self) -> Option<(u32, Clock)> {
        self.counted_tasks().min_by_key(|(_, clock)| *clock)
    }

    /// The live tasks that are not at the barrier, here or elsewhere, with their clocks.
    fn counted_tasks(&self) -> impl Iterator<Item = (u32, Clock)> {
        let live = self.tasks.iter().zip(0u32..).filter(|(entry, _)| entry.0 == TaskState::Live);
        let counts = |task: &u32| self.late_joiners.is_empty() || self.late_joiners.contains(task);
        live.map(|(entry, task)| (task, entry.1)).filter(move |(task, _)| counts(task))
    }

    /// False when it was not late.
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
        // Those that left count too: others may have seen the minimum at their clock, and it must not fall.
        let largest = self.max_clock();
        for entry in self.tasks.iter_mut().filter(|entry| waits(entry)) {
            *entry = (TaskState::Live, largest);
        }
        self.generation += 1;
    }
}

#[cfg(test)]
mod tests;
