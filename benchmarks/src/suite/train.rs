//! The command that most benchmarks run.

use std::ffi::OsString;
use std::path::Path;

use crate::process::arguments;

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
