//! Converts the table of keys to flags, and parsed flags to a raw job.

use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::job::keys::{Key, KeyKind, keys_of};
use engine::job::{RawJob, keys};

/// Adds the flags of a command's keys.
pub(super) fn with_flags(command: Command, of: keys::JobCommand) -> Command {
    keys_of(of).fold(command, |command, key| command.arg(key_flag(key)))
}

/// The flag of a key.
pub(super) fn key_flag(key: &'static Key) -> Arg {
    let arg = Arg::new(key.name).long(key.flag()).help(key.help);
    match key.kind {
        KeyKind::Switch => arg.action(ArgAction::SetTrue),
        // When a shell expands an unquoted pattern, several files follow one flag.
        KeyKind::List => arg.action(ArgAction::Append).num_args(1..).value_name(key.value_name),
        KeyKind::Names | KeyKind::Pairs => arg.action(ArgAction::Append).value_name(key.value_name),
        KeyKind::Value(_) | KeyKind::Path | KeyKind::Bytes => {
            arg.value_name(key.value_name).allow_hyphen_values(true)
        }
    }
}

/// Returns the settings of the command line.
pub(super) fn raw_job(matches: &ArgMatches, of: keys::JobCommand) -> RawJob {
    let mut raw = raw_job_with(matches, keys_of(of));
    raw.command = of;
    raw
}

/// Returns the settings of the command line that have these keys of `train`.
pub(super) fn raw_job_of(matches: &ArgMatches, names: &[&str]) -> RawJob {
    raw_job_with(matches, names.iter().filter_map(|name| keys::find(keys::JobCommand::Train, name)))
}

fn raw_job_with(matches: &ArgMatches, keys: impl Iterator<Item = &'static Key>) -> RawJob {
    let mut raw = RawJob::new();
    for key in keys {
        if matches!(key.kind, KeyKind::Switch) {
            if matches.get_flag(key.name) {
                raw.set_flag(key, vec!["true".into()]);
            }
        } else if let Some(values) = matches.get_many::<String>(key.name) {
            raw.set_flag(key, values.cloned().collect());
        }
    }
    raw
}
