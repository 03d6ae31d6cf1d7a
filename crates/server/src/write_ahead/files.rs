//! The folder of a write-ahead log: the files of each lane, and one that says to which process they belong.
//!
//! What was written survives the death of the process. Unless it is synced, it does not survive that of the machine: after
//! another start of the machine the files do not count.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rpc::message::JobId;
use serde::{Deserialize, Serialize};

use super::folder::{IDENTITY, fault, remove_identity, sync_folder};
use super::lane::{LaneFiles, LoggedLane};
use crate::error::Error;
use crate::state::LaneState;

/// The format of the files.
const FORMAT: u32 = 1;

/// The folder of the log of a server process, which no other process uses at the same time.
#[derive(Debug)]
pub struct WriteAheadLog {
    folder: PathBuf,
    identity: Identity,
    is_restored: bool,
    /// The jobs in the files that go on; none: all of them.
    continued: Option<Vec<JobId>>,
    /// Locked as long as this value exists.
    _lock: File,
}

/// The process to which the files belong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    format: u32,
    /// The incarnation that the process had, and another one that reads the files has too.
    incarnation: u64,
    lanes: u16,
    /// Differs after each start of the machine; empty if the files outlive it.
    boot: String,
    /// Where others look for the process; none before it listens.
    place: Option<ProcessPlace>,
}

/// Where the tasks and the master look for a process after its death.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessPlace {
    /// The name of the member.
    pub name: String,
    /// Addresses of the port of frames.
    pub listen: Vec<String>,
}

impl WriteAheadLog {
    /// Opens a folder, which is made if it is not there. If a process has left a log there that can be read again, its
    /// incarnation counts; if not, `incarnation`. With `is_synced`, changes are on the disk before they are acknowledged.
    pub fn open(folder: &Path, lanes: u16, incarnation: u64, is_synced: bool) -> Result<Self, Error> {
        let fault = |error: io::Error| fault(folder, &error);
        std::fs::create_dir_all(folder).map_err(fault)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join("lock"));
        let lock = lock.map_err(fault)?;
        lock.try_lock().map_err(|_| Error::WriteAheadLog {
            path: folder.to_owned(),
            problem: "another process uses it: give each server a folder of its own".into(),
        })?;
        let boot = if is_synced { String::new() } else { boot() };
        let known = std::fs::read(folder.join(IDENTITY)).ok();
        let known: Option<Identity> = known.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let usable =
            known.filter(|known| known.format == FORMAT && known.lanes == lanes && known.boot == boot);
        let is_restored = usable.is_some();
        let new = Identity { format: FORMAT, incarnation, lanes, boot, place: None };
        let (identity, continued) = (usable.unwrap_or(new), None);
        let log = Self { folder: folder.to_owned(), identity, is_restored, continued, _lock: lock };
        if !is_restored {
            log.discard();
            log.write_identity().map_err(fault)?;
        }
        Ok(log)
    }

    /// The incarnation of the state in the files.
    pub fn incarnation(&self) -> u64 {
        self.identity.incarnation
    }

    /// Whether each change is on the disk before it is acknowledged.
    fn is_synced(&self) -> bool {
        self.identity.boot.is_empty()
    }

    /// Whether the files are those of an earlier process.
    pub fn is_restored(&self) -> bool {
        self.is_restored
    }

    /// Where the earlier process was.
    pub fn place(&self) -> Option<&ProcessPlace> {
        self.identity.place.as_ref()
    }

    /// Records where this process is.
    pub fn set_place(&mut self, place: ProcessPlace) -> Result<(), Error> {
        if self.identity.place.as_ref() == Some(&place) {
            return Ok(());
        }
        self.identity.place = Some(place);
        self.write_identity().map_err(|error| fault(&self.folder, &error))
    }

    /// Of the jobs in the files only these go on: the others have ended, or have other runs, since the earlier process has
    /// died. Before the lanes are restored.
    pub fn set_continued(&mut self, jobs: Vec<JobId>) {
        self.continued = Some(jobs);
    }

    /// Makes the lanes what they were, without the jobs that do not go on, and lets them record what changes. If that is not possible the files are removed:
    /// the next process begins without them.
    pub(crate) fn restore(&self, lanes: Vec<LaneState>) -> Result<Vec<LoggedLane>, Error> {
        let start = Instant::now();
        let restored: Result<Vec<LoggedLane>, Error> = std::thread::scope(|scope| {
            let restore = |lane| scope.spawn(|| LoggedLane::restore(lane, &self.folder, self.is_synced()));
            let threads: Vec<_> = lanes.into_iter().map(restore).collect();
            let joined = threads.into_iter().map(|thread| thread.join().expect("a panic ends the process"));
            joined.collect()
        });
        let mut restored = restored;
        for lane in restored.iter_mut().flatten() {
            self.continued.iter().for_each(|jobs| lane.close_others(jobs));
        }
        match &restored {
            Ok(lanes) if self.is_restored => {
                let changes: u64 = lanes.iter().map(|lane| lane.restored_count).sum();
                let bytes: u64 = lanes.iter().map(|lane| lane.restored_bytes).sum();
                let seconds = start.elapsed().as_secs_f64();
                tracing::warn!(
                    changes,
                    bytes,
                    seconds,
                    "this server has read its write-ahead log and goes on"
                );
            }
            Ok(_) => {}
            Err(_) => self.discard(),
        }
        restored
    }

    /// Removes the files of the log.
    pub fn discard(&self) {
        // Without the identity, what is left of the other files does not count.
        remove_identity(&self.folder);
        for lane in 0..self.identity.lanes {
            LaneFiles { folder: &self.folder, lane }.remove_all();
        }
    }

    fn write_identity(&self) -> io::Result<()> {
        let bytes = serde_json::to_vec(&self.identity).map_err(io::Error::other)?;
        let temporary = self.folder.join(".identity");
        std::fs::write(&temporary, bytes)?;
        if self.is_synced() {
            File::open(&temporary)?.sync_all()?;
        }
        std::fs::rename(temporary, self.folder.join(IDENTITY))?;
        if self.is_synced() { sync_folder(&self.folder) } else { Ok(()) }
    }
}

/// What identifies this start of the machine.
fn boot() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    read.map(|text| text.trim().to_owned()).unwrap_or_default()
}
