//! The work of task 0 between two passes over the data: one call that pulls all products, and one that changes the
//! vectors.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use crate::descent::function::orthant::OrthantProducts;
use crate::descent::function::quasi_newton::{Penalty, QuasiNewtonProducts};
use crate::descent::function::step::{CurvatureScale, Direction, OrthantStep, PenaltyGradient};
use matrix::function::call::call_pull;
use matrix::function::map::Set;
use matrix::function::zip::{CopyRow, Zip};
use matrix::{Agent, FunctionCall};

use super::Settings;
use super::line_search::{ArmijoSearch, SearchDecision, WolfeSearch};
use super::two_loop::{DirectionFactors, OrthantAnswer, PairHistory, QuasiNewtonAnswer};
use super::vectors::{DIRECTION, GRADIENT, POINT, SCALE, VectorLayout};
use algo::error::Error;

/// The number of last iterations whose mean decrease decides about convergence: a single short step tells little (the
/// program of Andrew and Gao looks at as many).
const WINDOW: usize = 5;
/// A decrease of at most this share of the objective is a rounding error.
const ROUNDING: f64 = 1e-14;

/// What all tasks do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescentCommand {
    /// An iteration has ended; its point is in [`Self::row`].
    pub iteration: bool,
    /// There are no more evaluations.
    pub last: bool,
    /// The row of the best point so far.
    pub row: u32,
    /// Why the minimization ends before the minimum is reached, if it does.
    pub failure: Option<DescentFailure>,
}

/// Why a minimization ends before the minimum is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescentFailure {
    /// The objective was still decreasing at the last allowed iteration.
    IterationLimit,
    /// No point along the direction is better by more than rounding.
    Rounding,
    /// The line search ended without a better point.
    LineSearch(&'static str),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum LineSearch {
    Wolfe(WolfeSearch),
    Armijo(ArmijoSearch),
}

impl LineSearch {
    fn length(&self) -> f64 {
        match self {
            Self::Wolfe(search) => search.length(),
            Self::Armijo(search) => search.length(),
        }
    }
}

/// A step whose length is being searched.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct TrialStep {
    search: LineSearch,
    /// The slot that holds the point and the gradient before the step.
    slot: u32,
}

/// What the products of the vectors give at a point.
#[derive(Debug)]
struct PointProducts {
    penalty: f64,
    /// Slopes along the step, before and after it; the latter is not known under l1.
    old_slope: f64,
    new_slope: f64,
    answer: Vec<f64>,
}

/// The state of one minimization.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Minimizer {
    settings: Settings,
    layout: VectorLayout,
    penalty: Penalty,
    history: PairHistory,
    /// The objective at the best point; `None` before the first evaluation.
    value: Option<f64>,
    /// How much the last iteration decreased the objective.
    last_decrease: f64,
    /// Decreases of the last iterations.
    decreases: VecDeque<f64>,
    step: Option<TrialStep>,
    iterations: u64,
}

impl Minimizer {
    /// Columns from `free_from` on have no penalty.
    pub fn new(settings: Settings, vectors: VectorLayout, free_from: u64) -> Self {
        let penalty = (settings.l1, settings.l2, free_from);
        Self {
            settings,
            layout: vectors,
            penalty,
            history: PairHistory::default(),
            value: None,
            last_decrease: 0.0,
            decreases: VecDeque::with_capacity(WINDOW),
            step: None,
            iterations: 0,
        }
    }

    /// Computes the scales and the first point. Before the call, [`SCALE`] holds the curvature of the loss in each
    /// column, and [`POINT`] the parameters.
    pub fn start(&self, agent: &mut dyn Agent) -> Result<(), Error> {
        let scale = if self.settings.diagonal {
            FunctionCall::push(&CurvatureScale, &[SCALE, POINT], &[SCALE, POINT], &self.penalty)
        } else {
            FunctionCall::push(&Set, &[], &[SCALE], &1.0)
        };
        Ok(agent.push_function(self.layout.id, &[scale, self.penalty_gradient()])?)
    }

    /// The objective at the best point; infinite before the first evaluation.
    pub fn value(&self) -> f64 {
        self.value.unwrap_or(f64::INFINITY)
    }

    /// The command if the tasks are stopped early.
    pub fn stop(&self) -> DescentCommand {
        let row = self.step.as_ref().map_or(POINT, |step| self.layout.step_row(step.slot));
        DescentCommand { iteration: true, last: true, row, failure: None }
    }

