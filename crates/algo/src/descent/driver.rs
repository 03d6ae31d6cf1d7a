//! What task 0 does between two passes over the data: one visit that reads all products, one that changes the vectors.

use std::collections::VecDeque;

use matrix::function::call::ask;
use matrix::function::descent::{CurvatureScale, Direction, OrthantStep, PenaltyGradient};
use matrix::function::map::Set;
use matrix::function::orthant::OrthantProducts;
use matrix::function::quasi_newton::{History, Penalty};
use matrix::function::zip::{Copy, Zip};
use matrix::{Agent, FunctionCall};

use super::Settings;
use super::line_search::{Armijo, Next, Wolfe};
use super::two_loop::{Factors, Memory, Moving, Products};
use super::vectors::{DIRECTION, GRADIENT, POINT, SCALE, Vectors};
use crate::error::Error;

/// Iterations whose mean decrease says whether it is enough: a single short step says little (Andrew and Gao's own program
/// looks at as many).
const WINDOW: usize = 5;
/// An objective that fell by no more than this share of it has reached rounding.
const ROUNDING: f64 = 1e-14;

/// What all tasks do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// An iteration has ended: the point stands in [`Self::row`].
    pub iteration: bool,
    /// Nothing is evaluated any more.
    pub last: bool,
    /// The best point so far.
    pub row: u32,
    /// Why it ends before the minimum is reached, if it does.
    pub failure: Option<Failure>,
}

/// Why a minimization ends before the minimum is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The objective still fell at the last iteration that was allowed.
    IterationLimit,
    /// No point along the direction is better, by more than rounding.
    Rounding,
    /// The line search ended without a better point.
    Search(&'static str),
}

#[derive(Debug)]
enum Search {
    Wolfe(Wolfe),
    Armijo(Armijo),
}

impl Search {
    fn length(&self) -> f64 {
        match self {
            Self::Wolfe(search) => search.length(),
            Self::Armijo(search) => search.length(),
        }
    }
}

/// A step under way.
#[derive(Debug)]
struct Step {
    search: Search,
    /// Where the point and gradient before the step are kept.
    slot: u32,
}

/// What the vectors say at a point.
#[derive(Debug)]
struct Seen {
    penalty: f64,
    /// Along the step, before and after it; the latter is not known under l1.
    old_slope: f64,
    new_slope: f64,
    answer: Vec<f64>,
}

/// The recursion of one minimization.
#[derive(Debug)]
pub struct Driver {
    settings: Settings,
    vectors: Vectors,
    penalty: Penalty,
    memory: Memory,
    /// The objective at the best point; none before the first evaluation.
    value: Option<f64>,
    /// How much the last iteration has lowered it.
    fallen: f64,
    /// Of the last iterations.
    falls: VecDeque<f64>,
    step: Option<Step>,
    iterations: u64,
}

impl Driver {
    /// Columns from `free_from` on have no penalty.
    pub fn new(settings: Settings, vectors: Vectors, free_from: u64) -> Self {
        let penalty = (settings.l1, settings.l2, free_from);
        Self {
            settings,
            vectors,
            penalty,
            memory: Memory::default(),
            value: None,
            fallen: 0.0,
            falls: VecDeque::with_capacity(WINDOW),
            step: None,
            iterations: 0,
        }
    }

    /// Makes scales and first point: [`SCALE`] holds the curvature of the loss in each column, [`POINT`] the parameters.
    pub fn start(&self, agent: &mut dyn Agent) -> Result<(), Error> {
        let scale = if self.settings.diagonal {
            FunctionCall::push(&CurvatureScale, &[SCALE, POINT], &[SCALE, POINT], &self.penalty)
        } else {
            FunctionCall::push(&Set, &[], &[SCALE], &1.0)
        };
        Ok(agent.push_function(self.vectors.id, &[scale, self.penalty_gradient()])?)
    }

    /// The objective at the best point.
    pub fn value(&self) -> f64 {
        self.value.unwrap_or(f64::INFINITY)
    }

    /// The order when the tasks stop before their time.
    pub fn stop(&self) -> Order {
        let row = self.step.as_ref().map_or(POINT, |step| self.vectors.step_row(step.slot));
        Order { iteration: true, last: true, row, failure: None }
    }

