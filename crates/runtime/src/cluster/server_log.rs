//! The write-ahead log of a server process, and what of the process it remembers.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use driver::Error;
use member::MemberConfig;
use rpc::message::JobId;
use rpc::transport::Address;
use server::write_ahead::files::{ProcessPlace, WriteAheadLog};

/// Where the log of a server is; by default there is none.
#[derive(Clone, Debug, Default)]
pub struct LogConfig {
    /// A folder of a local disk.
    pub folder: Option<PathBuf>,
    /// Whether it is synced to the disk before each acknowledgement.
    pub is_synced: bool,
    /// Whether the name of the member was given.
    pub is_named: bool,
}

/// The log of this process, if it has one.
#[derive(Clone)]
pub(super) struct ServerLog(Option<Arc<Mutex<WriteAheadLog>>>);

impl ServerLog {
    /// Opens the log. If an earlier process has left one, this process takes its place: its
    /// incarnation and, unless others are given, its name and its port.
    pub(super) fn open(
        config: &LogConfig,
        lanes: u16,
        listen: &mut Vec<Address>,
        member: &mut MemberConfig,
    ) -> Result<Self, Error> {
        let LogConfig { folder, is_synced, is_named } = config;
        let Some(folder) = folder else { return Ok(Self(None)) };
        let log =
            WriteAheadLog::open(folder, lanes, member.incarnation, *is_synced).map_err(Error::process)?;
        (member.incarnation, member.restored) = (log.incarnation(), log.is_restored());
        if let Some(place) = log.place() {
            if !is_named {
                member.name.clone_from(&place.name);
            }
            let has_any_port =
                listen.iter().any(|address| matches!(address, Address::Tcp(place) if place.ends_with(":0")));
            if has_any_port {
                let known = place.listen.iter().map(|text| text.parse::<Address>());
                *listen = known.collect::<Result<_, _>>().map_err(Error::process)?;
            }
        }
        Ok(Self(Some(Arc::new(Mutex::new(log)))))
    }

    pub(super) fn shared(&self) -> Option<Arc<Mutex<WriteAheadLog>>> {
        self.0.clone()
    }

    fn lock(&self) -> Option<MutexGuard<'_, WriteAheadLog>> {
        self.0.as_ref().map(|log| log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records where this process listens. Its Unix socket is not found again: its folder is named after the process.
    pub(super) fn set_place(&self, name: &str, addresses: &[String]) -> Result<(), Error> {
        let Some(mut log) = self.lock() else { return Ok(()) };
        let has_port = addresses.iter().any(|address| address.starts_with("tcp:"));
        let stays = |address: &&String| !has_port || address.starts_with("tcp:");
        let listen = addresses.iter().filter(stays).cloned().collect();
        log.set_place(ProcessPlace { name: name.to_owned(), listen }).map_err(Error::process)
    }

    /// Whether an earlier process has left a log.
    pub(super) fn is_restored(&self) -> bool {
        self.lock().is_some_and(|log| log.is_restored())
    }

    /// Of the jobs in the log only these go on. Before the log is read.
    pub(super) fn set_continued(&self, jobs: Vec<JobId>) {
        if let Some(mut log) = self.lock() {
            log.set_continued(jobs);
        }
    }

    /// Removes the log: this process is not started again.
    pub(super) fn discard(&self) {
        if let Some(log) = self.lock() {
            log.discard();
        }
    }
}
