//! A place for the sockets of this machine.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rpc::Address;

use crate::error::Error;
use crate::machine;

/// How the name of a folder begins; the number of its process follows.
const NAME_PREFIX: &str = "seraphim-";
/// A folder younger than this is left alone: its process may be about to lock it.
const MIN_AGE: Duration = Duration::from_secs(10);

/// A folder that only this user can enter, removed when it is dropped. Its process holds a lock on it as long as it lives; the
/// folder of a process that was killed is removed by the next one of this user.
#[derive(Debug)]
pub struct SocketFolder {
    path: PathBuf,
    /// Held, never read: the system gives it back with the process.
    _lock: File,
}

impl SocketFolder {
    /// A new one in the system's temporary folder.
    pub fn new() -> Result<Self, Error> {
        Self::within(&std::env::temp_dir())
    }

    fn within(parent: &Path) -> Result<Self, Error> {
        remove_stale_folders(parent, MIN_AGE);
        let start = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let path = parent.join(format!("{NAME_PREFIX}{}-{:x}", std::process::id(), start.as_nanos()));
        DirBuilder::new().mode(0o700).create(&path).map_err(Error::io("create", &path))?;
        let lock = File::open(&path).map_err(Error::io("open", &path))?;
        // Where folders cannot be locked, only the number of the process protects it.
        let _ = lock.try_lock();
        Ok(Self { path, _lock: lock })
    }

    /// The address of a socket in it.
    pub fn socket(&self, name: &str) -> Address {
        Address::Unix(self.path.join(name))
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        // What is left in the system's temporary folder is removed by the next process.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders of processes that have ended without doing so: no process of this machine has the number in their name,
/// and nobody holds their lock, which a process in another container does. Those of other users cannot be opened.
fn remove_stale_folders(parent: &Path, least_age: Duration) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let process =
            name.to_str().and_then(|name| name.strip_prefix(NAME_PREFIX)?.split_once('-')?.0.parse().ok());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let age = entry.metadata().and_then(|data| data.modified()).ok().and_then(|at| at.elapsed().ok());
        if !is_folder || !process.is_some_and(machine::is_dead) || age.is_none_or(|age| age < least_age) {
            continue;
        }
        if let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
        {
            tracing::debug!(folder = %entry.path().display(), "the sockets of a dead process are removed");
            // Another process may be doing the same.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No process has it.
    const DEAD: u32 = u32::MAX;

    fn make(parent: &Path, name: &str) -> PathBuf {
        let path = parent.join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("socket"), "").unwrap();
        path
    }

    #[test]
    fn the_folders_of_dead_processes_are_removed_and_no_others() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        let dead = make(parent, &format!("{NAME_PREFIX}{DEAD}-1f"));
        // The number was given to another process, the lock was not.
        let locked = make(parent, &format!("{NAME_PREFIX}{DEAD}-2f"));
        let lock = File::open(&locked).unwrap();
        lock.try_lock().unwrap();
        let others = [
            make(parent, &format!("{NAME_PREFIX}{}-1f", std::process::id())),
            make(parent, "seraphim-x-1f"),
            make(parent, &format!("other-{DEAD}-1f")),
            locked.clone(),
        ];
        remove_stale_folders(parent, MIN_AGE);
        assert!(dead.exists(), "it may be about to be locked");
        remove_stale_folders(parent, Duration::ZERO);
        assert!(!dead.exists());
        for other in &others {
            assert!(other.join("socket").exists(), "{}", other.display());
        }
        drop(lock);
        remove_stale_folders(parent, Duration::ZERO);
        assert!(!locked.exists());
        let own = SocketFolder::within(parent).unwrap();
        remove_stale_folders(parent, Duration::ZERO);
        assert!(own.path.exists());
        let path = own.path.clone();
        drop(own);
        assert!(!path.exists());
    }
}
