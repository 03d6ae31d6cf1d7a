//! `seraphim status --master ADDRESS`.

mod course;

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use control::words::Status;
use control::{Client, JobState, JobStatus};
use rpc::message::control::{Member, MemberKind};
use serde_json::{Value, json};

use super::places::{master, master_arg, token, token_arg};
use super::submit::state_name;
use super::{print_json, print_text};
use crate::error::Error;
use crate::exit::Exit;

/// Longest wait for the answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

pub(super) fn command() -> Command {
    Command::new("status")
        .about("Show the members and jobs of a cluster")
        .arg(master_arg())
        .arg(token_arg())
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print the result as JSON"))
}

pub(super) fn run(matches: &ArgMatches) -> Result<Exit, Error> {
    let (address, token) = (master(matches)?, token(matches)?);
    let client = Client::new(address.clone(), &token);
    let Status { members, jobs } = client.status(ANSWER_LIMIT).map_err(Error::master(&address))?;
    if matches.get_flag("json") {
        let members: Vec<Value> =
            members.iter().map(|(member, report)| json!({"member": member, "report": report})).collect();
        print_json(&json!({"members": members, "jobs": jobs}))?;
    } else {
        print_text(&text(&members, &jobs))?;
    }
    Ok(Exit::Done)
}

fn text(members: &[(Member, Value)], jobs: &[JobStatus]) -> String {
    let mut out = course::counted(members.len() as u64, "member") + "\n";
    for (member, report) in members {
        let what = match &member.kind {
            MemberKind::Server { addresses, lanes, memory_limit_bytes } => format!(
                "server  {lanes} lanes, at most {}, at {}",
                crate::progress::bytes(*memory_limit_bytes),
                addresses.join(", ")
            ),
            MemberKind::Worker { slots } => {
                let listens = report["listens"].as_array().map_or(&[][..], Vec::as_slice);
                let listens: Vec<&str> = listens.iter().filter_map(Value::as_str).collect();
                format!("worker  {slots} slots, at {}", listens.join(", "))
            }
        };
        out += &format!("  {:<24} {what}  ({})\n", member.name, member.host);
    }
    out += &(course::counted(jobs.len() as u64, "job") + "\n");
    for job in jobs {
        out += &format!("  {:>4}  {:<9}  {}", job.id, state_name(job.state), job.title);
        if let Some(records) = job.progress["records"].as_u64() {
            out += &format!("  {} records", crate::progress::count(records as f64));
        }
        if let Some(epochs) = job.progress["epochs"].as_u64().filter(|_| job.state == JobState::Running) {
            out += &format!(", {}", course::counted(epochs, "whole epoch"));
        }
        if let Some(error) = &job.error {
            out += &format!("\n        {error}");
        }
        out.push('\n');
        if job.state == JobState::Running {
            out += &course::lines(&job.progress);
        }
    }
    out
}
