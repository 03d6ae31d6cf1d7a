//! The meeting of workers whose master is gone: who has come, who is not waited for any longer, and who saves. Pure: each
//! worker looks at what the lanes say of the tasks, and all come to the same answer without a word between them.
//!
//! Tasks that hear of the loss stop at their next step, meet at the barrier of their epoch and leave. A task that has no
//! connection for [`DISCONNECT_LIMIT`] is taken out, for its worker is dead; one that does not come within the limit of the
//! meeting, too. When all have left, the first worker that lives saves. Should it die in the middle of that, the next one
//! does after its turn.

use std::ops::Range;
use std::time::Duration;

use rpc::message::{TaskState, TaskStats};

/// A task without a connection for so long is not waited for: agents connect again much sooner.
pub(super) const DISCONNECT_LIMIT: Duration = Duration::from_secs(5);

/// What a worker does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BarrierAction {
    /// Looks again.
    Wait,
    /// Takes out tasks that do not come.
    RemoveTasks(Vec<u32>),
    /// Saves: everybody has left, and it is its turn.
    Save,
}

/// A worker at the meeting.
#[derive(Debug)]
pub(super) struct ShutdownBarrier {
    worker_tasks: Vec<Range<u32>>,
    own_index: usize,
    /// Longest wait for those who are connected and do not come.
    limit: Duration,
    /// How long a worker has for saving before the next one does.
    save_turn: Duration,
    /// By task: since when it has no connection.
    disconnected_since: Vec<Option<Duration>>,
    /// Tasks that did not leave by themselves.
    removed: Vec<bool>,
    all_left_at: Option<Duration>,
}

impl ShutdownBarrier {
    /// Of workers with their tasks, of which this is number `own`. Times are counted from the loss.
    pub(super) fn new(crews: Vec<Range<u32>>, own: usize, limit: Duration, turn: Duration) -> Self {
        let count = crews.iter().map(|crew| crew.end).max().unwrap_or(0) as usize;
        let (gone_since, lost) = (vec![None; count], vec![false; count]);
        Self {
            worker_tasks: crews,
            own_index: own,
            limit,
            save_turn: turn,
            disconnected_since: gone_since,
            removed: lost,
            all_left_at: None,
        }
    }

    /// Tasks that were taken out.
    pub(super) fn removed_tasks(&self) -> Vec<u32> {
        (0u32..).zip(&self.removed).filter(|(_, lost)| **lost).map(|(task, _)| task).collect()
    }

    /// What follows from what the lanes say.
    pub(super) fn next_action(&mut self, now: Duration, tasks: &[TaskStats]) -> BarrierAction {
        let mut late = Vec::new();
        let mut all_left = true;
        for (task, stats) in (0u32..).zip(tasks).take(self.removed.len()) {
            let gone = &mut self.disconnected_since[task as usize];
            if stats.state == TaskState::Left {
                // Somebody else took it out.
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

    /// How many workers come before this one: those that live, in their order, then the others.
    fn workers_before(&self) -> u32 {
        let lives = |crew: &Range<u32>| crew.clone().any(|task| !self.removed[task as usize]);
        let own = &self.worker_tasks[self.own_index];
        let before = self.worker_tasks.iter().enumerate().filter(|(at, crew)| {
            if lives(own) { lives(crew) && *at < self.own_index } else { lives(crew) || *at < self.own_index }
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

    /// Two workers of two tasks each.
    fn meeting(own: usize) -> ShutdownBarrier {
        ShutdownBarrier::new(vec![0..2, 2..4], own, LIMIT, TURN)
    }

    const LIVE: TaskState = TaskState::Live;
    const LEFT: TaskState = TaskState::Left;

    #[test]
    fn the_first_worker_saves_when_all_have_left_and_the_second_only_after_its_turn() {
        let (mut first, mut second) = (meeting(0), meeting(1));
        let some = [task(LEFT, false), task(TaskState::AtBarrier, true), task(LIVE, true), task(LIVE, true)];
        let all = [task(LEFT, false); 4];
        for meeting in [&mut first, &mut second] {
            assert_eq!(meeting.next_action(at(0), &some), BarrierAction::Wait);
        }
        assert_eq!(first.next_action(at(1), &all), BarrierAction::Save);
        assert_eq!(second.next_action(at(1), &all), BarrierAction::Wait);
        assert_eq!(second.next_action(at(30), &all), BarrierAction::Wait);
        assert_eq!(second.next_action(at(31), &all), BarrierAction::Save, "the first one did not end it");
        assert_eq!(second.removed_tasks(), [0u32; 0]);
    }

    #[test]
    fn tasks_of_a_dead_worker_are_taken_out_and_the_next_worker_saves_at_once() {
        let mut second = meeting(1);
        let dead = [task(LIVE, false), task(LIVE, false), task(LEFT, false), task(LIVE, true)];
        assert_eq!(second.next_action(at(1), &dead), BarrierAction::Wait, "it may connect again");
        assert_eq!(second.next_action(at(6), &dead), BarrierAction::RemoveTasks(vec![0, 1]));
        assert_eq!(second.next_action(at(7), &[task(LEFT, false); 4]), BarrierAction::Save);
        assert_eq!(second.removed_tasks(), [0, 1]);
    }

    #[test]
    fn a_task_that_another_worker_took_out_is_known_as_lost() {
        let mut second = meeting(1);
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
        let mut first = meeting(0);
        let away = [task(LEFT, false), task(LEFT, false), task(LIVE, false), task(LEFT, false)];
        let back = [task(LEFT, false), task(LEFT, false), task(LIVE, true), task(LEFT, false)];
        assert_eq!(first.next_action(at(1), &away), BarrierAction::Wait);
        assert_eq!(first.next_action(at(4), &back), BarrierAction::Wait);
        assert_eq!(first.next_action(at(7), &away), BarrierAction::Wait);
        assert_eq!(first.next_action(at(8), &[task(LEFT, false); 4]), BarrierAction::Save);
    }

    #[test]
    fn one_that_hangs_is_waited_for_until_the_limit() {
        let mut second = meeting(1);
        let hangs = [task(LIVE, true), task(LEFT, false), task(LEFT, false), task(LEFT, false)];
        assert_eq!(second.next_action(at(59), &hangs), BarrierAction::Wait);
        assert_eq!(second.next_action(at(60), &hangs), BarrierAction::RemoveTasks(vec![0]));
    }
}