    /// The losses at [`POINT`] are known, and their gradient is in [`GRADIENT`].
    pub fn observe(&mut self, agent: &mut dyn Agent, loss: f64) -> Result<Order, Error> {
        let seen = self.look(agent)?;
        let value = loss + seen.penalty;
        let Some(Step { mut search, slot }) = self.step.take() else {
            self.value = Some(value);
            self.remember(&seen, None);
            return self.begin(agent, Vec::new(), false);
        };
        let next = match &mut search {
            Search::Wolfe(wolfe) => {
                let t = wolfe.length();
                wolfe.observe(value, seen.new_slope / t)
            }
            Search::Armijo(armijo) => armijo.observe(value, seen.old_slope),
        };
        match next {
            Next::Accept if value < self.value() => self.accept(agent, value, &seen, slot),
            Next::Accept => self.give_up(agent, slot, Failure::Rounding),
            Next::Try(_) => {
                let calls = self.move_along(slot, search.length());
                agent.push_function(self.vectors.id, &calls)?;
                let row = self.vectors.step_row(slot);
                self.step = Some(Step { search, slot });
                Ok(Order { iteration: false, last: false, row, failure: None })
            }
            Next::Fail(why) => self.give_up(agent, slot, Failure::Search(why)),
        }
    }

    fn accept(&mut self, agent: &mut dyn Agent, value: f64, seen: &Seen, slot: u32) -> Result<Order, Error> {
        let keeps = self.settings.history > 0;
        let kept = self.remember(seen, keeps.then_some(slot));
        self.fallen = self.value() - value;
        self.value = Some(value);
        self.iterations += 1;
        let is_flat = self.is_flat(value);
        if is_flat || self.iterations >= self.settings.max_iterations {
            let failure = (!is_flat).then_some(Failure::IterationLimit);
            return Ok(Order { iteration: true, last: true, row: POINT, failure });
        }
        let mut calls = Vec::new();
        if kept {
            let (step, change) = (self.vectors.step_row(slot), self.vectors.change_row(slot));
            calls.push(FunctionCall::push(&Zip::Sub, &[POINT, step], &[step], &()));
            calls.push(FunctionCall::push(&Zip::Sub, &[GRADIENT, change], &[change], &()));
        }
        self.begin(agent, calls, true)
    }

    /// All products at the point, in one visit.
    fn look(&self, agent: &mut dyn Agent) -> Result<Seen, Error> {
        let (id, rows) = (self.vectors.id, self.history_rows());
        if self.settings.l1 > 0.0 {
            let answer = ask(agent, id, &OrthantProducts, &rows, &self.penalty)?;
            let products = Moving(&answer, self.memory.slots().len() + 1);
            let (penalty, old_slope) = (products.penalty(), products.old_slope());
            return Ok(Seen { penalty, old_slope, new_slope: f64::NAN, answer });
        }
        let answer = ask(agent, id, &History, &rows, &self.penalty)?;
        let products = Products(&answer);
        let (penalty, new_slope) = (products.penalty(), products.new_slope());
        Ok(Seen { penalty, old_slope: products.old_slope(), new_slope, answer })
    }

    fn remember(&mut self, seen: &Seen, slot: Option<u32>) -> bool {
        if self.settings.l1 > 0.0 {
            let count = self.memory.slots().len() + 1;
            self.memory.observe_moving(Moving(&seen.answer, count), slot)
        } else {
            self.memory.observe(Products(&seen.answer), slot)
        }
    }

    /// Whether the last iterations have lowered the objective so little that it is enough.
    fn is_flat(&mut self, value: f64) -> bool {
        if self.falls.len() == WINDOW {
            self.falls.pop_front();
        }
        self.falls.push_back(self.fallen);
        let mean = self.falls.iter().sum::<f64>() / self.falls.len() as f64;
        mean <= self.settings.tolerance * value.abs() || self.fallen <= ROUNDING * value.abs()
    }

