//! `seraphim reproduce MODEL`: trains a model again as its manifest says, and compares the files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Arg, ArgMatches, Command};
use engine::job::keys::{JobCommand, find};
use engine::reproduce::{ReproduceJob, Reproduction, reproduce};
use engine::{Environment, Error, Exit};
use serde_json::json;

use super::flags::{key_flag, raw_job_of};
use super::{print_json, print_text};
use crate::progress::{Progress, counted};

/// Keys that say how it is trained again: no byte of a bsp model depends on them.
const OWN_KEYS: [&str; 8] =
    ["data", "validate", "servers", "workers", "threads", "memory_limit", "quiet", "json"];

pub(super) fn command() -> Command {
    let model = Arg::new("of").value_name("MODEL").required(true).help("The folder of the model");
    let output = Arg::new("output")
        .long("output")
        .value_name("DIR")
        .value_parser(clap::value_parser!(PathBuf))
        .help("Keep the model that was trained again in this folder [default: a temporary one, which is removed]");
    let command = Command::new("reproduce")
        .about("Train a model again from its data, settings and seed, and compare every byte")
        .arg(model)
        .arg(output);
    OWN_KEYS.iter().filter_map(|name| find(JobCommand::Train, name)).map(key_flag).fold(command, Command::arg)
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    let model = PathBuf::from(matches.get_one::<String>("of").expect("clap asks for it"));
    let settings = raw_job_of(matches, &OWN_KEYS);
    let is_json = settings.get("json").is_some_and(|(_, texts)| texts == ["true"]);
    let job = ReproduceJob { model, output: matches.get_one::<PathBuf>("output").cloned(), settings };
    let reproduction = reproduce(&job, environment, Arc::new(Progress::new()))?;
    if reproduction.is_interrupted {
        return Ok(Exit::Interrupted);
    }
    tell(&job.model, &reproduction, is_json)?;
    Ok(if reproduction.differences.is_empty() { Exit::Done } else { Exit::Model })
}

/// Prints how the model that was trained again differs, and what was compared.
fn tell(path: &Path, reproduction: &Reproduction, is_json: bool) -> Result<(), Error> {
    let Reproduction { differences, files, version, .. } = reproduction;
    if is_json {
        let compared: Vec<&str> = files.iter().map(String::as_str).chain(["model.json"]).collect();
        return print_json(&json!({
            "is_reproduced": differences.is_empty(), "differences": differences, "compared": compared,
            "version": version,
        }));
    }
    if !differences.is_empty() {
        return print_text(&format!(
            "{} is not reproduced:\n  {}\n",
            path.display(),
            differences.join("\n  ")
        ));
    }
    let version = version.as_ref().map_or(String::new(), |version| format!(" ({version})"));
    print_text(&format!(
        "{} is reproduced{version}: every byte of {} is the same ({}), and model.json says the same, apart from version and \
         places of data\n",
        path.display(),
        counted(files.len() as u64, "file"),
        files.join(", ")
    ))
}
