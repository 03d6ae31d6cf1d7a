//! The options of a program: keys of a job file with their values.

use job::RawJob;
use job::keys::{self, JobCommand};
use job::scoring::ScoringMembers;

use driver::Error;

pub(crate) fn check_members(members: ScoringMembers, command: &str) -> Result<(), Error> {
    match members {
        ScoringMembers { servers: None, workers: None, .. } => Ok(()),
        _ => Err(not_in_one_process(command)),
    }
}

pub(crate) fn not_in_one_process(command: &str) -> Error {
    let what = "a library run is in one process, and servers or workers were asked for";
    Error::request(what, format!("use `seraphim {command}` or `seraphim submit`"))
}

/// Sets the options that a user gave, and those that only this module gives.
pub(crate) fn set_options(
    raw: &mut RawJob,
    command: JobCommand,
    given: &[(String, String)],
    own: Vec<(&'static str, Vec<String>)>,
) -> Result<(), Error> {
    let find = |name: &str| {
        keys::find(command, name).ok_or_else(|| job::Error::UnknownKey {
            key: name.to_owned(),
            place: "the options".to_owned(),
            nearest: algo::param::nearest(name, keys::keys_of(command).map(|key| key.name)),
        })
    };
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for (name, value) in given {
        if own.iter().any(|(own, _)| own == name) {
            let what = format!(
                "the option {name} is not for a library run, whose data and model are in the program"
            );
            return Err(Error::request(what, "leave it out"));
        }
        match all.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) => values.push(value.clone()),
            None => all.push((name, vec![value.clone()])),
        }
    }
    for (name, values) in all.into_iter().chain(own) {
        raw.set_option(find(name)?, values);
    }
    Ok(())
}