    /// Sends the next direction and the first step along it, behind `calls`.
    fn begin(
        &mut self,
        agent: &mut dyn Agent,
        mut calls: Vec<FunctionCall>,
        iteration: bool,
    ) -> Result<Order, Error> {
        let factors = self.memory.direction();
        let done = Order { iteration: true, last: true, row: POINT, failure: None };
        let t = self.first_length();
        let search = if self.settings.l1 > 0.0 {
            (self.memory.square() > 0.0).then(|| Search::Armijo(Armijo::new(self.value(), t)))
        } else {
            Wolfe::new(self.value(), factors.slope, t).map(Search::Wolfe)
        };
        let Some(search) = search else {
            if self.memory.slots().is_empty() {
                // No slope at all: the minimum.
                return Ok(done);
            }
            self.memory.clear();
            return self.begin(agent, calls, iteration);
        };
        calls.push(self.direction(&factors));
        let slot = self.free_slot();
        let (step, change) = (self.vectors.step_row(slot), self.vectors.change_row(slot));
        calls.push(FunctionCall::push(&Copy, &[POINT], &[step], &()));
        calls.push(FunctionCall::push(&Copy, &[GRADIENT], &[change], &()));
        calls.extend(self.move_along(slot, search.length()));
        agent.push_function(self.vectors.id, &calls)?;
        self.step = Some(Step { search, slot });
        Ok(Order { iteration, last: false, row: step, failure: None })
    }

    /// The search has failed: once more along the steepest descent, or the end.
    fn give_up(&mut self, agent: &mut dyn Agent, slot: u32, why: Failure) -> Result<Order, Error> {
        let back = |from, into| FunctionCall::push(&Copy, &[from], &[into], &());
        let mut calls = vec![back(self.vectors.step_row(slot), POINT)];
        if self.memory.slots().is_empty() {
            agent.push_function(self.vectors.id, &calls)?;
            return Ok(Order { iteration: true, last: true, row: POINT, failure: Some(why) });
        }
        self.memory.clear();
        calls.push(back(self.vectors.change_row(slot), GRADIENT));
        self.begin(agent, calls, false)
    }

    /// Where the next search begins. Along the steepest descent the step before says how long steps are (Nocedal and Wright,
    /// eq. 3.60).
    fn first_length(&self) -> f64 {
        let square = self.memory.square();
        if !self.memory.slots().is_empty() {
            1.0
        } else if self.fallen > 0.0 {
            2.0 * self.fallen / square
        } else if self.settings.diagonal {
            1.0
        } else {
            1.0 / square.sqrt().max(1.0)
        }
    }

    /// A slot that holds no pair; the oldest makes room.
    fn free_slot(&mut self) -> u32 {
        if self.memory.slots().len() >= self.vectors.slots as usize {
            self.memory.drop_oldest();
        }
        let taken = self.memory.slots();
        (0..self.vectors.slots).find(|slot| !taken.contains(slot)).expect("one was just freed")
    }

    fn history_rows(&self) -> Vec<u32> {
        let (point, gradient) = match &self.step {
            Some(step) => (self.vectors.step_row(step.slot), self.vectors.change_row(step.slot)),
            None => (POINT, GRADIENT),
        };
        let mut rows = vec![POINT, GRADIENT, SCALE, point, gradient];
        rows.extend(self.pair_rows());
        rows
    }

    /// Steps, then changes, oldest first.
    fn pair_rows(&self) -> impl Iterator<Item = u32> + '_ {
        let slots = self.memory.slots();
        let steps = slots.iter().map(|slot| self.vectors.step_row(*slot));
        steps.chain(slots.iter().map(|slot| self.vectors.change_row(*slot)))
    }

    fn direction(&self, factors: &Factors) -> FunctionCall {
        let mut from = vec![POINT, GRADIENT, SCALE];
        from.extend(self.pair_rows());
        let others: Vec<f64> = factors.steps.iter().chain(&factors.changes).copied().collect();
        FunctionCall::push(&Direction, &from, &[DIRECTION], &(self.penalty, factors.gradient, others))
    }

    /// The point at length `t`, and the gradient of the penalty there, to which the tasks add theirs.
    fn move_along(&self, slot: u32, t: f64) -> [FunctionCall; 2] {
        let from = [self.vectors.step_row(slot), self.vectors.change_row(slot), SCALE, DIRECTION];
        let step = FunctionCall::push(&OrthantStep, &from, &[POINT], &(self.penalty, t));
        [step, self.penalty_gradient()]
    }

    fn penalty_gradient(&self) -> FunctionCall {
        FunctionCall::push(&PenaltyGradient, &[POINT, SCALE], &[GRADIENT], &self.penalty)
    }
}
