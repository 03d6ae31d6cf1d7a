//! What clusters that a supervisor starts for one job have in common.

use std::io::Read as _;
use std::time::Duration;

use clap::ArgMatches;
use engine::Error;
use engine::cluster::{Address, JobSubmission};
use engine::job::RawJob;
use engine::job::check::parse_bytes;
use engine::kubernetes::Cluster;

use super::cluster_args::MasterPlace;

/// Time between two looks at a cluster that begins.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Share of the memory of a server's container that is for parameters: the rest is for the program.
const PARAMETER_SHARE: (u64, u64) = (3, 4);
/// How long a client waits for a lost master that its supervisor starts again, which first must see that a node is gone.
pub(super) const LOST_LIMIT: Duration = Duration::from_mins(5);

/// A cluster that was started for a job.
pub(super) trait SupervisedCluster {
    /// Where its master is.
    fn place(&self) -> &MasterPlace;

    /// The secret of its members.
    fn token(&self) -> Result<Vec<u8>, Error> {
        self.place().token()
    }

    /// Why there is no master any more; none if the cluster goes on, or nobody knows.
    fn end(&self) -> Option<Error>;

    /// Removes what is left when the client has seen the end of the job.
    fn remove(&self) {}
}

/// What a cluster is started for.
#[derive(Clone, Copy)]
pub(super) struct Purpose<'a> {
    pub(super) order: &'a JobSubmission,
    pub(super) job: &'a RawJob,
    /// The model or the scores.
    pub(super) output: Option<&'a str>,
}

/// The sizes of containers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) master_mib: u64,
    pub(super) server_mib: u64,
    pub(super) worker_mib: u64,
    pub(super) vcores: u64,
}

impl Sizes {
    pub(super) fn of(matches: &ArgMatches) -> Result<Self, Error> {
        let memory = |name: &str, default_mib: u64| match matches.get_one::<String>(name) {
            None => Ok(default_mib),
            Some(text) => {
                let mib = parse_bytes(text).map(|bytes| bytes >> 20).filter(|mib| *mib > 0);
                let expected = "a number of bytes of at least 1MiB, as in 2GiB";
                mib.ok_or_else(|| Error::bad_value(format!("--{name}"), text.clone(), expected))
            }
        };
        Ok(Self {
            master_mib: memory("master-memory", 512)?,
            server_mib: memory("server-memory", 2048)?,
            worker_mib: memory("worker-memory", 2048)?,
            vcores: matches.get_one::<u64>("vcores").copied().unwrap_or(1),
        })
    }

    /// What a server has for parameters, in MiB.
    pub(super) fn parameters_mib(self) -> u64 {
        let (own, whole) = PARAMETER_SHARE;
        self.server_mib * own / whole
    }
}

/// A master that a command reaches.
pub(super) struct ReachedMaster {
    pub(super) address: Address,
    pub(super) token: Vec<u8>,
    /// Passes on what is sent to the address as long as it lives.
    pub(super) forwarding: Option<Cluster>,
}

/// A number that nobody guesses, in hexadecimal digits.
pub(super) fn random_digits(byte_count: usize) -> Result<String, Error> {
    const SOURCE: &str = "/dev/urandom";
    let mut bytes = vec![0; byte_count];
    let mut source = std::fs::File::open(SOURCE).map_err(Error::io("open", SOURCE))?;
    source.read_exact(&mut bytes).map_err(Error::io("read", SOURCE))?;
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    Ok(digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect())
}
