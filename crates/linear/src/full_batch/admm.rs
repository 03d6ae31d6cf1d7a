//! Consensus ADMM: each task minimizes over its own records, with a penalty that draws it to the consensus of all
//! tasks.
//!
//! **What.** `min sum over tasks i of f_i(x_i) + l1 |d z|_1 + 0.5 l2 |d z|^2` where `x_i = z` in the columns that task
//! i has. The solution equals that of L-BFGS and OWL-QN. An iteration, with scaled duals `u_i` (eq. 7.6 to 7.8, general
//! form):
//!
//! 1. `x_i = argmin f_i(x) + rho / 2 |x - z + u_i|^2`, approximately: a few steps of [`Proximal`] from z;
//! 2. `z = argmin of the penalties + sum over tasks of rho / 2 |x_i + u_i - z|^2`, computed at the partitions, over the
//!    tasks that have the column;
//! 3. `u_i += x_i - z`.
//!
//! **Source.** Boyd, Parikh, Chu, Peleato, Eckstein, "Distributed optimization and statistical learning via the
//! alternating direction method of multipliers", 2011: section 7.2, with over-relaxation of the x of steps 2 and 3
//! (3.4.3), a rho that is adapted to the residuals (3.4.1), and residuals as the stopping criterion (3.3.1).
//!
//! **Where we differ.** Columns are scaled as in [`crate::descent`]; d is 1 over the root of the curvature at the
//! start, so that a rho of 1 means the same on any data. The loss of all records is computed at z, where the metrics
//! are reported. The steps of a task start from z, so that this reading is also the first of them.
//!
//! **Cost** of an iteration: one reading of the records, and one or slightly more for each local step; each column is
//! pulled once and pushed once; two barriers and one function call. A task holds about `2 history + 12` doubles for
//! each column of its share.

use crate::descent::function::consensus::ConsensusStep;
use crate::descent::function::quasi_newton::Penalty;
use matrix::FunctionCall;
use matrix::function::map::Set;
use serde::{Deserialize, Serialize};

use super::super::job::Linear;
use super::super::model::Model;
use super::super::scan::scan;
use super::local_problem::{Detail, LocalProblem, PassResult};
use super::residuals::Residuals;
use super::survey::{survey, write_weights};
use crate::descent::proximal::{Evaluation, Proximal};
use crate::descent::vectors::{DIRECTION, POINT, SCALE, VectorLayout};
use crate::descent::{Consensus, Settings};
use algo::coordinator::StepDecision;
use algo::error::Error;
use algo::job::TrainTask;
use algo::task_loop::{self, EpochEnd, Learner, TaskState};

/// The row of the sums of `x + u`.
const SUM_ROW: u32 = DIRECTION;
/// `a` of `a x + (1 - a) z`: "over-relaxation with a in [1.5, 1.8] can improve convergence" (3.4.3).
const RELAXATION: f64 = 1.6;

/// The row of the number of tasks that have the column.
fn count_row(vectors: VectorLayout) -> u32 {
    vectors.step_row(0)
}

/// One task.
struct Admm<'a> {
    model: &'a Model,
    settings: &'a Settings,
    share: LocalProblem<'a>,
    progress: AdmmProgress,
}

/// What a task remembers from iteration to iteration.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct AdmmProgress {
    class_weights: Vec<f64>,
    own: AdmmTask,
    /// Readings of all tasks at a common z.
    rounds: u64,
    /// The residuals of all tasks at the last of them.
    residuals: Residuals,
}

/// Begins one task.
pub(in super::super) fn begin<'a>(
    job: &Linear,
    settings: &'a Settings,
    consensus: &Consensus,
    task: &mut TrainTask<'a>,
    saved: Option<&TaskState>,
) -> Result<Box<dyn Learner + 'a>, Error> {
    let model: &Model = task.model.of()?;
    let penalty = (settings.l1, settings.l2, super::penalized_columns(model));
    let progress = match saved {
        Some(saved) => saved.decode()?,
        None => AdmmProgress {
            class_weights: scan(job, model, task)?,
            own: AdmmTask::new(consensus, super::vector_layout(model, settings), penalty),
            rounds: 0,
            residuals: Residuals::default(),
        },
    };
    let share = survey(settings, task, &progress.class_weights, saved)?;
    Ok(Box::new(Admm { model, settings, share, progress }))
}

