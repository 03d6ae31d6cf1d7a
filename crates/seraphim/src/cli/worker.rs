//! `seraphim worker --master ADDRESS`.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command};
use engine::cluster::{LocalData, MemberKind, WorkerConfig, work};
use engine::{Environment, Error, Exit};

use super::cluster_args::{
    http_arg, listen, log_args, master_arg, start_log, token, token_arg, worker_group_arg,
};
use super::server::{member, member_args, set_stop_behaviour};

pub(super) fn command() -> Command {
    Command::new("worker")
        .about("Run tasks of a cluster's jobs")
        .arg(master_arg())
        .arg(
            // Its only port; `--listen` is the name of earlier releases.
            http_arg().alias("listen").default_value("127.0.0.1:0").help(
                "Address to serve HTTP on (/metrics, /health): HOST:PORT, or unix:PATH; may be repeated",
            ),
        )
        .args(member_args())
        .arg(worker_group_arg(
            "Worker group: run only jobs that were submitted with the same --worker-group [default: only jobs without one]",
        ))
        .arg(
            Arg::new("local-data")
                .long("local-data")
                .value_name("DIR")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Folder of this worker for paths worker://NAME of a job: data that the other workers do not have"),
        )
        .arg(token_arg())
        .args(log_args())
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    start_log(matches)?;
    let stopping = "stopping: this worker leaves, and jobs with tasks on it wait for another one; press Ctrl-C again to end at once";
    set_stop_behaviour(matches, environment.interrupt, stopping);
    let slots = engine::machine::core_count() as u32;
    let group = matches.get_one::<String>("worker-group").cloned().unwrap_or_default();
    let config = WorkerConfig {
        member: member(matches, "worker", MemberKind::Worker { slots, group })?,
        http: listen("http", matches, &token(matches)?)?,
        local_data: LocalData::new(matches.get_one::<PathBuf>("local-data").cloned())?,
    };
    work(config, environment)?;
    Ok(Exit::Done)
}
