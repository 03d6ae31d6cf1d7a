//! `seraphim status --master ADDRESS`.

mod job_progress;

pub(super) use job_progress::{incidents, progress_text};

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use control::request::Status;
use control::text::{plain, plain_lines};
use control::{Client, JobState, JobStatus};
use rpc::message::control::{Member, MemberKind};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::cluster_args::{master_arg, master_http, master_http_arg, token, token_arg};
use super::submit::state_name;
use super::{evaluate, predict, print_json, print_text, train};
use crate::error::Error;
use crate::exit::Exit;

/// Maximum wait for the answer of the master.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Maximum length in bytes of a line, and of an error, from another process.
const TEXT_BYTES: usize = 4 << 10;

pub(super) fn command() -> Command {
    Command::new("status")
        .about("Show the members and jobs of a cluster, or one job in detail")
        .arg(Arg::new("job").value_name("JOB").value_parser(clap::value_parser!(u32)).help(
            "Number of a job: shows its report after its end [default: a summary of all members and jobs]",
        ))
        .arg(master_arg())
        .arg(master_http_arg())
        .arg(token_arg())
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print the result as JSON"))
}

pub(super) fn run(matches: &ArgMatches) -> Result<Exit, Error> {
    let (address, token) = (master_http(matches)?, token(matches)?);
    let client = Client::new(address.clone(), &token);
    let json = matches.get_flag("json");
    if let Some(number) = matches.get_one::<u32>("job").copied() {
        let job = client.job(number).map_err(Error::master(&address))?;
        if json {
            print_json(&job)?;
        } else {
            print_text(&detail(&job))?;
        }
        return Ok(Exit::Done);
    }
    let Status { members, jobs } = client.status(ANSWER_LIMIT).map_err(Error::master(&address))?;
    if json {
        let members: Vec<Value> =
            members.iter().map(|(member, report)| json!({"member": member, "report": report})).collect();
        print_json(&json!({"members": members, "jobs": jobs}))?;
    } else {
        print_text(&text(&members, &jobs))?;
    }
    Ok(Exit::Done)
}

/// Describes one job, with the summary of its report if it has one.
fn detail(job: &JobStatus) -> String {
    fn read<T: DeserializeOwned>(job: &JobStatus, summary: impl Fn(&T) -> String) -> Option<String> {
        serde_json::from_value(job.progress.clone()).ok().map(|report| summary(&report))
    }
    let summary = read(job, train::summary)
        .or_else(|| read(job, predict::summary))
        .or_else(|| read(job, evaluate::summary));
    line(job) + &plain_lines(&summary.unwrap_or_default(), TEXT_BYTES)
}

fn text(members: &[(Member, Value)], jobs: &[JobStatus]) -> String {
    let mut out = job_progress::counted(members.len() as u64, "member") + "\n";
    for (member, report) in members {
        let what = match &member.kind {
            MemberKind::Server { addresses, lanes, memory_limit_bytes } => format!(
                "server  {lanes} lanes, at most {}, at {}",
                crate::progress::bytes(*memory_limit_bytes),
                addresses.join(", ")
            ),
            MemberKind::Worker { slots, group } if group.is_empty() => format!("worker  {slots} slots"),
            MemberKind::Worker { slots, group } => format!("worker  {slots} slots, worker group \"{group}\""),
        };
        let http = report["http"].as_array().map_or(&[][..], Vec::as_slice);
        let http: Vec<&str> = http.iter().filter_map(Value::as_str).collect();
        let what = format!("  {:<24} {what}, HTTP at {}  ({})", member.name, http.join(", "), member.host);
        out += &(plain(&what, TEXT_BYTES) + "\n");
    }
    out += &(job_progress::counted(jobs.len() as u64, "job") + "\n");
    for job in jobs {
        out += &line(job);
    }
    out
}

/// Describes a job and its progress in one line. Titles and errors come from other processes.
fn line(job: &JobStatus) -> String {
    let (state, title) = (state_name(job.state), plain(&job.title, TEXT_BYTES));
    let mut out = format!("  {:>4}  {state:<9}  {title}", job.id);
    if let Some(waits_for) = job.progress["waits_for"].as_str() {
        out += &format!("  waits for {}", plain(waits_for, TEXT_BYTES));
    }
    out += &progress_text(&job.progress);
    if let Some(error) = &job.error {
        // Every line of the error is indented, so that none can be taken for a job.
        let error = plain_lines(error, TEXT_BYTES).replace('\n', "\n        ");
        out += &format!("\n        {error}");
    }
    out.push('\n');
    if job.state == JobState::Running {
        out += &job_progress::lines(&job.progress);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_an_error_looks_like_a_job() {
        let job = JobStatus {
            id: 7,
            title: "lr on x".into(),
            state: JobState::Failed,
            progress: Value::Null,
            error: Some("no data: y\n     9  done       lr on z".into()),
        };
        let text = line(&job);
        let jobs = text.lines().filter(|line| line.len() > 6 && line[..6].trim().parse::<u64>().is_ok());
        assert_eq!(jobs.count(), 1, "{text}");
    }
}
