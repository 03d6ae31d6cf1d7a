//! Continues training from a model. Its weights are always used; its optimizer state is used if it fits the push rule
//! of the job.

use std::borrow::Cow;

use matrix::{ExportedRows, MatrixSpec, PushRule, Schedule};
use model::{Manifest, Model, TrainingPosition};

use crate::job::TrainJob;

/// Returns the position at which a job continues from `previous`. Schedules always continue; the order of epochs
/// continues only if the job reads the same data with the same number of tasks and the same seed, and otherwise
/// restarts.
pub(super) fn start(job: &TrainJob, task_count: u32, previous: &Manifest) -> TrainingPosition {
    let trained = &previous.trained;
    let Some(position) = trained.position else { return TrainingPosition::default() };
    let same = (job.seed, task_count) == (trained.seed, trained.tasks)
        && canonical_inputs(&job.input.data) == canonical_inputs(&trained.data);
    TrainingPosition { epochs: if same { position.epochs } else { 0 }, clock: position.clock }
}

/// Sets the start clock of the push rules.
pub(super) fn with_start_clock(mut specs: Vec<MatrixSpec>, start: TrainingPosition) -> Vec<MatrixSpec> {
    for spec in &mut specs {
        spec.rule = spec.rule.after(start.clock);
    }
    specs
}

/// Returns absolute paths of the inputs where they exist.
fn canonical_inputs(data: &[String]) -> Vec<std::path::PathBuf> {
    data.iter().map(|input| std::fs::canonicalize(input).unwrap_or_else(|_| input.into())).collect()
}

/// Returns the rows of `previous` to import, each with the position of its matrix among `specs`.
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

/// Returns the notices when the job does not continue exactly where `previous` ended: about its optimizer state, if
/// that is not used, and about the schedule.
pub(super) fn notices(previous: &Model, specs: &[MatrixSpec]) -> Vec<String> {
    let Some(entry) = previous.manifest.matrices.first() else { return Vec::new() };
    let Some(spec) = specs.iter().find(|spec| spec.name == entry.name) else { return Vec::new() };
    let model = previous.path.display();
    let mut notices = Vec::new();
    let kept = !entry.slots.is_empty();
    let complete = spec.rule.slots().is_empty() || (kept && state_fits(entry.spec.rule, spec.rule));
    if !complete {
        let state = if kept { "belongs to another optimizer or other settings" } else { "was not saved" };
        notices.push(format!(
            "the optimizer state of {model} {state}: training continues from its weights alone"
        ));
    }
    if spec.rule.schedule() != Schedule::Constant && previous.manifest.trained.position.is_none() {
        notices.push(format!("{model} does not record its number of steps: the schedule restarts"));
    }
    notices
}

/// Whether the state of one rule fits another rule. The state of FTRL-Proximal determines the weights by its settings:
/// with other settings the same state would mean other weights.
fn state_fits(old: PushRule, new: PushRule) -> bool {
    old == new
        || (std::mem::discriminant(&old) == std::mem::discriminant(&new)
            && !matches!(new, PushRule::FtrlProximal { .. }))
}
