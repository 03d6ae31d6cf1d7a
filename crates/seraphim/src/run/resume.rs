//! Training on from a model: its weights always, its optimizer state where that means the same to the job's rule.

use std::borrow::Cow;

use matrix::{Exported, MatrixSpec, PushRule};

use crate::model::Model;

/// The rows of `previous` for the matrices of a job: the position of the matrix among `specs`, and what to import.
pub(super) fn rows<'a>(previous: &'a Model, specs: &[MatrixSpec]) -> Vec<(usize, Cow<'a, Exported>)> {
    let entries = previous.manifest.matrices.iter().zip(&previous.matrices);
    entries
        .filter_map(|(entry, rows)| {
            let position = specs.iter().position(|spec| spec.name == entry.name)?;
            let fits = state_fits(entry.spec.rule, specs[position].rule);
            let weights_only = || Exported { slots: Vec::new(), ..rows.clone() };
            Some((position, if fits { Cow::Borrowed(rows) } else { Cow::Owned(weights_only()) }))
        })
        .collect()
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
