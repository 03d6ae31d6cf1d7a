//! `seraphim master --listen ADDRESS`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgMatches, Command};
use engine::cluster::{MasterConfig, MasterFiles, ResultFile, manage};
use engine::{Environment, Error, Exit};

use super::cluster_args::{
    DEFAULT_MASTER, http_arg, listen, listen_arg, log_args, session_checkpoints, session_checkpoints_arg,
    start_log, token, token_arg,
};

pub(super) fn command() -> Command {
    Command::new("master")
        .about("Manage the members, the placement and the jobs of a cluster")
        .arg(listen_arg(DEFAULT_MASTER))
        .arg(http_arg())
        .arg(token_arg())
        .arg(
            Arg::new("max-jobs")
                .long("max-jobs")
                .value_name("N")
                .value_parser(clap::value_parser!(u32).range(1..=1024))
                .help("Maximum number of running jobs; further ones are queued [default: 4]"),
        )
        .arg(
            Arg::new("lease")
                .long("lease")
                .value_name("SECONDS")
                .value_parser(clap::value_parser!(u64).range(1..=86_400))
                .help(
                    "How long a member may be silent or away before it is lost; with a synced log, as long as its machine takes \
                     to restart [default: 5, and 2 without a connection]",
                ),
        )
        .arg(
            Arg::new("state")
                .long("state")
                .value_name("DIR")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Record the jobs in this folder: a new master with it goes on with them [default: jobs end with the master]"),
        )
        .arg(session_checkpoints_arg())
        .arg(
            Arg::new("announce")
                .long("announce")
                .value_name("FILE")
                .help("Write the addresses of this master to a file, such as hdfs://HOST:PORT/FILE, which members and clients take as --master"),
        )
        .arg(
            Arg::new("single-job")
                .long("single-job")
                .value_name("FILE")
                .help("End with the first job, and write to this file how it ended: for supervisors that start a cluster for a job"),
        )
        .args(log_args())
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    let interrupt = environment.interrupt;
    start_log(matches)?;
    interrupt.set_stop_message(if matches.contains_id("state") {
        "stopping: the jobs go on with the next master that is started with this --state"
    } else {
        "stopping: running jobs stop at their next step and are saved; press Ctrl-C again to end at once"
    });
    let token = token(matches)?;
    let mut config = MasterConfig {
        listen: listen("listen", matches, &token)?,
        http: listen("http", matches, &token)?,
        token,
        functions: environment.functions.clone(),
        state: matches.get_one::<PathBuf>("state").cloned(),
        ..MasterConfig::default()
    };
    if let Some(count) = matches.get_one::<u32>("max-jobs") {
        config.settings.running_job_limit = *count as usize;
    }
    if let Some(seconds) = matches.get_one::<u64>("lease") {
        config.settings.lease = Duration::from_secs(*seconds);
        config.settings.reconnect_limit = config.settings.lease;
    }
    let location = |name: &str| matches.get_one::<String>(name).cloned();
    let files = MasterFiles {
        session_checkpoints: session_checkpoints(matches)?,
        announcement: location("announce"),
        result: location("single-job").map(|location| ResultFile { location }),
    };
    manage(config, files, environment)?;
    Ok(Exit::Done)
}
