//! The program of a task. In each step it pulls counters, adds to its own ones, and ticks; between stretches of steps
//! it waits at a barrier. Each push adds another amount, so a sum shows which pushes are in it.

use std::collections::VecDeque;

use math::random::RandomStream;
use matrix::Axis;

use crate::functions::may_fail;
use crate::scenario::{Disturbance, Scenario, random};

/// The largest amount of a push, so that sums stay exact in f32.
const AMOUNT_LIMIT: u64 = 1 << 10;

/// A call of the task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TaskCall {
    Pull {
        matrix: usize,
        partitions: u64,
    },
    /// Prefetches for the clock that is this many ticks ahead.
    Prefetch {
        matrix: usize,
        partitions: u64,
        ticks: u64,
    },
    Push {
        matrix: usize,
        partitions: u64,
        amount: i64,
        by_function: bool,
    },
    /// Calls functions that fail at one lane: no lane may change anything.
    Fail {
        matrix: usize,
    },
    /// Pulls all counters by a function.
    Ask {
        matrix: usize,
    },
    Tick,
    Barrier {
        part: Option<Vec<f64>>,
    },
    Finish,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    PullsAndPushes,
    /// The task never pulls: only the bound on its pushes blocks it.
    OnlyPushes,
    /// The split of the task is empty: it pulls nothing, and ticks.
    Empty,
}

#[derive(Debug)]
pub(crate) struct Probe {
    task: u32,
    random: RandomStream,
    /// A separate stream, so that the calls that an attempt repeats do not depend on its times.
    random_of_thinks: RandomStream,
    style: Style,
    thinks: u64,
    acts: VecDeque<TaskCall>,
    /// Number of steps left in this stretch, and number of stretches left.
    steps: u64,
    stretches: u64,
    generation: u64,
}

impl Probe {
    pub(crate) fn new(scenario: &Scenario, task: u32) -> Self {
        let mut random = random(scenario.seed, 100 + u64::from(task));
        let style = match random.below(8) {
            0..2 => Style::OnlyPushes,
            2 => Style::Empty,
            _ => Style::PullsAndPushes,
        };
        let leaves_early = random.below(4) == 0;
        let stretches = scenario.stretch_count;
        let stretches = if leaves_early { 1 + random.below(stretches) } else { stretches };
        let slowest = task == 0 && scenario.disturbance != Disturbance::PausedForEver;
        let mut probe = Self {
            task,
            style,
            thinks: scenario.longest_think * if slowest { scenario.slowness } else { 1 },
            acts: VecDeque::new(),
            steps: 0,
            stretches,
            generation: 0,
            random_of_thinks: crate::scenario::random(scenario.seed, 200 + u64::from(task)),
            random,
        };
        probe.begin_stretch(scenario);
        probe
    }

    fn begin_stretch(&mut self, scenario: &Scenario) {
        self.stretches -= 1;
        let limit = scenario.steps_of_stretch;
        self.steps = if self.random.below(3) == 0 { self.random.below(limit + 1) } else { limit };
    }

    /// The task joins after this many barriers.
    pub(crate) fn start_behind(&mut self, generation: u64) {
        self.generation = generation;
        self.stretches = self.stretches.saturating_sub(generation);
    }

    /// Continues after this many ticks. Returns the number of pushes before them.
    pub(crate) fn skip(&mut self, scenario: &Scenario, clock: u64) -> usize {
        let (mut ticks, mut pushes) = (0, 0);
        while ticks < clock {
            match self.next(scenario) {
                Some(TaskCall::Tick) => ticks += 1,
                Some(TaskCall::Push { .. }) => pushes += 1,
                Some(_) => {}
                None => break,
            }
        }
        pushes
    }

    /// Time until the next call, in microseconds.
    pub(crate) fn think(&mut self) -> u64 {
        let random = &mut self.random_of_thinks;
        if random.below(3) == 0 { random.below(self.thinks + 1) } else { 0 }
    }

    /// Takes the next call; `None` after the last.
    pub(crate) fn next(&mut self, scenario: &Scenario) -> Option<TaskCall> {
        if self.acts.is_empty() {
            self.plan(scenario);
        }
        self.acts.pop_front()
    }

    /// Returns the next call without taking it.
    pub(crate) fn peek(&mut self, scenario: &Scenario) -> Option<&TaskCall> {
        if self.acts.is_empty() {
            self.plan(scenario);
        }
        self.acts.front()
    }

    fn plan(&mut self, scenario: &Scenario) {
        if self.steps > 0 {
            self.steps -= 1;
            self.plan_step(scenario);
        } else if self.stretches > 0 {
            let sums = scenario.sums_at(self.generation);
            let part = sums.then(|| vec![f64::from(self.task + 1) / 3.0, self.generation as f64]);
            self.acts.push_back(TaskCall::Barrier { part });
            self.generation += 1;
            self.begin_stretch(scenario);
        } else if self.generation < u64::MAX {
            self.generation = u64::MAX;
            self.acts.push_back(TaskCall::Finish);
        }
    }

    fn plan_step(&mut self, scenario: &Scenario) {
        let mut matrices: Vec<usize> = (0..scenario.counters.len()).collect();
        self.random.shuffle(&mut matrices);
        for matrix in matrices {
            let of = &scenario.counters[matrix];
            let all = (1u64 << of.spec.partitioner.partition_count()) - 1;
            let has_functions = of.spec.axis == Axis::Column;
            if self.style == Style::Empty {
                self.acts.push_back(TaskCall::Pull { matrix, partitions: 0 });
                continue;
            }
            if self.style == Style::PullsAndPushes && self.random.below(5) > 0 {
                let partitions = self.some(all);
                self.acts.push_back(TaskCall::Pull { matrix, partitions });
            }
            let mut pushes = u64::from(self.random.below(10) < of.pushes_of_ten);
            if pushes == 1 && self.random.below(4) == 0 {
                pushes = 2;
            }
            if self.style == Style::PullsAndPushes && self.random.below(4) == 0 {
                self.acts.push_back(TaskCall::Prefetch { matrix, partitions: all, ticks: 1 });
            }
            for _ in 0..pushes {
                let (partitions, amount) = (self.some(all), 1 + self.random.below(AMOUNT_LIMIT) as i64);
                let by_function = has_functions && self.random.below(2) == 0;
                self.acts.push_back(TaskCall::Push { matrix, partitions, amount, by_function });
                if by_function && amount % 3 == 0 && may_fail(&of.spec) {
                    self.acts.push_back(TaskCall::Fail { matrix });
                }
            }
            if self.style == Style::PullsAndPushes && has_functions && self.random.below(2) == 0 {
                self.acts.push_back(TaskCall::Ask { matrix });
            }
            let again = self.random.below(6);
            if again == 0 {
                self.acts.push_back(TaskCall::Prefetch { matrix, partitions: all, ticks: 0 });
            }
            if again <= 1 {
                self.acts.push_back(TaskCall::Pull { matrix, partitions: all });
            }
        }
        self.acts.push_back(TaskCall::Tick);
        if self.style == Style::PullsAndPushes && self.random.below(5) == 0 {
            let matrix = self.random.below(scenario.counters.len() as u64) as usize;
            let all = (1u64 << scenario.counters[matrix].spec.partitioner.partition_count()) - 1;
            self.acts.push_back(TaskCall::Prefetch { matrix, partitions: all, ticks: 0 });
        }
    }

    /// Returns mostly all partitions, sometimes some of them.
    fn some(&mut self, all: u64) -> u64 {
        if self.random.below(4) > 0 { all } else { self.random.next_u64() & all }
    }
}
