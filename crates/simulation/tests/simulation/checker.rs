//! Checks a history. The checker knows what the tasks requested and what they read. It knows nothing of lanes, agents
//! and frames.
//!
//! A pull at clock c sees the first j pushes of a task, in the order in which that task made them; for one reader j
//! never falls. Under BSP j is the number of pushes stamped below c. Under SSP(s) j is at least the number of pushes
//! stamped below c - s and at most the number stamped below c + s + 1. Every pull contains what was pushed before a
//! barrier that both tasks have passed. Except under BSP a task sees all of its own pushes.

use std::collections::BTreeMap;

use matrix::Consistency;

use crate::history::{Cell, Entry, Facts, History, TaskEvent};
use crate::scenario::{Disturbance, Scenario};

/// A pull ends within this many of the longest delays: those of its window, its keys, the tick and the pull itself.
const DELAYS_OF_PULL: u64 = 12;

/// A counter: matrix, partition and the task that adds to it.
type Counter = (usize, u32, u32);

/// A push as the task made it.
#[derive(Clone, Copy, Debug)]
struct RecordedPush {
    clock: u64,
    /// Sum of the amounts up to this one.
    sum: i64,
    entry: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskPhase {
    NotYet,
    Works,
    AtBarrier,
    /// The task leaves, was removed, or failed. No task waits for it. What it sent may be lost unless it left by
    /// itself.
    Leaves,
    Gone,
}

#[derive(Clone, Debug)]
struct TaskRecord {
    life: TaskPhase,
    clock: u64,
    /// Per generation: the entry at which the task came to the barrier.
    barriers: Vec<usize>,
    passed: usize,
    has_left: bool,
    /// Clock, and the time at which the task came to it, in microseconds.
    ticks: Vec<(u64, u64)>,
    /// Clock that its pushes wait for; a pull behind them waits for it too.
    push_needs: u64,
    /// Number of lanes at which a tool has removed the task.
    removals: usize,
    /// Time in microseconds since which no task waits for this one, if it has left.
    free_since: u64,
    /// Highest clock of the attempts before this one.
    again: Option<u64>,
}

struct Checker<'a> {
    scenario: &'a Scenario,
    history: &'a History,
    tasks: Vec<TaskRecord>,
    made: BTreeMap<Counter, Vec<RecordedPush>>,
    /// Per reader: number of pushes that it has seen.
    seen: BTreeMap<(u32, Counter), usize>,
    /// Values read under BSP, per clock.
    values: BTreeMap<(u64, Counter), i64>,
    /// Per generation: the clock after the barrier and the sum.
    meetings: BTreeMap<u64, (u64, Vec<f64>)>,
    parts: BTreeMap<(u64, u32), Vec<f64>>,
    has_crashed: bool,
    faults: Vec<String>,
    facts: Facts,
}

/// Returns every fault, and the counts of what happened. No fault means that the history is correct.
pub(crate) fn check(scenario: &Scenario, history: &History) -> (Vec<String>, Facts) {
    let first = TaskRecord {
        life: TaskPhase::Works,
        clock: 0,
        barriers: Vec::new(),
        passed: 0,
        has_left: false,
        ticks: Vec::new(),
        push_needs: 0,
        removals: 0,
        free_since: 0,
        again: None,
    };
    let mut tasks = vec![first.clone(); scenario.task_count as usize];
    tasks.push(TaskRecord { life: TaskPhase::NotYet, ..first });
    let mut checker = Checker {
        scenario,
        history,
        tasks,
        made: BTreeMap::new(),
        seen: BTreeMap::new(),
        values: BTreeMap::new(),
        meetings: BTreeMap::new(),
        parts: BTreeMap::new(),
        has_crashed: false,
        faults: history.seen.clone(),
        facts: history.facts,
    };
    checker.faults.extend(history.stuck.clone());
    for (i, entry) in history.entries.iter().enumerate() {
        checker.take(i, entry);
    }
    checker.check_sums();
    (checker.faults, checker.facts)
}