    /// Receives the loss at [`POINT`]; its gradient is in [`GRADIENT`].
    pub fn observe(&mut self, agent: &mut dyn Agent, loss: f64) -> Result<DescentCommand, Error> {
        let seen = self.pull_products(agent)?;
        let value = loss + seen.penalty;
        let Some(TrialStep { mut search, slot }) = self.step.take() else {
            self.value = Some(value);
            self.store_pair(&seen, None);
            return self.start_search(agent, Vec::new(), false);
        };
        let next = match &mut search {
            LineSearch::Wolfe(wolfe) => {
                let t = wolfe.length();
                wolfe.observe(value, seen.new_slope / t)
            }
            LineSearch::Armijo(armijo) => armijo.observe(value, seen.old_slope),
        };
        match next {
            SearchDecision::Accept if value < self.value() => self.accept(agent, value, &seen, slot),
            SearchDecision::Accept => self.restart_or_stop(agent, slot, DescentFailure::Rounding),
            SearchDecision::Try(_) => {
                let calls = self.move_along(slot, search.length());
                agent.push_function(self.layout.id, &calls)?;
                let row = self.layout.step_row(slot);
                self.step = Some(TrialStep { search, slot });
                Ok(DescentCommand { iteration: false, last: false, row, failure: None })
            }
            SearchDecision::Fail(why) => self.restart_or_stop(agent, slot, DescentFailure::LineSearch(why)),
        }
    }

    fn accept(
        &mut self,
        agent: &mut dyn Agent,
        value: f64,
        seen: &PointProducts,
        slot: u32,
    ) -> Result<DescentCommand, Error> {
        let keeps = self.settings.history > 0;
        let is_stored = self.store_pair(seen, keeps.then_some(slot));
        self.last_decrease = self.value() - value;
        self.value = Some(value);
        self.iterations += 1;
        let is_flat = self.has_converged(value);
        if is_flat || self.iterations >= self.settings.max_iterations {
            let failure = (!is_flat).then_some(DescentFailure::IterationLimit);
            return Ok(DescentCommand { iteration: true, last: true, row: POINT, failure });
        }
        let mut calls = Vec::new();
        if is_stored {
            let (step, change) = (self.layout.step_row(slot), self.layout.change_row(slot));
            calls.push(FunctionCall::push(&Zip::Sub, &[POINT, step], &[step], &()));
            calls.push(FunctionCall::push(&Zip::Sub, &[GRADIENT, change], &[change], &()));
        }
        self.start_search(agent, calls, true)
    }

    /// Pulls all products at the point, in one call.
    fn pull_products(&self, agent: &mut dyn Agent) -> Result<PointProducts, Error> {
        let (id, rows) = (self.layout.id, self.history_rows());
        if self.settings.l1 > 0.0 {
            let answer = call_pull(agent, id, &OrthantProducts, &rows, &self.penalty)?;
            let products = OrthantAnswer(&answer, self.history.slots().len() + 1);
            let (penalty, old_slope) = (products.penalty(), products.old_slope());
            return Ok(PointProducts { penalty, old_slope, new_slope: f64::NAN, answer });
        }
        let answer = call_pull(agent, id, &QuasiNewtonProducts, &rows, &self.penalty)?;
        let products = QuasiNewtonAnswer(&answer);
        let (penalty, new_slope) = (products.penalty(), products.new_slope());
        Ok(PointProducts { penalty, old_slope: products.old_slope(), new_slope, answer })
    }

    fn store_pair(&mut self, seen: &PointProducts, slot: Option<u32>) -> bool {
        if self.settings.l1 > 0.0 {
            let count = self.history.slots().len() + 1;
            self.history.observe_orthant(OrthantAnswer(&seen.answer, count), slot)
        } else {
            self.history.observe(QuasiNewtonAnswer(&seen.answer), slot)
        }
    }

    /// Whether the last iterations decreased the objective by no more than the tolerance.
    fn has_converged(&mut self, value: f64) -> bool {
        if self.decreases.len() == WINDOW {
            self.decreases.pop_front();
        }
        self.decreases.push_back(self.last_decrease);
        let mean = self.decreases.iter().sum::<f64>() / self.decreases.len() as f64;
        mean <= self.settings.tolerance * value.abs() || self.last_decrease <= ROUNDING * value.abs()
    }