impl Learner for Admm<'_> {
    fn train_epoch(&mut self, task: &mut TrainTask<'_>, epoch: u64) -> Result<Option<EpochEnd>, Error> {
        let Self { model, settings, share, progress } = self;
        let AdmmProgress { own, rounds, residuals, .. } = progress;
        loop {
            let round = *rounds;
            if round > 0 {
                own.adapt_rho(residuals);
                let ended = own.solve(task, share)?;
                own.push_and_average(task, share, ended)?;
            }
            let (passed, at_task) = own.evaluate_at_consensus(task, share)?;
            *residuals = at_task;
            let sums = passed.sum_over_tasks(task.agent, &mut residuals.0)?;
            if round == 0 {
                sums.check_start(model.loss)?;
            }
            *rounds += 1;
            let is_stopped = sums.flow == StepDecision::Stop;
            let has_converged = round > 0 && residuals.are_below(settings.tolerance);
            let is_last = has_converged || round >= settings.max_iterations || is_stopped;
            if round == 0 && !is_last {
                // The records were read at the start; no step has been made.
                continue;
            }
            let is_cut = is_last && !has_converged && !is_stopped && settings.tolerance > 0.0;
            return Ok(Some(EpochEnd {
                training: passed.parts,
                record_count: std::mem::take(&mut own.records_read),
                epoch_count: if is_last { epoch + 1 } else { settings.max_iterations },
                is_stopped,
                is_last,
                notice: is_cut.then(|| residuals.notice(settings.tolerance, own.rho)),
            }));
        }
    }

    fn write_model(&mut self, task: &mut TrainTask<'_>) -> Result<(), Error> {
        write_weights(self.model, task, &mut self.share, POINT)
    }

    fn save_state(&self) -> Result<Vec<u8>, Error> {
        task_loop::encode(&self.progress)
    }
}

/// The variables of a task. Vectors are local, as in [`LocalProblem`], in scaled columns.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct AdmmTask {
    settings: Consensus,
    layout: VectorLayout,
    penalty: Penalty,
    rho: f64,
    solver: Proximal,
    /// f of this task at z, then at x.
    evaluation: Evaluation,
    z: Vec<f64>,
    u: Vec<f64>,
    /// `a x + (1 - a) z`, once it has been pushed for the next z; otherwise empty.
    relaxed: Vec<f64>,
    /// A task without records has no vectors and does not contribute to z.
    has_records: bool,
    /// Whether the counts of its columns include this task.
    is_counted: bool,
    pass_count: u64,
    /// Records read since the last report.
    records_read: u64,
}

impl AdmmTask {
    fn new(settings: &Consensus, vectors: VectorLayout, penalty: Penalty) -> Self {
        Self {
            settings: settings.clone(),
            layout: vectors,
            penalty,
            rho: settings.rho,
            solver: Proximal::new(settings.history),
            evaluation: Evaluation { x: Vec::new(), value: 0.0, gradient: Vec::new() },
            z: Vec::new(),
            u: Vec::new(),
            relaxed: Vec::new(),
            has_records: false,
            is_counted: false,
            pass_count: 0,
            records_read: 0,
        }
    }

    /// Updates u, then reads the share at z.
    fn evaluate_at_consensus(
        &mut self,
        task: &mut TrainTask<'_>,
        share: &mut LocalProblem<'_>,
    ) -> Result<(PassResult, Residuals), Error> {
        let z = share.pull_point(task.agent, POINT)?;
        let residuals = self.update_duals(&z);
        share.set_weights(&z);
        let passed = self.read(task, share, Detail::All)?;
        if self.pass_count == 1 {
            self.has_records = passed.parts.record_count() > 0;
            self.u.resize(z.len(), 0.0);
        }
        let before = std::mem::replace(
            &mut self.evaluation,
            Evaluation { x: z.clone(), value: passed.loss_sum, gradient: share.gradient.clone() },
        );
        if self.pass_count > 1 && passed.flow == StepDecision::Continue {
            self.solver.store_pair(&before, &self.evaluation);
        }
        self.z = z;
        Ok((passed, residuals))
    }

    /// Step 3: `u += x - z`, with the relaxed x. Returns the residuals between x and z.
    fn update_duals(&mut self, z: &[f64]) -> Residuals {
        if !self.has_records || self.relaxed.is_empty() {
            return Residuals::default();
        }
        for (u, (x, z)) in self.u.iter_mut().zip(self.relaxed.iter().zip(z)) {
            *u += x - z;
        }
        self.relaxed.clear();
        Residuals::new(&self.evaluation.x, z, &self.z, &self.u, self.rho)
    }

