//! `seraphim submit JOB.toml --master ADDRESS`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use control::{Client, JobState, JobStatus, Order, SubmissionId};

use super::flags::with_flags;
use super::places::{master, master_arg, token, token_arg};
use super::{print_json, print_text, train};
use crate::error::Error;
use crate::exit::Exit;
use crate::job::TrainJob;
use crate::job::keys;
use crate::job::raw::RawJob;
use crate::report::Report;

/// Longest wait for an answer of the master, all attempts included.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

pub(super) fn command() -> Command {
    let what = Arg::new("what")
        .value_name("ALGORITHM|JOB.toml")
        .required(true)
        .help("An algorithm, or a job file with the same keys; flags win over the file");
    let detach = Arg::new("detach")
        .long("detach")
        .action(ArgAction::SetTrue)
        .help("Print the number of the job and do not wait for its end");
    let command = Command::new("submit")
        .about("Train on a running cluster; its workers read the data and write the model")
        .arg(what)
        .arg(master_arg())
        .arg(token_arg())
        .arg(detach);
    with_flags(command, keys::Command::Train)
}

pub(super) fn run(matches: &ArgMatches) -> Result<Exit, Error> {
    let raw = in_this_folder(train::raw(matches)?)?;
    // What cannot be is said here, before the master hears of it.
    let job = TrainJob::check(&raw)?;
    (algo::algorithm(&job.algorithm)?.configure)(&job.set)?;
    let (address, token) = (master(matches)?, token(matches)?);
    let order = Order {
        title: format!("{} on {}", job.algorithm, job.input.data.join(", ")),
        spec: serde_json::to_value(&raw).expect("texts are always JSON"),
        servers: job.size.map_or(1, |size| size.servers),
        workers: job.size.map_or(1, |size| size.workers),
    };
    let client = Client::new(address.clone(), &token);
    let submitted = client.submit(SubmissionId::random(), &order, ANSWER_LIMIT);
    let number = submitted.map_err(Error::master(&address))?;
    if matches.get_flag("detach") {
        print_text(&format!("{number}\n"))?;
        return Ok(Exit::Done);
    }
    let mut last: Option<JobStatus> = None;
    let watched = client.watch(number, |status| {
        if !job.manner.quiet {
            tell(last.as_ref(), status);
        }
        last = Some(status.clone());
        true
    });
    watched.map_err(Error::master(&address))?;
    finish(last, &job)
}

/// A line for every change, for people.
#[allow(clippy::print_stderr, reason = "progress goes to standard error")]
fn tell(last: Option<&JobStatus>, status: &JobStatus) {
    if last.is_none_or(|last| last.state != status.state) {
        eprintln!("job {} is {}", status.id, state_name(status.state));
    }
    if let (JobState::Running, Some(records)) = (status.state, status.progress["records"].as_u64()) {
        eprintln!("job {}: {} records", status.id, crate::progress::count(records as f64));
    }
}

pub(super) fn state_name(state: JobState) -> &'static str {
    match state {
        JobState::Queued => "queued",
        JobState::Running => "running",
        JobState::Done => "done",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
    }
}

fn finish(last: Option<JobStatus>, job: &TrainJob) -> Result<Exit, Error> {
    let Some(status) = last else {
        let text = "the master said nothing of the job".into();
        return Err(Error::Cluster { text, exit: Exit::Internal });
    };
    if let Some(text) = status.error {
        let exit =
            status.progress["exit"].as_u64().map_or(Exit::Internal, |code| Exit::from_code(code as u8));
        return Err(Error::Cluster { text, exit });
    }
    let report: Report = serde_json::from_value(status.progress).map_err(|error| Error::Cluster {
        text: format!("the report of the job cannot be read: {error}"),
        exit: Exit::Internal,
    })?;
    if let Some(path) = &job.report {
        report.write(path)?;
    }
    if job.manner.json {
        print_json(&report)?;
    } else {
        print_text(&train::summary(&report))?;
    }
    Ok(if report.ended_by == "interrupted" { Exit::Interrupted } else { Exit::Done })
}

/// Workers stand in other folders: paths are made whole.
fn in_this_folder(raw: RawJob) -> Result<RawJob, Error> {
    let folder = std::env::current_dir().map_err(Error::io("find", PathBuf::from(".")))?;
    let whole = |text: &str| {
        if text == "-" || text.contains("://") {
            text.to_owned()
        } else {
            folder.join(Path::new(text)).display().to_string()
        }
    };
    Ok(raw.with_paths(whole))
}
