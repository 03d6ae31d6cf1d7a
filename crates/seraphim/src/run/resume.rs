//! Training on from a model: its weights always, its optimizer state where that means the same to the job's rule.

use std::borrow::Cow;

use matrix::{ExportedRows, MatrixSpec, PushRule, Schedule};

use crate::job::TrainJob;
use crate::model::{Manifest, Model, TrainingPosition};

/// Where a job begins that goes on from `previous`. Its schedules go on in any case; the order of its epochs goes on when
/// it reads the same data by the same tasks with the same seed, and is that of new data otherwise.
pub(super) fn start(job: &TrainJob, task_count: u32, previous: &Manifest) -> TrainingPosition {
    let trained = &previous.trained;
    let Some(position) = trained.position else { return TrainingPosition::default() };
    let same = (job.seed, task_count) == (trained.seed, trained.tasks)
        && canonical_inputs(&job.input.data) == canonical_inputs(&trained.data);
    TrainingPosition { epochs: if same { position.epochs } else { 0 }, clock: position.clock }
}

/// The rules of a job that begins there.
pub(super) fn with_start_clock(mut specs: Vec<MatrixSpec>, start: TrainingPosition) -> Vec<MatrixSpec> {
    for spec in &mut specs {
        spec.rule = spec.rule.after(start.clock);
    }
    specs
}

/// Inputs as they are found from any folder.
fn canonical_inputs(data: &[String]) -> Vec<std::path::PathBuf> {
    data.iter().map(|input| std::fs::canonicalize(input).unwrap_or_else(|_| input.into())).collect()
}

/// The rows of `previous` for the matrices of a job: the position of the matrix among `specs`, and what to import.
pub(super) fn rows<'a>(previous: &'a Model, specs: &[MatrixSpec]) -> Vec<(usize, Cow<'a, ExportedRows>)> {
    let entries = previous.manifest.matrices.iter().zip(&previous.matrices);
    entries
        .filter_map(|(entry, rows)| {
            let position = specs.iter().position(|spec| spec.name == entry.name)?;
            let fits = state_fits(entry.spec.rule, specs[position].rule);
            let weights_only = || ExportedRows { slots: Vec::new(), ..rows.clone() };
            Some((position, if fits { Cow::Borrowed(rows) } else { Cow::Owned(weights_only()) }))
        })
        .collect()
}

/// What the user should know when training does not go on as if it had never ended: of the optimizer state of
/// `previous`, when it is not used, and of the schedule.
pub(super) fn notices(previous: &Model, specs: &[MatrixSpec]) -> Vec<String> {
    let Some(entry) = previous.manifest.matrices.first() else { return Vec::new() };
    let Some(spec) = specs.iter().find(|spec| spec.name == entry.name) else { return Vec::new() };
    let model = previous.path.display();
    let mut notices = Vec::new();
    let kept = !entry.slots.is_empty();
    let complete = spec.rule.slots().is_empty() || (kept && state_fits(entry.spec.rule, spec.rule));
    if !complete {
        let state = if kept { "is of another rule or of other settings" } else { "was not kept" };
        notices
            .push(format!("the optimizer state of {model} {state}: training goes on from its weights alone"));
    }
    if spec.rule.schedule() != Schedule::Constant && previous.manifest.trained.position.is_none() {
        notices.push(format!("{model} does not say how many steps it has made: the schedule begins anew"));
    }
    notices
}

/// Whether the state that one rule left may be the state of another. That of FTRL-Proximal *is* the weights, by its
/// settings: with other settings the same state would mean other weights.
fn state_fits(old: PushRule, new: PushRule) -> bool {
    old == new
        || (std::mem::discriminant(&old) == std::mem::discriminant(&new)
            && !matches!(new, PushRule::FtrlProximal { .. }))
}
