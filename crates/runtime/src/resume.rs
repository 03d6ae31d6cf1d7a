//! Continues training from a model. Its weights are always used; its optimizer state is used if it fits the push rule
//! of the job.

use driver::Error;
use job::TrainJob;
use matrix::{MatrixSpec, PushRule, RowBlock, Schedule};
use model::{Manifest, ModelReader, TrainingPosition};

use crate::worker::MatrixAccess;

/// Returns the position at which a job continues from `previous`. Schedules always continue; the order of epochs
/// continues only if the job reads the same data with the same number of tasks and the same seed, and otherwise
/// restarts.
pub fn start(job: &TrainJob, task_count: u32, previous: &Manifest) -> TrainingPosition {
    let trained = &previous.trained;
    let Some(position) = trained.position else { return TrainingPosition::default() };
    let same = (job.seed, task_count) == (trained.seed, trained.tasks)
        && canonical_inputs(&job.input.data) == canonical_inputs(&trained.data);
    TrainingPosition { epochs: if same { position.epochs } else { 0 }, clock: position.clock }
}

/// Returns absolute paths of the inputs where they exist.
fn canonical_inputs(data: &[String]) -> Vec<std::path::PathBuf> {
    data.iter().map(|input| std::fs::canonicalize(input).unwrap_or_else(|_| input.into())).collect()
}

/// Sends the rows of `previous` to the matrices of the same names, block by block, with the slots that fit.
pub fn import(
    previous: &mut ModelReader,
    specs: &[MatrixSpec],
    matrices: &mut dyn MatrixAccess,
) -> Result<(), Error> {
    for entry in 0..previous.manifest.matrices.len() {
        let stored = &previous.manifest.matrices[entry];
        let Some(position) = specs.iter().position(|spec| spec.name == stored.name) else { continue };
        let fits = state_fits(stored.spec.rule, specs[position].rule);
        import_matrix(previous, entry, (position as u32, &specs[position]), matrices, fits)?;
    }
    Ok(())
}

/// Replaces all rows of a matrix, which has a number and a spec, by those of a model, block by block.
pub fn import_matrix(
    model: &mut ModelReader,
    entry: usize,
    (matrix, spec): (u32, &MatrixSpec),
    matrices: &mut dyn MatrixAccess,
    with_slots: bool,
) -> Result<(), Error> {
    let row_count = model.manifest.matrices[entry].stored_rows;
    matrices.import(matrix, &RowBlock::none(spec), Some(row_count))?;
    let (mut from, mut fault) = (0, None);
    let mut blocks = std::iter::from_fn(|| {
        let mut rows = model.rows_from(entry, from).map_err(|error| fault = Some(error)).ok()?;
        from = rows.keys.last()? + 1;
        if !with_slots {
            rows.slots.clear();
        }
        Some((matrix, rows))
    });
    matrices.import_all(&mut blocks)?;
    fault.map_or(Ok(()), |fault| Err(fault.into()))
}

/// Returns the notices when the job does not continue exactly where `previous` ended: about its optimizer state, if
/// that is not used, and about the schedule.
pub fn notices(previous: &ModelReader, specs: &[MatrixSpec]) -> Vec<String> {
    let Some(entry) = previous.manifest.matrices.first() else { return Vec::new() };
    let Some(spec) = specs.iter().find(|spec| spec.name == entry.name) else { return Vec::new() };
    let model = previous.path.display();
    let mut notices = Vec::new();
    let has_slots = !entry.slots.is_empty();
    let complete = spec.rule.slots().is_empty() || (has_slots && state_fits(entry.spec.rule, spec.rule));
    if !complete {
        let state =
            if has_slots { "belongs to another optimizer or other settings" } else { "was not saved" };
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
