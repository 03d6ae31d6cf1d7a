//! The supervisors that start a cluster for one job: YARN and Kubernetes.

use clap::{Arg, ArgGroup, ArgMatches, Command};
use engine::Error;
use engine::interrupt::Interrupt;

use super::cluster_args::{MasterPlace, master_arg, master_http_arg, token_arg};
use super::supervised::{Purpose, ReachedMaster, SupervisedCluster};
use super::{kubernetes, yarn};

/// Adds the flags of all supervisors.
pub(super) fn with_args(command: Command) -> Command {
    let arg = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help).requires("supervisor")
    };
    let shared = [
        arg("master-memory", "BYTES", "Memory of the master's container [default: 512MiB]"),
        arg(
            "server-memory",
            "BYTES",
            "Memory of a server's container, three quarters of it for parameters [default: 2GiB]",
        ),
        arg("worker-memory", "BYTES", "Memory of a worker's container [default: 2GiB]"),
        arg("vcores", "N", "Cores of a server's and a worker's container [default: 1]")
            .value_parser(clap::value_parser!(u64).range(1..=1024)),
        arg("node-label", "LABEL", "Only nodes with this label: a name on YARN, NAME=VALUE on Kubernetes"),
        arg(
            "stage",
            "DIR",
            "Folder for the files of the cluster, such as hdfs://HOST:PORT/PATH [default on YARN: .seraphim in the home of the user; on \
             Kubernetes: beside the model or the scores]",
        ),
    ];
    let group = ArgGroup::new("supervisor").args(["yarn", "k8s"]).multiple(false);
    command.args(yarn::args()).args(kubernetes::args()).args(shared).group(group)
}

/// Starts the cluster of a job, if a supervisor is to do it, and waits for its master.
pub(super) fn start(
    matches: &ArgMatches,
    purpose: Purpose<'_>,
    interrupt: &Interrupt,
) -> Result<Option<Box<dyn SupervisedCluster>>, Error> {
    if matches.contains_id("yarn") {
        return Ok(Some(Box::new(yarn::start(matches, purpose, interrupt)?)));
    }
    if matches.contains_id("k8s") {
        return Ok(Some(Box::new(kubernetes::start(matches, purpose, interrupt)?)));
    }
    Ok(None)
}

/// Adds the flags with which a command reaches a master.
pub(super) fn with_reach_args(command: Command) -> Command {
    command.args([master_arg(), master_http_arg(), token_arg()]).args(kubernetes::reach_args())
}

/// Reaches the master of these flags.
pub(super) fn reach(matches: &ArgMatches) -> Result<ReachedMaster, Error> {
    if let Some(name) = matches.get_one::<String>("k8s") {
        return kubernetes::reach(matches, name);
    }
    let place = MasterPlace::of(matches);
    Ok(ReachedMaster { address: place.http()?, token: place.token()?, forwarding: None })
}
