//! How the tasks of a worker come to save their states at the same moment as all others of the job.
//!
//! Between two epochs the driver's decision says so. Within an epoch the driver plans a clock and asks all workers
//! whether their tasks can still stop there: a task that has passed it cannot. A task that has come to the planned
//! clock waits for the driver's decision about the plan. So under bsp and ssp all tasks save at one clock; under asp,
//! where no task waits for another, each saves at its next step.

use algo::TaskState;

/// The tasks of a worker that save.
#[derive(Debug, Default)]
pub(super) struct Saves {
    /// The clock of each task at its last step. A task that begins an epoch may be ahead of it, but then it is where all
    /// tasks are: an epoch ends with a barrier.
    clocks: Vec<(u32, u64)>,
    plan: Option<SavePlan>,
    /// The states of tasks that wait for the end of the save.
    states: Vec<TaskState>,
    /// Saves that have ended.
    ended_count: u64,
}

#[derive(Clone, Copy, Debug)]
struct SavePlan {
    number: u64,
    /// The clock at which tasks save; none: at their next step.
    clock: Option<u64>,
    is_confirmed: bool,
}

/// What a task does before its next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BeforeStep {
    GoOn,
    /// It waits for the decision about the plan.
    Wait,
    Save,
}

impl Saves {
    /// An epoch has ended, and with it the plan for it.
    pub(super) fn end_epoch(&mut self) {
        self.plan = None;
    }

    /// The tasks of this worker begin at clock 0.
    pub(super) fn set_tasks(&mut self, tasks: impl Iterator<Item = u32>) {
        self.clocks = tasks.map(|task| (task, 0)).collect();
    }

    /// A task is before a step, at this clock.
    pub(super) fn before_step(&mut self, task: u32, clock: u64) -> BeforeStep {
        if let Some((_, known)) = self.clocks.iter_mut().find(|(known, _)| *known == task) {
            *known = clock;
        }
        match self.plan {
            Some(plan) if plan.clock.is_some_and(|due| clock < due) => BeforeStep::GoOn,
            Some(plan) if plan.is_confirmed => BeforeStep::Save,
            Some(_) => BeforeStep::Wait,
            None => BeforeStep::GoOn,
        }
    }

    /// Takes a plan, if all tasks can follow it. Returns whether they can, and the largest clock of a task.
    pub(super) fn plan(&mut self, number: u64, clock: Option<u64>) -> (bool, Option<u64>) {
        let Some(largest) = self.clocks.iter().map(|(_, clock)| *clock).max() else { return (false, None) };
        let is_possible = clock.is_none_or(|clock| largest < clock);
        if is_possible {
            self.plan = Some(SavePlan { number, clock, is_confirmed: false });
        }
        (is_possible, Some(largest))
    }

    pub(super) fn decide(&mut self, number: u64, is_confirmed: bool) {
        match &mut self.plan {
            Some(plan) if plan.number == number && is_confirmed => plan.is_confirmed = true,
            Some(plan) if plan.number == number => self.plan = None,
            _ => {}
        }
    }

    /// A task waits with its state. Returns the number of saves that have ended: when it has grown, the task goes on.
    pub(super) fn add(&mut self, state: TaskState) -> u64 {
        self.states.push(state);
        self.ended_count
    }

    pub(super) fn ended_count(&self) -> u64 {
        self.ended_count
    }

    /// The states of the waiting tasks, which are taken once.
    pub(super) fn take_states(&mut self) -> Vec<TaskState> {
        self.states.sort_by_key(|state| state.task);
        std::mem::take(&mut self.states)
    }

    /// All waiting tasks go on.
    pub(super) fn end(&mut self) {
        self.plan = None;
        self.ended_count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_tasks(clocks: [u64; 2]) -> Saves {
        let mut saves = Saves::default();
        saves.set_tasks(4..6);
        for (task, clock) in (4..).zip(clocks) {
            assert_eq!(saves.before_step(task, clock), BeforeStep::GoOn);
        }
        saves
    }

    #[test]
    fn tasks_stop_at_the_planned_clock_and_wait_for_the_decision() {
        let mut saves = two_tasks([3, 4]);
        assert_eq!(saves.plan(1, Some(5)), (true, Some(4)));
        assert_eq!(saves.before_step(4, 4), BeforeStep::GoOn);
        assert_eq!(saves.before_step(5, 5), BeforeStep::Wait);
        saves.decide(1, true);
        assert_eq!(saves.before_step(5, 5), BeforeStep::Save);
        assert_eq!(saves.before_step(4, 5), BeforeStep::Save);
        saves.end();
        assert_eq!(saves.before_step(4, 5), BeforeStep::GoOn);
    }

    #[test]
    fn a_plan_that_a_task_has_passed_is_refused_and_a_cancelled_one_is_forgotten() {
        let mut saves = two_tasks([3, 5]);
        assert_eq!(saves.plan(1, Some(5)), (false, Some(5)), "the task may be in the step after 5");
        assert_eq!(saves.before_step(4, 5), BeforeStep::GoOn);
        assert_eq!(saves.plan(2, Some(7)), (true, Some(5)));
        assert_eq!(saves.before_step(5, 7), BeforeStep::Wait);
        saves.decide(1, true);
        assert_eq!(saves.before_step(5, 7), BeforeStep::Wait, "the decision is about another plan");
        saves.decide(2, false);
        assert_eq!(saves.before_step(5, 7), BeforeStep::GoOn);
    }

    #[test]
    fn without_a_clock_each_task_saves_at_its_next_step() {
        let mut saves = two_tasks([3, 90]);
        assert_eq!(saves.plan(1, None), (true, Some(90)));
        saves.decide(1, true);
        assert_eq!(saves.before_step(4, 4), BeforeStep::Save);
    }

    #[test]
    fn a_plan_may_come_before_the_first_step_and_ends_with_its_epoch() {
        let mut saves = Saves::default();
        assert_eq!(saves.plan(1, Some(9)), (false, None), "no tasks");
        saves.set_tasks(0..2);
        assert_eq!(saves.plan(2, Some(0)), (false, Some(0)));
        assert_eq!(saves.plan(3, Some(2)), (true, Some(0)));
        assert_eq!(saves.before_step(0, 1), BeforeStep::GoOn);
        assert_eq!(saves.before_step(0, 2), BeforeStep::Wait);
        saves.end_epoch();
        assert_eq!(saves.before_step(0, 2), BeforeStep::GoOn);
        assert_eq!(saves.plan(4, Some(2)), (false, Some(2)));
    }
}
