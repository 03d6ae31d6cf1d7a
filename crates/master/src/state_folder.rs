//! The folder with the records of a master (`master --state DIR`): a folder for each job, in which `job.json` has the
//! submission and `standing.json` where the job stands, and the file `last-id.json`. Each file is replaced as a whole.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rpc::message::JobId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::{EntryKind, LocalFolder, Store};

use crate::error::Error;
use crate::record::{RecordChange, Records, Standing, SubmittedJob};

const LAST_ID: &str = "last-id.json";
const JOBS: &str = "jobs";
const LOCK: &str = "lock";
/// In a store, which has no locks: the last master that has opened the folder.
const OWNER: &str = "owner";

/// The folder, which this process alone uses.
#[derive(Debug)]
pub(crate) struct StateFolder {
    store: Arc<dyn Store>,
    path: PathBuf,
    owner: Owner,
}

/// What keeps two masters from one folder.
#[derive(Debug)]
enum Owner {
    /// Locked as long as this value exists.
    Lock { _file: File },
    /// The text that this master has written as the owner. A master that finds another one has been replaced.
    Text(String),
}

impl StateFolder {
    /// Opens or creates a folder.
    ///
    /// # Errors
    /// If another master uses it, or it cannot be written.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            Error::State(format!("the folder of the state, {}, {what}: {error}", path.display()))
        };
        if let Some(address) = store::address(path) {
            return Self::open_stored(address).map_err(|error| failed("cannot be used", &error));
        }
        std::fs::create_dir_all(path).map_err(|error| failed("cannot be created", &error))?;
        let lock = File::create(path.join(LOCK)).map_err(|error| failed("cannot be written", &error))?;
        if let Err(error) = lock.try_lock() {
            return Err(match error {
                std::fs::TryLockError::WouldBlock => {
                    failed("is in use", &"another master runs with it; each master needs a folder of its own")
                }
                std::fs::TryLockError::Error(error) => failed("cannot be locked", &error),
            });
        }
        let store = LocalFolder::new(path.to_owned(), &path.display().to_string());
        store.remove_unfinished("").map_err(|error| failed("cannot be cleaned", &error))?;
        Ok(Self { store: Arc::new(store), path: path.to_owned(), owner: Owner::Lock { _file: lock } })
    }

    fn open_stored(address: &str) -> Result<Self, store::Error> {
        let store = store::open(address)?;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let own = format!("process {} of {} at {since_1970:?}", std::process::id(), store::machine::host());
        store.write(OWNER, own.as_bytes())?;
        Ok(Self { store, path: address.into(), owner: Owner::Text(own) })
    }

    /// Fails when another master has opened the folder meanwhile.
    fn check_owner(&self) -> Result<(), Error> {
        let Owner::Text(own) = &self.owner else { return Ok(()) };
        let present = self.store.read(OWNER).map_err(|error| self.failed("read", &error))?;
        if present == own.as_bytes() {
            return Ok(());
        }
        let other = String::from_utf8_lossy(&present).into_owned();
        Err(self.failed("written", &format!("another master has taken it over, {other}")))
    }

    /// Reads what an earlier master has recorded. A job without a standing had just been submitted.
    pub(crate) fn load(&self) -> Result<Records, Error> {
        let mut records = Records::default();
        let last = self.list("")?.into_iter().any(|(name, _)| name == LAST_ID);
        if last {
            records.last_id = self.read(LAST_ID)?;
        }
        for (name, kind) in self.list(JOBS)? {
            if kind != EntryKind::Folder {
                continue;
            }
            let folder = format!("{JOBS}/{name}");
            let files: Vec<String> = self.list(&folder)?.into_iter().map(|(name, _)| name).collect();
            if !files.iter().any(|file| file == "job.json") {
                // Its removal was interrupted.
                self.store.remove(&folder).map_err(|error| self.failed("cleaned", &error))?;
                continue;
            }
            let job: SubmittedJob = self.read(&format!("{folder}/job.json"))?;
            let standing = if files.iter().any(|file| file == "standing.json") {
                self.read(&format!("{folder}/standing.json"))?
            } else {
                Standing::queued(job.job)
            };
            records.last_id = records.last_id.max(job.job).max(standing.run);
            records.jobs.push((job, standing));
        }
        records.jobs.sort_by_key(|(job, _)| job.job);
        Ok(records)
    }

    /// Records a change durably.
    pub(crate) fn write(&self, change: &RecordChange) -> Result<(), Error> {
        self.check_owner()?;
        match change {
            RecordChange::Submitted(job) => self.put(&format!("{}/job.json", folder_of(job.job)), job),
            RecordChange::Moved { job, standing } => {
                self.put(&format!("{}/standing.json", folder_of(*job)), standing)
            }
            RecordChange::Forgotten { job } => {
                // The submission goes first: without it, the rest is removed at the next start.
                let folder = folder_of(*job);
                let removed = self.store.remove(&format!("{folder}/job.json"));
                removed
                    .and_then(|()| self.store.remove(&folder))
                    .map_err(|error| self.failed("written", &error))
            }
            RecordChange::LastId { id } => self.put(LAST_ID, id),
        }
    }

    fn put(&self, path: &str, value: &impl Serialize) -> Result<(), Error> {
        let bytes = serde_json::to_vec_pretty(value).map_err(|error| self.failed("written", &error))?;
        self.store.write(path, &bytes).map_err(|error| self.failed("written", &error))
    }

    fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let bytes = self.store.read(path).map_err(|error| self.failed("read", &error))?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Error::State(format!(
                "{} is not what a master of this release has written: {error}. Move it away to start without it",
                self.path.join(path).display()
            ))
        })
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, EntryKind)>, Error> {
        let entries = self.store.list(folder).map_err(|error| self.failed("read", &error))?;
        Ok(entries.into_iter().map(|entry| (entry.name, entry.kind)).collect())
    }

    fn failed(&self, what: &str, error: &dyn std::fmt::Display) -> Error {
        Error::State(format!("the state in {} cannot be {what}: {error}", self.path.display()))
    }
}

fn folder_of(job: JobId) -> String {
    format!("{JOBS}/{job:08}")
}
