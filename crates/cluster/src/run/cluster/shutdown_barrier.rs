//! The shutdown barrier of workers without a master: which tasks have left, which are not waited for any longer, and
//! which worker saves. It is pure: all workers receive the same state of the tasks from the lanes, so they decide the
//! same without messages between them.
//!
//! When a worker loses the master, its tasks stop at their next step, wait at the barrier of their epoch and leave. A
//! task without a connection for [`DISCONNECT_LIMIT`] is removed, because its worker is dead; so is a task that does
//! not leave within the limit of the barrier. When all tasks have left, the first live worker saves. If it dies while
//! saving, the next one saves after its turn.

use std::ops::Range;
use std::time::Duration;

use rpc::message::{TaskState, TaskStats};

/// A task without a connection for this long is not waited for: agents reconnect much sooner.
pub(super) const DISCONNECT_LIMIT: Duration = Duration::from_secs(5);

/// The next action of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BarrierAction {
    /// Request the state of the tasks again.
    Wait,
    /// Remove tasks that did not leave in time.
    RemoveTasks(Vec<u32>),
    /// Save the model: all tasks have left, and it is this worker's turn.
    Save,
}

/// The state of the barrier on one worker.
#[derive(Debug)]
pub(super) struct ShutdownBarrier {
    worker_tasks: Vec<Range<u32>>,
    own_index: usize,
    /// Maximum wait for tasks that are connected but do not leave.
    limit: Duration,
    /// How long a worker has for saving before the next one tries.
    save_turn: Duration,
    /// By task: the time since which it has no connection.
    disconnected_since: Vec<Option<Duration>>,
    /// By task: whether it was removed and did not leave by itself.
    removed: Vec<bool>,
    all_left_at: Option<Duration>,
}

impl ShutdownBarrier {
    /// Creates the barrier for workers with these tasks; `own` is the index of this worker. Times count from the loss
    /// of the master.
    pub(super) fn new(worker_tasks: Vec<Range<u32>>, own: usize, limit: Duration, turn: Duration) -> Self {
        let count = worker_tasks.iter().map(|share| share.end).max().unwrap_or(0) as usize;
        let (gone_since, lost) = (vec![None; count], vec![false; count]);
        Self {
            worker_tasks,
            own_index: own,
            limit,
            save_turn: turn,
            disconnected_since: gone_since,
            removed: lost,
            all_left_at: None,
        }
    }

    /// Returns the tasks that were removed.
    pub(super) fn removed_tasks(&self) -> Vec<u32> {
        (0u32..).zip(&self.removed).filter(|(_, lost)| **lost).map(|(task, _)| task).collect()
    }

    /// Returns the next action for the state of the tasks that the lanes report.
    pub(super) fn next_action(&mut self, now: Duration, tasks: &[TaskStats]) -> BarrierAction {
        let mut late = Vec::new();
        let mut all_left = true;
        for (task, stats) in (0u32..).zip(tasks).take(self.removed.len()) {
            let gone = &mut self.disconnected_since[task as usize];
            if stats.state == TaskState::Left {
                // Another worker has removed the task.
                self.removed[task as usize] |= gone.is_some();
                continue;
            }
            all_left = false;
            *gone = if stats.connected { None } else { Some(gone.unwrap_or(now)) };
            let is_gone = gone.is_some_and(|since| now.saturating_sub(since) >= DISCONNECT_LIMIT);
            if is_gone || now >= self.limit {
                self.removed[task as usize] = true;
                late.push(task);
            }
        }
        if !late.is_empty() {
            return BarrierAction::RemoveTasks(late);
        }
        if !all_left {
            return BarrierAction::Wait;
        }
        let met_at = *self.all_left_at.get_or_insert(now);
        if now >= met_at + self.save_turn * self.workers_before() {
            BarrierAction::Save
        } else {
            BarrierAction::Wait
        }
    }

