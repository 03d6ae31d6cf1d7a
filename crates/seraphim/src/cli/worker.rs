//! `seraphim worker --master ADDRESS`.

use std::time::Duration;

use clap::{Arg, ArgMatches, Command};
use rpc::message::control::MemberKind;

use super::places::{log_args, master_arg, start_log, token_arg};
use super::server::{member, member_args};
use crate::error::Error;
use crate::exit::Exit;
use crate::run::Environment;
use crate::run::cluster::worker::{WorkerConfig, run as work};

pub(super) fn command() -> Command {
    Command::new("worker")
        .about("Run tasks of a cluster's jobs")
        .arg(master_arg())
        .args(member_args())
        .arg(
            Arg::new("pause-ms")
                .long("pause-ms")
                .value_name("MS")
                .default_value("0")
                .value_parser(clap::value_parser!(u64).range(0..=60_000))
                .help("Waits so long before each batch: a slow worker, to try what a cluster does with one"),
        )
        .arg(token_arg())
        .args(log_args())
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    start_log(matches)?;
    let slots = crate::machine::core_count() as u32;
    let pause = matches.get_one::<u64>("pause-ms").copied().unwrap_or_default();
    let config = WorkerConfig {
        member: member(matches, "worker", MemberKind::Worker { slots })?,
        pause: Duration::from_millis(pause),
    };
    work(config, environment.formats, environment.interrupt)?;
    Ok(Exit::Done)
}