    /// Adapts rho, the step size of the duals, to the residuals of all tasks.
    fn adapt_rho(&mut self, residuals: &Residuals) {
        if self.settings.adaptive {
            let factor = residuals.factor();
            self.rho *= factor;
            // The unscaled duals are rho u; they do not change.
            self.u.iter_mut().for_each(|u| *u /= factor);
        }
    }

    /// Reads the share once, at its current weights.
    fn read(
        &mut self,
        task: &mut TrainTask<'_>,
        share: &mut LocalProblem<'_>,
        detail: Detail,
    ) -> Result<PassResult, Error> {
        let passed = share.read(task, self.pass_count, detail)?;
        self.pass_count += 1;
        self.records_read += passed.parts.record_count();
        Ok(passed)
    }

    /// Step 1: from z towards the minimum of this task's local problem. Returns false if the task was told to stop.
    fn solve(&mut self, task: &mut TrainTask<'_>, share: &mut LocalProblem<'_>) -> Result<bool, Error> {
        if !self.has_records {
            return Ok(true);
        }
        let center: Vec<f64> = self.z.iter().zip(&self.u).map(|(z, u)| z - u).collect();
        let mut solver = std::mem::replace(&mut self.solver, Proximal::new(0));
        let mut at = self.evaluation.clone();
        let ended = solver.minimize(&mut at, (self.rho, &center), self.settings.local_iterations, |x| {
            share.set_weights(x);
            let passed = self.read(task, share, Detail::Loss)?;
            let loss_and_gradient = (passed.loss_sum, share.gradient.clone());
            Ok::<_, Error>((passed.flow == StepDecision::Continue).then_some(loss_and_gradient))
        })?;
        (self.solver, self.evaluation) = (solver, at);
        Ok(ended)
    }

    /// Step 2: pushes `x + u` and has task 0 compute z from the sums, unless a task was told to stop.
    fn push_and_average(
        &mut self,
        task: &mut TrainTask<'_>,
        share: &LocalProblem<'_>,
        ended: bool,
    ) -> Result<(), Error> {
        let mut stopped = [f64::from(u8::from(!ended))];
        task.agent.all_reduce(&mut stopped)?;
        if stopped[0] > 0.0 {
            return Ok(());
        }
        if self.has_records {
            let relax = |(x, z): (&f64, &f64)| RELAXATION * x + (1.0 - RELAXATION) * z;
            self.relaxed = self.evaluation.x.iter().zip(&self.z).map(relax).collect();
            if !std::mem::replace(&mut self.is_counted, true) {
                share.push(task.agent, count_row(self.layout), &vec![1.0; self.z.len()])?;
            }
            let sums: Vec<f64> = self.relaxed.iter().zip(&self.u).map(|(x, u)| x + u).collect();
            share.push(task.agent, SUM_ROW, &sums)?;
        }
        task.agent.barrier()?;
        if task.agent.task() == 0 {
            let from = [SUM_ROW, count_row(self.layout), SCALE];
            let calls = [
                FunctionCall::push(&ConsensusStep, &from, &[POINT], &(self.penalty, self.rho)),
                FunctionCall::push(&Set, &[], &[SUM_ROW], &0.0),
            ];
            task.agent.push_function(self.layout.id, &calls)?;
        }
        Ok(task.agent.barrier()?)
    }
}

#[cfg(test)]
mod tests {
    use matrix::MatrixId;

    use super::*;

    #[test]
    fn duals_follow_a_round_and_one_that_was_broken_off_leaves_no_residuals() {
        let consensus = Consensus { rho: 2.0, adaptive: false, local_iterations: 1, history: 1 };
        let mut own = AdmmTask::new(&consensus, VectorLayout::new(MatrixId(0), 2, 1), (0.0, 0.0, 2));
        own.has_records = true;
        own.evaluation.x = vec![1.0, 5.0];
        own.z = vec![-1.0, 2.0];
        own.u = vec![0.5, -0.5];
        let z = [1.0, 2.0];
        assert_eq!(own.update_duals(&z), Residuals::default(), "z was not made of its x");
        assert_eq!(own.u, [0.5, -0.5]);
        own.relaxed = vec![2.0, 4.0];
        assert_eq!(own.update_duals(&z), Residuals([9.0, 16.0, 26.0, 5.0, 18.0, 2.0]));
        assert_eq!(own.u, [1.5, 1.5]);
        assert_eq!(own.update_duals(&z), Residuals::default(), "once for each round");
        assert_eq!(own.u, [1.5, 1.5]);
    }
}
