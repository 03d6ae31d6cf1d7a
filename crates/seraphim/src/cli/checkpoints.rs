//! `seraphim checkpoints list|verify|prune DIR`: the checkpoints of a training in their folder.

use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::checkpoint::{Folder, Manifest};
use engine::{Error, Exit, checkpoint};
use serde_json::{Value, json};

use super::{print_json, print_text};
use crate::progress::{bytes, counted};

pub(super) fn command() -> Command {
    let folder = || {
        let help = "The folder of the checkpoints, as MODEL.checkpoints beside a model";
        Arg::new("folder").value_name("DIR").required(true).help(help)
    };
    let json = || Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print the result as JSON");
    let keep = Arg::new("keep")
        .long("keep")
        .value_name("N")
        .required(true)
        .value_parser(clap::value_parser!(u32).range(1..))
        .help("Number of the newest whole checkpoints to keep");
    let incomplete = Arg::new("incomplete")
        .long("incomplete")
        .action(ArgAction::SetTrue)
        .help("Remove also the newest one if it is not complete; only when no training writes to the folder");
    Command::new("checkpoints")
        .about("List, verify or remove the checkpoints of a training")
        .subcommand_required(true)
        .subcommand(Command::new("list").about("List the complete checkpoints").arg(folder()).arg(json()))
        .subcommand(
            Command::new("verify")
                .about("Read every byte and compare its checksum")
                .arg(folder())
                .arg(json()),
        )
        .subcommand(
            Command::new("prune")
                .about("Remove what is older than the newest whole checkpoints, and what did not become complete")
                .arg(folder())
                .arg(keep)
                .arg(incomplete),
        )
}

pub(super) fn run(matches: &ArgMatches) -> Result<Exit, Error> {
    let (name, matches) = matches.subcommand().expect("clap asks for it");
    let location = matches.get_one::<String>("folder").expect("clap asks for it");
    let folder = Folder::open(location)?;
    match name {
        "list" => list(&folder, matches.get_flag("json")),
        "verify" => verify(&folder, matches.get_flag("json")),
        _ => {
            let keep = *matches.get_one::<u32>("keep").expect("clap asks for it");
            prune(&folder, keep as usize, matches.get_flag("incomplete"))
        }
    }
}

/// The numbers of the complete checkpoints; an error if there is none.
fn numbers(folder: &Folder) -> Result<Vec<u64>, Error> {
    let numbers = folder.numbers()?;
    if numbers.is_empty() {
        return Err(checkpoint::Error::NoCheckpoint { location: folder.location().to_owned() }.into());
    }
    Ok(numbers)
}

fn list(folder: &Folder, as_json: bool) -> Result<Exit, Error> {
    let mut rows = Vec::new();
    for number in numbers(folder)? {
        rows.push((number, folder.manifest(number)));
    }
    if as_json {
        print_json(&rows.iter().map(|(number, manifest)| row_json(*number, manifest)).collect::<Vec<_>>())?;
    } else {
        if let Some(claim) = folder.claim()? {
            let is_session = rows
                .iter()
                .any(|(_, manifest)| manifest.as_ref().is_ok_and(|manifest| manifest.session().is_some()));
            let what = if is_session { "" } else { "training " };
            print_text(&format!("{what}{}\n", claim.title))?;
        }
        for (number, manifest) in &rows {
            print_text(&format!("{number:08}  {}\n", row_text(manifest)))?;
        }
    }
    Ok(Exit::Done)
}

fn size_bytes(manifest: &Manifest) -> u64 {
    manifest.parts.iter().map(|part| part.size_bytes).sum()
}

fn row_text(manifest: &Result<Manifest, checkpoint::Error>) -> String {
    match manifest {
        Ok(manifest) if manifest.session().is_some() => {
            let rows = manifest.parts.iter().flat_map(|part| &part.row_counts).sum();
            let (matrices, rows) = (manifest.matrices.len() as u64, counted(rows, "row"));
            let matrices = if matrices == 1 { "1 matrix".into() } else { format!("{matrices} matrices") };
            format!("{matrices}, {rows}, {}", bytes(size_bytes(manifest)))
        }
        Ok(manifest) => {
            let within = if manifest.is_within_epoch { "within" } else { "before" };
            let (epoch, clock) = (manifest.epoch + 1, manifest.clock);
            let (tasks, size) = (manifest.task_count.into(), bytes(size_bytes(manifest)));
            let since = manifest.base.map(|base| format!(", what changed since {:08}", base.number));
            let since = since.unwrap_or_default();
            format!("{within} epoch {epoch}, clock {clock}, {}, {size}{since}", counted(tasks, "task"))
        }
        Err(error) => error.to_string(),
    }
}

fn row_json(number: u64, manifest: &Result<Manifest, checkpoint::Error>) -> Value {
    match manifest {
        Ok(manifest) => json!({
            "number": number,
            "epoch": manifest.epoch,
            "is_within_epoch": manifest.is_within_epoch,
            "clock": manifest.clock,
            "tasks": manifest.task_count,
            "size_bytes": size_bytes(manifest),
            "created_s": manifest.created_s,
            "base": manifest.base.map(|base| base.number),
        }),
        Err(error) => json!({ "number": number, "error": error.to_string() }),
    }
}

fn verify(folder: &Folder, as_json: bool) -> Result<Exit, Error> {
    let (mut rows, mut damage) = (Vec::new(), None);
    for number in numbers(folder)? {
        let checked = folder.manifest(number).and_then(|manifest| folder.verify(&manifest));
        let text = match &checked {
            Ok(summary) => {
                let (rows, size) = (counted(summary.row_count, "row"), bytes(summary.size_bytes));
                format!("whole: {}, {rows}, {size}", counted(summary.task_count as u64, "state"))
            }
            Err(error) => error.to_string(),
        };
        rows.push(json!({ "number": number, "is_whole": checked.is_ok(), "text": text }));
        if !as_json {
            print_text(&format!("{number:08}  {text}\n"))?;
        }
        damage = damage.or(checked.err());
    }
    if as_json {
        print_json(&rows)?;
    }
    match damage {
        None => Ok(Exit::Done),
        Some(error) => Err(error.into()),
    }
}

/// `removes_newest`: also if the newest one is not complete, which a training may be writing.
fn prune(folder: &Folder, keep: usize, removes_newest: bool) -> Result<Exit, Error> {
    let before = folder.incomplete_numbers()?;
    if before.is_empty() {
        numbers(folder)?;
    }
    let pruned = folder.prune_verified(keep)?;
    let mut incomplete = folder.incomplete_numbers()?;
    let newest_complete = folder.numbers()?.last().copied();
    let newest = incomplete.last().copied().filter(|newest| Some(*newest) > newest_complete);
    let incomplete_newest = newest.filter(|_| !removes_newest);
    incomplete.retain(|number| Some(*number) != incomplete_newest);
    incomplete.iter().try_for_each(|number| folder.remove_incomplete(*number))?;
    let part_count = before.len() - incomplete_newest.iter().count();
    let complete_count = pruned.iter().filter(|number| !before.contains(number)).count();
    let mut text = format!("removed {}", counted(complete_count as u64, "checkpoint"));
    if part_count > 0 {
        text += &format!(" and what was written of {part_count} that did not become complete");
    }
    if let Some(incomplete_newest) = incomplete_newest {
        text += &format!(
            "\n{incomplete_newest:08} is not complete and stays, because a training may be writing it: if none does, add --incomplete"
        );
    }
    print_text(&(text + "\n"))?;
    Ok(Exit::Done)
}