    /// Sends `calls`, the next direction and the first step along it.
    fn start_search(
        &mut self,
        agent: &mut dyn Agent,
        mut calls: Vec<FunctionCall>,
        iteration: bool,
    ) -> Result<DescentCommand, Error> {
        let factors = self.history.direction();
        let done = DescentCommand { iteration: true, last: true, row: POINT, failure: None };
        let t = self.first_length();
        let search = if self.settings.l1 > 0.0 {
            (self.history.square() > 0.0).then(|| LineSearch::Armijo(ArmijoSearch::new(self.value(), t)))
        } else {
            WolfeSearch::new(self.value(), factors.slope, t).map(LineSearch::Wolfe)
        };
        let Some(search) = search else {
            if self.history.slots().is_empty() {
                // The slope is 0: this is the minimum.
                return Ok(done);
            }
            self.history.clear();
            return self.start_search(agent, calls, iteration);
        };
        calls.push(self.direction(&factors));
        let slot = self.free_slot();
        let (step, change) = (self.layout.step_row(slot), self.layout.change_row(slot));
        calls.push(FunctionCall::push(&CopyRow, &[POINT], &[step], &()));
        calls.push(FunctionCall::push(&CopyRow, &[GRADIENT], &[change], &()));
        calls.extend(self.move_along(slot, search.length()));
        agent.push_function(self.layout.id, &calls)?;
        self.step = Some(TrialStep { search, slot });
        Ok(DescentCommand { iteration, last: false, row: step, failure: None })
    }

    /// The search has failed: restarts along the steepest descent, or stops if this was the steepest descent.
    fn restart_or_stop(
        &mut self,
        agent: &mut dyn Agent,
        slot: u32,
        why: DescentFailure,
    ) -> Result<DescentCommand, Error> {
        let back = |from, into| FunctionCall::push(&CopyRow, &[from], &[into], &());
        let mut calls = vec![back(self.layout.step_row(slot), POINT)];
        if self.history.slots().is_empty() {
            agent.push_function(self.layout.id, &calls)?;
            return Ok(DescentCommand { iteration: true, last: true, row: POINT, failure: Some(why) });
        }
        self.history.clear();
        calls.push(back(self.layout.change_row(slot), GRADIENT));
        self.start_search(agent, calls, false)
    }

    /// The first length of the next search. Along the steepest descent it follows from the decrease of the step before
    /// (Nocedal and Wright, eq. 3.60).
    fn first_length(&self) -> f64 {
        let square = self.history.square();
        if !self.history.slots().is_empty() {
            1.0
        } else if self.last_decrease > 0.0 {
            2.0 * self.last_decrease / square
        } else if self.settings.diagonal {
            1.0
        } else {
            1.0 / square.sqrt().max(1.0)
        }
    }

    /// A slot that holds no pair. If there is none, the oldest pair is dropped.
    fn free_slot(&mut self) -> u32 {
        if self.history.slots().len() >= self.layout.slots as usize {
            self.history.drop_oldest();
        }
        let taken = self.history.slots();
        (0..self.layout.slots).find(|slot| !taken.contains(slot)).expect("one was just freed")
    }

    fn history_rows(&self) -> Vec<u32> {
        let (point, gradient) = match &self.step {
            Some(step) => (self.layout.step_row(step.slot), self.layout.change_row(step.slot)),
            None => (POINT, GRADIENT),
        };
        let mut rows = vec![POINT, GRADIENT, SCALE, point, gradient];
        rows.extend(self.pair_rows());
        rows
    }

    /// Rows of the steps, then rows of the changes, oldest first.
    fn pair_rows(&self) -> impl Iterator<Item = u32> + '_ {
        let slots = self.history.slots();
        let steps = slots.iter().map(|slot| self.layout.step_row(*slot));
        steps.chain(slots.iter().map(|slot| self.layout.change_row(*slot)))
    }

    fn direction(&self, factors: &DirectionFactors) -> FunctionCall {
        let mut from = vec![POINT, GRADIENT, SCALE];
        from.extend(self.pair_rows());
        let others: Vec<f64> = factors.steps.iter().chain(&factors.changes).copied().collect();
        FunctionCall::push(&Direction, &from, &[DIRECTION], &(self.penalty, factors.gradient, others))
    }

    /// Calls that compute the point at length `t` and the gradient of the penalty there, to which the tasks add theirs.
    fn move_along(&self, slot: u32, t: f64) -> [FunctionCall; 2] {
        let from = [self.layout.step_row(slot), self.layout.change_row(slot), SCALE, DIRECTION];
        let step = FunctionCall::push(&OrthantStep, &from, &[POINT], &(self.penalty, t));
        [step, self.penalty_gradient()]
    }

    fn penalty_gradient(&self) -> FunctionCall {
        FunctionCall::push(&PenaltyGradient, &[POINT, SCALE], &[GRADIENT], &self.penalty)
    }
}
