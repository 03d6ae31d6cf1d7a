//! `seraphim functions`: lists the PS functions of this program.

use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::job_file::{extend_table, read_modules};
use engine::matrix::FunctionTable;
use engine::{Error, Exit, matrix};
use serde_json::{Value, json};

use super::{print_json, print_text};

/// The argument `--functions FILE.wasm`, for commands that do not run a job.
pub(super) fn modules_arg() -> Arg {
    Arg::new("functions")
        .long("functions")
        .value_name("FILE")
        .action(ArgAction::Append)
        .help("WebAssembly module with more PS functions than the built-in ones; may be repeated")
}

/// Returns the files of [`modules_arg`].
pub(super) fn modules(matches: &ArgMatches) -> Vec<String> {
    matches.get_many::<String>("functions").unwrap_or_default().cloned().collect()
}

pub(super) fn command() -> Command {
    Command::new("functions")
        .about("List the PS functions that servers run on rows of parameters")
        .arg(modules_arg())
        .arg(Arg::new("json").long("json").help("Print the result as JSON").action(ArgAction::SetTrue))
}

pub(super) fn run(matches: &ArgMatches, functions: &FunctionTable) -> Result<Exit, Error> {
    let entries = extend_table(&read_modules(&modules(matches))?, functions)?.entries();
    if matches.get_flag("json") {
        let value = |entry: &matrix::function::table::FunctionEntry| json!({"name": entry.name, "version": entry.version, "kind": entry.kind, "reads": entry.from, "writes": entry.into});
        print_json(&entries.iter().map(value).collect::<Vec<Value>>())?;
        return Ok(Exit::Done);
    }
    let mut text = format!("{:<18} {:<5} {:<10} {}\n", "name", "kind", "reads", "writes");
    for entry in entries {
        let row = format!("{:<18} {:<5} {:<10} {}", entry.name, entry.kind, entry.from, entry.into);
        text += &format!("{}\n", row.trim_end());
    }
    print_text(&text)?;
    Ok(Exit::Done)
}