    /// Number of workers whose turn is before this one's: live workers come first, in their order, then the others.
    fn workers_before(&self) -> u32 {
        let lives = |share: &Range<u32>| share.clone().any(|task| !self.removed[task as usize]);
        let own = &self.worker_tasks[self.own_index];
        let before = self.worker_tasks.iter().enumerate().filter(|(at, share)| {
            if lives(own) {
                lives(share) && *at < self.own_index
            } else {
                lives(share) || *at < self.own_index
            }
        });
        before.count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_mins(1);
    const TURN: Duration = Duration::from_secs(30);

    fn task(state: TaskState, connected: bool) -> TaskStats {
        TaskStats { clock: 7, state, connected, wait: None }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Returns the barrier of two workers with two tasks each.
    fn barrier(own: usize) -> ShutdownBarrier {
        ShutdownBarrier::new(vec![0..2, 2..4], own, LIMIT, TURN)
    }

    const LIVE: TaskState = TaskState::Live;
    const LEFT: TaskState = TaskState::Left;

    #[test]
    fn the_first_worker_saves_when_all_have_left_and_the_second_only_after_its_turn() {
        let (mut first, mut second) = (barrier(0), barrier(1));
        let some = [task(LEFT, false), task(TaskState::AtBarrier, true), task(LIVE, true), task(LIVE, true)];
        let all = [task(LEFT, false); 4];
        for barrier in [&mut first, &mut second] {
            assert_eq!(barrier.next_action(at(0), &some), BarrierAction::Wait);
        }
        assert_eq!(first.next_action(at(1), &all), BarrierAction::Save);
        assert_eq!(second.next_action(at(1), &all), BarrierAction::Wait);
        assert_eq!(second.next_action(at(30), &all), BarrierAction::Wait);
        assert_eq!(second.next_action(at(31), &all), BarrierAction::Save, "the first one did not end it");
        assert_eq!(second.removed_tasks(), [0u32; 0]);
    }

    #[test]
    fn tasks_of_a_dead_worker_are_taken_out_and_the_next_worker_saves_at_once() {
        let mut second = barrier(1);
        let dead = [task(LIVE, false), task(LIVE, false), task(LEFT, false), task(LIVE, true)];
        assert_eq!(second.next_action(at(1), &dead), BarrierAction::Wait, "it may connect again");
        assert_eq!(second.next_action(at(6), &dead), BarrierAction::RemoveTasks(vec![0, 1]));
        assert_eq!(second.next_action(at(7), &[task(LEFT, false); 4]), BarrierAction::Save);
        assert_eq!(second.removed_tasks(), [0, 1]);
    }

    #[test]
    fn a_task_that_another_worker_took_out_is_known_as_lost() {
        let mut second = barrier(1);
        let dead = [task(LIVE, false), task(LIVE, false), task(LEFT, false), task(LIVE, true)];
        assert_eq!(second.next_action(at(1), &dead), BarrierAction::Wait);
        assert_eq!(
            second.next_action(at(6), &[task(LEFT, false); 4]),
            BarrierAction::Save,
            "its turn is the first"
        );
    }

    #[test]
    fn one_that_connects_again_is_waited_for() {
        let mut first = barrier(0);
        let away = [task(LEFT, false), task(LEFT, false), task(LIVE, false), task(LEFT, false)];
        let back = [task(LEFT, false), task(LEFT, false), task(LIVE, true), task(LEFT, false)];
        assert_eq!(first.next_action(at(1), &away), BarrierAction::Wait);
        assert_eq!(first.next_action(at(4), &back), BarrierAction::Wait);
        assert_eq!(first.next_action(at(7), &away), BarrierAction::Wait);
        assert_eq!(first.next_action(at(8), &[task(LEFT, false); 4]), BarrierAction::Save);
    }

    #[test]
    fn one_that_hangs_is_waited_for_until_the_limit() {
        let mut second = barrier(1);
        let hangs = [task(LIVE, true), task(LEFT, false), task(LEFT, false), task(LEFT, false)];
        assert_eq!(second.next_action(at(59), &hangs), BarrierAction::Wait);
        assert_eq!(second.next_action(at(60), &hangs), BarrierAction::RemoveTasks(vec![0]));
    }
}
