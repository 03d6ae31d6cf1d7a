//! `seraphim checkpoint JOB --master ADDRESS`.

use std::time::{Duration, Instant};

use clap::{ArgMatches, Command};
use engine::cluster::{Client, JobStatus};
use engine::interrupt::Interrupt;
use engine::{Error, Exit};

use super::cluster_args::job_arg;
use super::print_text;
use super::supervised::ReachedMaster;
use super::supervisors::{reach, with_reach_args};

/// Maximum wait for the answer of the master.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Time between two looks at the progress of the job.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// A job reports its progress twice a second: after this time an error that it shows is later than the request.
const ERROR_DELAY: Duration = Duration::from_millis(1500);

pub(super) fn command() -> Command {
    let command = Command::new("checkpoint")
        .about("Write a checkpoint of a running job of a cluster now, and wait until it is complete")
        .arg(job_arg());
    with_reach_args(command)
}

pub(super) fn run(matches: &ArgMatches, interrupt: &Interrupt) -> Result<Exit, Error> {
    let ReachedMaster { address, token, forwarding: _forwarding } = reach(matches)?;
    let job = matches.get_one::<u32>("job").copied().expect("clap asks for it");
    let client = Client::new(address.clone(), &token);
    let before = number(&client.job(job).map_err(engine::cluster::master_error(&address))?);
    client.checkpoint(job, ANSWER_LIMIT).map_err(engine::cluster::master_error(&address))?;
    interrupt.exit_on_interrupt(format!(
        "job {job} was asked for a checkpoint and will write it; `seraphim status {job}` shows its number"
    ));
    let asked_at = Instant::now();
    loop {
        let status = client.job(job).map_err(engine::cluster::master_error(&address))?;
        let last = number(&status);
        if last > before {
            let clock = &status.progress["checkpoint"]["clock"];
            print_text(&format!(
                "checkpoint {} of job {job} was written at clock {clock}\n",
                last.unwrap_or(0)
            ))?;
            return Ok(Exit::Done);
        }
        if status.state.is_over() {
            return Err(problem(job, "has ended before the checkpoint was written"));
        }
        if asked_at.elapsed() > ERROR_DELAY {
            if let Some(error) = status.progress["checkpoint_error"].as_str() {
                return Err(problem(job, &format!("wrote no checkpoint: {error}")));
            }
            if let Some(waits_for) = status.progress["waits_for"].as_str() {
                return Err(problem(job, &format!("wrote no checkpoint, it waits for {waits_for}")));
            }
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The number of the last checkpoint of a job.
fn number(status: &JobStatus) -> Option<u64> {
    status.progress["checkpoint"]["number"].as_u64()
}

fn problem(job: u32, what: &str) -> Error {
    Error::Cluster { text: format!("job {job} {what}"), exit: Exit::Io }
}