impl TaskRecord {
    /// Returns the time from which on the task does not delay a pull that needs this clock.
    fn holds_back_until(&self, needed: u64) -> u64 {
        match self.life {
            TaskPhase::Works => {
                let at = self.ticks.partition_point(|(clock, _)| *clock < needed);
                self.ticks.get(at).map_or(0, |(_, time)| *time)
            }
            TaskPhase::NotYet => 0,
            // The history does not say whether the lanes took its last ticks.
            TaskPhase::Gone => self.free_since,
            TaskPhase::AtBarrier | TaskPhase::Leaves => {
                let at = self.ticks.partition_point(|(clock, _)| *clock < needed);
                self.ticks.get(at).map_or(self.free_since, |(_, time)| *time)
            }
        }
    }

    /// A task that is gone does not come back.
    fn becomes(&mut self, life: TaskPhase) {
        if self.life != TaskPhase::Gone {
            self.life = life;
        }
    }
}

impl Checker<'_> {
    fn fault(&mut self, entry: &Entry, mut text: String) {
        text.insert_str(0, &format!("at {} us, task {}: ", entry.time, entry.task));
        self.faults.push(text);
    }

    fn take(&mut self, i: usize, entry: &Entry) {
        let at = entry.task as usize;
        match &entry.what {
            TaskEvent::Push { matrix, clock, amount, partitions } => {
                let needs = self.history.consistency[*matrix].push_needs(*clock);
                self.tasks[at].push_needs = self.tasks[at].push_needs.max(needs);
                for partition in (0..64).filter(|partition| partitions >> partition & 1 == 1) {
                    let made = self.made.entry((*matrix, partition, entry.task)).or_default();
                    let sum = made.last().map_or(0, |last| last.sum) + amount;
                    made.push(RecordedPush { clock: *clock, sum, entry: i });
                }
            }
            TaskEvent::Tick { clock } => {
                let task = &mut self.tasks[at];
                task.clock = task.clock.max(*clock);
                task.ticks.push((*clock, entry.time));
            }
            TaskEvent::Again { clock } => self.goes_on(at, *clock),
            TaskEvent::Pulled { matrix, clock, begun, cells } => {
                self.facts.pulls += 1;
                self.facts.empty_pulls += u64::from(cells.is_empty());
                self.check_clocks(entry, *matrix, *clock);
                self.check_wait(entry, *matrix, *clock, *begun);
                for cell in cells {
                    self.check_cell(entry, *matrix, *clock, *cell);
                }
            }
            TaskEvent::Barrier { generation, part } => {
                self.tasks[at].becomes(TaskPhase::AtBarrier);
                self.tasks[at].free_since = entry.time;
                self.tasks[at].barriers.push(i);
                if let Some(part) = part {
                    self.parts.insert((*generation, entry.task), part.clone());
                }
            }
            TaskEvent::Passed { generation, clock, sum } => {
                self.check_barrier(entry, *generation, *clock, sum);
            }
            TaskEvent::Leaves => {
                self.tasks[at].becomes(TaskPhase::Leaves);
                self.tasks[at].free_since = self.tasks[at].free_since.max(entry.time);
            }
            TaskEvent::Left => {
                self.tasks[at].has_left = true;
                let is_paused = self.scenario.disturbance == Disturbance::PausedForEver;
                self.facts.left_beside_paused += u64::from(is_paused && !self.tasks[0].has_left);
            }
            TaskEvent::Removed => {
                let (clock, is_first) = (self.tasks[at].clock, self.tasks[at].life != TaskPhase::Gone);
                self.tasks[at].life = TaskPhase::Gone;
                self.tasks[at].free_since = entry.time;
                self.tasks[at].removals += 1;
                let others = self.tasks.iter().filter(|task| task.life == TaskPhase::Works);
                let is_far = others.map(|task| task.clock).min().is_some_and(|slowest| slowest > clock + 1);
                self.facts.removals_at_a_gap += u64::from(is_far && is_first);
            }
            TaskEvent::Joined { clock, generation } => self.check_joined(entry, *clock, *generation),
            TaskEvent::Failed { error } => {
                let expected = self.has_crashed || self.tasks[at].life == TaskPhase::Gone;
                self.tasks[at].life = TaskPhase::Gone;
                if !expected {
                    self.fault(entry, format!("failed: {error}"));
                }
            }
            TaskEvent::Cut | TaskEvent::Crashed => {
                self.has_crashed = true;
                self.facts.crashes += u64::from(matches!(entry.what, TaskEvent::Crashed));
            }
        }
    }

    /// Another attempt of a task continues.
    fn goes_on(&mut self, at: usize, clock: u64) {
        let task = &mut self.tasks[at];
        self.facts.attempts += 1;
        self.facts.attempts_behind += u64::from(clock < task.clock);
        task.again = Some(task.clock);
    }

    /// A pull at clock c has ended: every working task must have made the ticks that the pull waited for.
    fn check_clocks(&mut self, entry: &Entry, matrix: usize, clock: u64) {
        let needed = self.history.consistency[matrix].pull_needs(clock);
        let late = |task: &TaskRecord| task.life == TaskPhase::Works && task.clock < needed;
        if let Some(other) = self.tasks.iter().position(late)
            && !self.has_crashed
        {
            let text = format!(
                "pulled from matrix {matrix} ({:?}) at clock {clock} while task {other} was at clock {}",
                self.history.consistency[matrix], self.tasks[other].clock
            );
            self.fault(entry, text);
        }
    }

    /// If no message is lost and no process is paused, a pull ends soon after the last tick that it waits for.
    fn check_wait(&mut self, entry: &Entry, matrix: usize, clock: u64, begun: u64) {
        let own = self.tasks[entry.task as usize].push_needs;
        let needed = self.history.consistency[matrix].pull_needs(clock).max(own);
        let others = self.tasks.iter().enumerate().filter(|(i, _)| *i != entry.task as usize);
        let came = others.map(|(_, task)| task.holds_back_until(needed)).max().unwrap_or(0);
        self.facts.waits += u64::from(came > begun);
        // A task that a tool has removed at some lanes may still leave by itself at the others.
        let lanes = usize::from(self.scenario.lane_count);
        let halfway = self.tasks.iter().any(|task| task.removals > 0 && task.removals < lanes);
        let limit = came.max(begun) + self.scenario.longest_delay * DELAYS_OF_PULL;
        if self.scenario.is_quiet() && !halfway && entry.time > limit {
            let text = format!(
                "pulled from matrix {matrix} at clock {clock} from {begun} us on, though nobody held it back \
                 after {came} us"
            );
            self.fault(entry, text);
        }
    }

    fn check_cell(&mut self, entry: &Entry, matrix: usize, clock: u64, cell: Cell) {
        let counter = (matrix, cell.partition, cell.writer);
        let consistency = self.history.consistency[matrix];
        let made = self.made.get(&counter).map_or(&[][..], Vec::as_slice);
        let below = |bound: u64| made.partition_point(|push| push.clock < bound);
        let what = || format!("pull from matrix {matrix} ({consistency:?}) at clock {clock} saw {cell:?}");
        let Some(count) = prefix(made, cell.value) else {
            let text = format!("{}, which no first pushes of {made:?} make", what());
            return self.fault(entry, text);
        };
        let writer = &self.tasks[cell.writer as usize];
        let is_own = cell.writer == entry.task;
        let may_lack = (self.has_crashed || writer.life == TaskPhase::Gone) && !is_own;
        let (mut least, most) = match consistency {
            Consistency::Bsp => (below(clock), below(clock)),
            Consistency::Ssp { staleness } => {
                (below(clock.saturating_sub(staleness)), below(clock + staleness + 1))
            }
            Consistency::Asp => (0, made.len()),
        };
        let reader = &self.tasks[entry.task as usize];
        let is_again = reader.again.is_some_and(|highest| clock <= highest);
        let most = if is_again { made.len() } else { most };
        if is_own && is_again {
            // Pushes that the task has not repeated yet may be there or not.
        } else if is_own && consistency != Consistency::Bsp {
            least = made.len();
        }
        let met = writer.barriers[..writer.barriers.len().min(self.tasks[entry.task as usize].passed)].last();
        if let Some(met) = met {
            least = least.max(made.partition_point(|push| push.entry < *met));
        }
        if may_lack {
            least = 0;
        }
        if count < least || count > most {
            let text = format!("{}: {count} pushes, expected {least} to {most} of {made:?}", what());
            return self.fault(entry, text);
        }
        let before = self.seen.insert((entry.task, counter), count).unwrap_or(0);
        let newer = made[..count].last().is_some_and(|push| push.clock >= clock);
        let older = made.get(count).is_some_and(|push| push.clock < clock);
        if consistency == (Consistency::Ssp { staleness: 0 }) {
            self.facts.newer_than_bsp += u64::from(newer && !is_own);
        }
        if matches!(consistency, Consistency::Ssp { .. }) {
            self.facts.older_than_bsp += u64::from(older && !is_own);
        }
        if count < before {
            let text = format!("{}: {count} pushes, it had seen {before}", what());
            self.fault(entry, text);
        }
        if consistency == Consistency::Bsp && !is_again {
            let first = *self.values.entry((clock, counter)).or_insert(cell.value);
            if first != cell.value {
                let text = format!("{}, another reader saw {first} at this clock", what());
                self.fault(entry, text);
            }
        }
    }

    /// One task has passed a barrier: all working tasks must have come to it, and all get the same clock and sum.
    fn check_barrier(&mut self, entry: &Entry, generation: u64, clock: u64, sum: &[f64]) {
        let at = entry.task as usize;
        let came = |task: &TaskRecord| task.barriers.len() as u64 > generation;
        let absent = self.tasks.iter().position(|task| task.life == TaskPhase::Works && !came(task));
        if let Some(absent) = absent {
            let text = format!("passed barrier {generation} before task {absent} came");
            self.fault(entry, text);
        }
        if clock < self.tasks[at].clock {
            let text = format!("barrier {generation} sent it from clock {} to {clock}", self.tasks[at].clock);
            self.fault(entry, text);
        }
        let told = (clock, sum.to_vec());
        let first = self.meetings.entry(generation).or_insert_with(|| told.clone()).clone();
        if first != told {
            let text = format!("barrier {generation} told it {told:?}, another task {first:?}");
            self.fault(entry, text);
        }
        let mut expected = vec![0.0; if self.scenario.sums_at(generation) { 2 } else { 0 }];
        for (_, part) in self.parts.range((generation, 0)..(generation + 1, 0)) {
            expected.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        if matches!(self.scenario.disturbance, Disturbance::Nothing | Disturbance::Join) && expected != sum {
            let text = format!("barrier {generation} summed {sum:?}, expected {expected:?}");
            self.fault(entry, text);
        }
        self.facts.barriers += 1;
        let task = &mut self.tasks[at];
        task.clock = clock;
        task.ticks.push((clock, entry.time));
        task.passed += 1;
        if task.life == TaskPhase::AtBarrier {
            task.life = TaskPhase::Works;
        }
    }

    /// A task that joins starts at the smallest clock: no later than any working task.
    fn check_joined(&mut self, entry: &Entry, clock: u64, generation: u64) {
        let working = self.tasks.iter().filter(|task| task.life == TaskPhase::Works);
        if let Some(slowest) = working.map(|task| task.clock).min()
            && slowest < clock
        {
            self.fault(entry, format!("joined at clock {clock}, while a task was at clock {slowest}"));
        }
        self.facts.joins += 1;
        self.facts.joins_behind_barriers += u64::from(generation > 0);
        let task = &mut self.tasks[entry.task as usize];
        // Barriers that ended before the join count as passed: the task sees what was pushed before them.
        (task.barriers, task.passed) = (vec![0; generation as usize], generation as usize);
        (task.life, task.clock) = (TaskPhase::Works, clock);
        task.ticks.push((clock, entry.time));
    }

    /// At the end every counter is the sum of all pushes. For a task that did not leave by itself it is the sum of the
    /// first ones.
    fn check_sums(&mut self) {
        let mut sums: BTreeMap<Counter, i64> = BTreeMap::new();
        for (matrix, cell) in &self.history.exported {
            *sums.entry((*matrix, cell.partition, cell.writer)).or_default() += cell.value;
        }
        for (counter, made) in &self.made {
            let sum = sums.get(counter).copied().unwrap_or(0);
            let all = made.last().map_or(0, |last| last.sum);
            let exact = self.tasks[counter.2 as usize].has_left && !self.has_crashed;
            if if exact { sum != all } else { prefix(made, sum).is_none() } {
                self.faults.push(format!("at the end {counter:?} is {sum}, {all} was pushed: {made:?}"));
            }
        }
        for (counter, sum) in sums {
            if sum != 0 && !self.made.contains_key(&counter) {
                self.faults.push(format!("at the end {counter:?} is {sum}, nothing was pushed"));
            }
        }
    }
}

/// Returns how many of the first pushes make this sum.
fn prefix(made: &[RecordedPush], value: i64) -> Option<usize> {
    if value == 0 {
        return Some(0);
    }
    made.binary_search_by_key(&value, |push| push.sum).ok().map(|at| at + 1)
}
