//! `seraphim server --master ADDRESS`.

use std::path::PathBuf;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::cluster::{LogConfig, MemberConfig, MemberKind, ServerProcessConfig, serve};
use engine::interrupt::Interrupt;
use engine::{Environment, Error, Exit, machine};

use super::cluster_args::{
    MasterPlace, host, http_arg, incarnation, listen, listen_arg, log_args, lost_limit, lost_limit_arg,
    master, master_arg, memory_limit, start_log, token, token_arg,
};

/// Maximum number of lanes of one server.
const LANE_LIMIT: i64 = 256;
/// What is told when the process is asked to stop.
const STOPPING: &str = "stopping: this server leaves, and jobs with rows on it go on with other members from their last checkpoints; \
     press Ctrl-C again to end at once";

pub(super) fn command() -> Command {
    Command::new("server")
        .about("Hold partitions of the matrices of a cluster's jobs")
        .arg(master_arg())
        .arg(listen_arg("127.0.0.1:0"))
        .arg(http_arg())
        .arg(Arg::new("advertise").long("advertise").value_name("HOST").help(
            "Name or address under which other machines reach this one [default: as in --listen]; a name is looked up at each connection",
        ))
        .args(member_args())
        .arg(
            Arg::new("lanes")
                .long("lanes")
                .value_name("N")
                .value_parser(clap::value_parser!(u16).range(1..=LANE_LIMIT))
                .help("Number of lanes (threads), each with its own partitions [default: all cores]"),
        )
        .arg(
            Arg::new("memory-limit").long("memory-limit").value_name("BYTES").help(
                "Memory limit for parameters, as in 2GiB [default: half of the machine's or container's]",
            ),
        )
        .args(log_folder_args())
        .arg(token_arg())
        .args(log_args())
}

/// Arguments that servers and workers share.
pub(super) fn member_args() -> [Arg; 3] {
    [
        Arg::new("name")
            .long("name")
            .value_name("NAME")
            .help("Name, unique in the cluster [default: kind, host and process]"),
        lost_limit_arg(),
        Arg::new("end-with-parent").long("end-with-parent").action(ArgAction::SetTrue).hide(true),
    ]
}

/// Sets the message that a server or worker prints when it is asked to stop. With `--end-with-parent` the process also
/// ends when its parent does.
pub(super) fn set_stop_behaviour(matches: &ArgMatches, interrupt: &Interrupt, stopping: &'static str) {
    interrupt.set_stop_message(stopping);
    if matches.get_flag("end-with-parent") {
        interrupt.end_with_parent();
    }
}

/// Longest wait for a master at an address, and for one that a supervisor starts.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const ANNOUNCEMENT_LIMIT: Duration = Duration::from_mins(5);

pub(super) fn member(matches: &ArgMatches, what: &str, kind: MemberKind) -> Result<MemberConfig, Error> {
    let host = host();
    let name = matches.get_one::<String>("name").cloned();
    Ok(MemberConfig {
        master: master(matches)?,
        token: token(matches)?,
        name: name.unwrap_or_else(|| format!("{what}-{host}")),
        host,
        incarnation: incarnation(),
        restored: false,
        kind,
        connect_limit: if MasterPlace::of(matches).is_announced() {
            ANNOUNCEMENT_LIMIT
        } else if matches.value_source("lost-limit") == Some(ValueSource::CommandLine) {
            lost_limit(matches)
        } else {
            CONNECT_LIMIT
        },
        lost_limit: lost_limit(matches),
    })
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    start_log(matches)?;
    set_stop_behaviour(matches, environment.interrupt, STOPPING);
    let token = token(matches)?;
    let config = ServerProcessConfig {
        member: member(matches, "server", MemberKind::Worker { slots: 1, group: String::new() })?,
        listen: listen("listen", matches, &token)?,
        http: listen("http", matches, &token)?,
        advertised_host: matches.get_one::<String>("advertise").cloned(),
        lanes: matches.get_one::<u16>("lanes").copied().unwrap_or_else(|| machine::core_count() as u16),
        memory_limit_bytes: memory_limit(matches)?,
        log: LogConfig {
            folder: matches.get_one::<PathBuf>("write-ahead-log").cloned(),
            is_synced: matches.get_flag("sync-log"),
            is_named: matches.get_one::<String>("name").is_some(),
        },
    };
    serve(config, environment)?;
    Ok(Exit::Done)
}

/// The flags of its write-ahead log.
pub(super) fn log_folder_args() -> [Arg; 2] {
    [
        Arg::new("write-ahead-log")
            .long("write-ahead-log")
            .value_name("DIR")
            .value_parser(clap::value_parser!(PathBuf))
            .help(
                "Folder of a local disk for a log of every change (durability=log): a server that has died is started \
                 again with the same folder, and no task goes back",
            ),
        Arg::new("sync-log")
            .long("sync-log")
            .action(ArgAction::SetTrue)
            .requires("write-ahead-log")
            .help("Sync the log to the disk before each acknowledgement (durability=synced-log), against power failures"),
    ]
}
