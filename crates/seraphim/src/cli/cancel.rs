//! `seraphim cancel JOB --master ADDRESS`.

use std::time::Duration;

use clap::{ArgMatches, Command};
use engine::cluster::Client;
use engine::{Error, Exit};

use super::cluster_args::job_arg;
use super::print_text;
use super::supervised::ReachedMaster;
use super::supervisors::{reach, with_reach_args};

/// Maximum wait for the answer of the master.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

pub(super) fn command() -> Command {
    let command = Command::new("cancel")
        .about("Stop a job of a cluster at its next step; the model so far is saved where the job wanted it")
        .arg(job_arg());
    with_reach_args(command)
}

pub(super) fn run(matches: &ArgMatches) -> Result<Exit, Error> {
    let ReachedMaster { address, token, forwarding: _forwarding } = reach(matches)?;
    let job = matches.get_one::<u32>("job").copied().expect("clap asks for it");
    let client = Client::new(address.clone(), &token);
    let was_live = client.cancel(job, ANSWER_LIMIT).map_err(engine::cluster::master_error(&address))?;
    print_text(&if was_live {
        format!(
            "job {job} was asked to stop at its next step; `seraphim status` shows when it is cancelled, and the path \
             of its model so far\n"
        )
    } else {
        format!("job {job} has already ended\n")
    })?;
    Ok(Exit::Done)
}
