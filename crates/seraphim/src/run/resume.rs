//! Training on from a model: its weights always, its optimizer state where that means the same to the job's rule.

use matrix::{Exported, LocalStore, MatrixId, MatrixSpec, PushRule};

use crate::error::Error;
use crate::model::Model;

/// Puts the matrices of `previous` in the store.
pub(super) fn import(
    previous: &Model,
    specs: &[MatrixSpec],
    ids: &[MatrixId],
    store: &LocalStore,
) -> Result<(), Error> {
    for (entry, rows) in previous.manifest.matrices.iter().zip(&previous.matrices) {
        let Some(position) = specs.iter().position(|spec| spec.name == entry.name) else { continue };
        if state_fits(entry.spec.rule, specs[position].rule) {
            store.import(ids[position], rows)?;
        } else {
            store.import(ids[position], &Exported { slots: Vec::new(), ..rows.clone() })?;
        }
    }
    Ok(())
}

/// What the user should know of the optimizer state of `previous`, when it is not used.
pub(super) fn notice(previous: &Model, specs: &[MatrixSpec]) -> Option<String> {
    let entry = previous.manifest.matrices.first()?;
    let spec = specs.iter().find(|spec| spec.name == entry.name)?;
    if spec.rule.slots().is_empty() || (!entry.slots.is_empty() && state_fits(entry.spec.rule, spec.rule)) {
        return None;
    }
    let state =
        if entry.slots.is_empty() { "was not kept" } else { "is of another rule or of other settings" };
    let model = previous.path.display();
    Some(format!("the optimizer state of {model} {state}: training goes on from its weights alone"))
}

/// Whether the state that one rule left may be the state of another. That of FTRL-Proximal *is* the weights, by its
/// settings: with other settings the same state would mean other weights.
fn state_fits(old: PushRule, new: PushRule) -> bool {
    old == new
        || (std::mem::discriminant(&old) == std::mem::discriminant(&new)
            && !matches!(new, PushRule::FtrlProximal { .. }))
}
