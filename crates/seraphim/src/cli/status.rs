//! `seraphim status --master ADDRESS`.

mod job_progress;

pub(super) use job_progress::{incidents, progress_text};

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::cluster::{Client, JobState, JobStatus, Member, MemberKind, Status, plain, plain_lines};
use engine::{Error, Exit};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::submit::state_name;
use super::supervised::ReachedMaster;
use super::supervisors::{reach, with_reach_args};
use super::{evaluate, predict, print_json, print_text, train};
use crate::progress::{bytes, counted};

/// Maximum wait for the answer of the master.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Maximum length in bytes of a line, and of an error, from another process.
const TEXT_BYTES: usize = 4 << 10;

pub(super) fn command() -> Command {
    let command = Command::new("status")
        .about("Show the members and jobs of a cluster, or one job in detail")
        .arg(Arg::new("job").value_name("JOB").value_parser(clap::value_parser!(u32)).help(
            "Number of a job: shows its report after its end [default: a summary of all members and jobs]",
        ))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print the result as JSON"));
    with_reach_args(command)
}

pub(super) fn run(matches: &ArgMatches) -> Result<Exit, Error> {
    let ReachedMaster { address, token, forwarding: _forwarding } = reach(matches)?;
    let client = Client::new(address.clone(), &token);
    let json = matches.get_flag("json");
    if let Some(number) = matches.get_one::<u32>("job").copied() {
        let job = client.job(number).map_err(engine::cluster::master_error(&address))?;
        if json {
            print_json(&job)?;
        } else {
            print_text(&detail(&job))?;
        }
        return Ok(Exit::Done);
    }
    let Status { members, jobs } =
        client.status(ANSWER_LIMIT).map_err(engine::cluster::master_error(&address))?;
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
    let mut out = counted(members.len() as u64, "member") + "\n";
    for (member, report) in members {
        let what = match &member.kind {
            MemberKind::Server { addresses, lanes, memory_limit_bytes } => format!(
                "server  {}, at most {}, at {}",
                counted(u64::from(*lanes), "lane"),
                bytes(*memory_limit_bytes),
                addresses.join(", ")
            ),
            MemberKind::Worker { slots, group } if group.is_empty() => {
                format!("worker  {}", counted(u64::from(*slots), "slot"))
            }
            MemberKind::Worker { slots, group } => {
                format!("worker  {}, worker group \"{group}\"", counted(u64::from(*slots), "slot"))
            }
        };
        let http = report["http"].as_array().map_or(&[][..], Vec::as_slice);
        let http: Vec<&str> = http.iter().filter_map(Value::as_str).collect();
        let what = format!("  {:<24} {what}, HTTP at {}  ({})", member.name, http.join(", "), member.host);
        out += &(plain(&what, TEXT_BYTES) + "\n");
    }
    out += &(counted(jobs.len() as u64, "job") + "\n");
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

    fn job(state: JobState, progress: Value, error: Option<&str>) -> JobStatus {
        JobStatus { id: 7, title: "lr on x".into(), state, progress, error: error.map(str::to_owned) }
    }

    #[test]
    fn members_and_jobs_are_listed_with_what_they_offer() {
        let member =
            |name: &str, kind| Member { id: 1, name: name.into(), incarnation: 1, kind, host: "h:9".into() };
        let server = MemberKind::Server {
            addresses: vec!["tcp:a:1".into(), "unix:/s".into()],
            lanes: 2,
            memory_limit_bytes: 1 << 30,
        };
        let worker = |slots, group: &str| MemberKind::Worker { slots, group: group.into() };
        let http = json!({"http": ["tcp:a:2", "unix:/h"]});
        let members = [
            (member("server-0", server), http.clone()),
            (member("worker-0", worker(4, "")), http),
            (member("worker-1", worker(1, "b\u{1b}")), Value::Null),
        ];
        let running = json!({"records": 5, "epochs": 0, "waits_for": "a worker",
            "matrices": [{"name": "weights", "rows": 1, "bytes": 8, "partitions": 1}]});
        let told = text(&members, &[job(JobState::Running, running, None)]);
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines[0], "3 members");
        let server =
            "server  2 lanes, at most 1.00 GiB, at tcp:a:1, unix:/s, HTTP at tcp:a:2, unix:/h  (h:9)";
        assert_eq!(lines[1], format!("  server-0                 {server}"));
        assert_eq!(lines[2], "  worker-0                 worker  4 slots, HTTP at tcp:a:2, unix:/h  (h:9)");
        assert!(
            lines[3].contains("worker  1 slot, worker group \"b") && !lines[3].contains('\u{1b}'),
            "{told}"
        );
        assert_eq!(lines[4], "1 job");
        assert_eq!(lines[5], "     7  running    lr on x  waits for a worker  epoch 1, 5 records");
        assert_eq!(lines[6], "        matrix weights: 1 row, 8 bytes in 1 partition");
        assert_eq!(lines.len(), 7);
        assert_eq!(text(&[], &[]), "0 members\n0 jobs\n");
    }

    #[test]
    fn a_job_that_does_not_run_has_no_tasks() {
        let progress = json!({"records": 5, "epochs": 1, "tasks": [{"task": 0, "clock": 3}]});
        let told = line(&job(JobState::Done, progress.clone(), None));
        assert_eq!(told, "     7  done       lr on x  epoch 2, 5 records\n");
        assert!(line(&job(JobState::Running, progress, None)).contains("task 0"));
        assert_eq!(line(&job(JobState::Queued, Value::Null, None)), "     7  queued     lr on x\n");
    }

    #[test]
    fn a_report_is_shown_as_by_the_command_that_makes_it() {
        let predicted =
            json!({"records": 3, "output": "/o", "columns": ["score"], "bad_lines": 0, "notices": []});
        let told = detail(&job(JobState::Done, predicted, None));
        assert_eq!(told, "     7  done       lr on x\n3 scores written to /o (score)\n");
    }

    #[test]
    fn no_line_of_an_error_looks_like_a_job() {
        let error = "no data: y\n     9  done       lr on z";
        let text = line(&job(JobState::Failed, Value::Null, Some(error)));
        let jobs = text.lines().filter(|line| line.len() > 6 && line[..6].trim().parse::<u64>().is_ok());
        assert_eq!(jobs.count(), 1, "{text}");
    }
}
