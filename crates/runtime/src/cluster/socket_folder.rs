//! A private folder for the Unix sockets of a process.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use driver::Error;
use rpc::Address;
use store::machine::is_dead;

/// Prefix of the name of a folder; the process number follows.
const NAME_PREFIX: &str = "seraphim-";
/// A younger folder is not removed: its process may be about to lock it.
const MIN_AGE: Duration = Duration::from_secs(10);

/// A folder that only this user can access, removed when it is dropped. Its process keeps a lock on it; when a process
/// was killed, the next process of this user removes its folder.
#[derive(Debug)]
pub struct SocketFolder {
    path: PathBuf,
    /// Never read; the system releases the lock with the process.
    _lock: File,
}

impl SocketFolder {
    /// Creates a folder in the system's temporary folder.
    pub fn new() -> Result<Self, Error> {
        Self::within(&std::env::temp_dir())
    }

    fn within(parent: &Path) -> Result<Self, Error> {
        remove_stale_folders(parent, MIN_AGE);
        let start = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let path = parent.join(format!("{NAME_PREFIX}{}-{:x}", std::process::id(), start.as_nanos()));
        DirBuilder::new().mode(0o700).create(&path).map_err(Error::io("create", &path))?;
        let lock = File::open(&path).map_err(Error::io("open", &path))?;
        // Where folders cannot be locked, only the process number protects the folder.
        let _ = lock.try_lock();
        Ok(Self { path, _lock: lock })
    }

    /// Returns the address of a socket in the folder.
    pub fn socket(&self, name: &str) -> Address {
        Address::Unix(self.path.join(name))
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        // If this fails, the next process removes the folder.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders of processes that ended without removing them: no process of this machine has the number in the
/// name, and no process holds the lock (a process in another container may hold it). Folders of other users cannot be
/// opened and stay.
fn remove_stale_folders(parent: &Path, least_age: Duration) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let process =
            name.to_str().and_then(|name| name.strip_prefix(NAME_PREFIX)?.split_once('-')?.0.parse().ok());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let age = entry.metadata().and_then(|data| data.modified()).ok().and_then(|at| at.elapsed().ok());
        if !is_folder || !process.is_some_and(is_dead) || age.is_none_or(|age| age < least_age) {
            continue;
        }
        if let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
        {
            tracing::debug!(folder = %entry.path().display(), "removing the sockets of a process that has ended");
            // An error is ignored: another process may remove the same folder.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number that no process has.
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
        // The process number was given to another process, but the lock was not.
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
