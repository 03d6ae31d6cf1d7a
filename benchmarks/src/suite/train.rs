//! The command that most benchmarks run, alone or against itself.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;

use crate::comparison::Comparison;
use crate::context::Context;
use crate::process::{Cores, arguments};
use crate::target::Figures;

/// Arguments of a `train` command: algorithm, data, model, number of tasks, parameters for `--set`, further flags.
pub(super) fn train(
    algorithm: &str,
    data: &Path,
    model: &Path,
    tasks: usize,
    set: &[&str],
    more: &[&str],
) -> Vec<OsString> {
    let mut words = arguments(["train", algorithm, "--quiet", "--overwrite", "--data"]);
    words.push(data.into());
    words.push("--model".into());
    words.push(model.into());
    words.extend(arguments(["--tasks".to_owned(), tasks.to_string()]));
    words.extend(set.iter().flat_map(|pair| arguments(["--set", pair])));
    words.extend(arguments(more.iter().copied()));
    words
}

/// The time of a command on two cores; the peer is another command of ours.
pub(super) fn against_itself(context: &Context, ours: &[OsString], peer: &[OsString]) -> Result<Figures> {
    let race = Comparison::run(
        context.options.rounds,
        || Ok(context.seraphim(Cores::Two, ours)?.into()),
        || Ok(Some(context.seraphim(Cores::Two, peer)?.into())),
    )?;
    Ok(Figures::from([("time", race.time())]))
}
