//! Temporary outputs: they are written beside their targets and then renamed, so that no target ever has half of an
//! output. [`TempOutputs`] knows all of them, so that a process can remove them at any time. When a process was killed,
//! the next process of the same machine that writes to the same target removes its temporary outputs.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::address::address;
use crate::file_identity::{folder_of, rename_no_replace, resolve_link};
use crate::machine;

/// The temporary and the saved outputs of a run. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct TempOutputs(Arc<Mutex<OutputPaths>>);

/// The paths of temporary and of saved outputs.
#[derive(Debug, Default)]
pub struct OutputPaths {
    temp_paths: Vec<PathBuf>,
    saved_paths: Vec<PathBuf>,
}

impl OutputPaths {
    /// Removes all temporary outputs from the disk.
    pub fn remove_temp(&self) {
        for path in &self.temp_paths {
            remove(path);
        }
    }

    /// The targets of the outputs that were persisted, in their order.
    pub fn saved_paths(&self) -> &[PathBuf] {
        &self.saved_paths
    }
}

impl TempOutputs {
    /// Creates a temporary output beside its target. It first removes the temporary outputs that dead processes of this
    /// machine left there.
    pub fn temp_output(&self, place: &Path) -> TempOutput {
        self.create(place, sibling(&local(place), TEMP))
    }

    /// Like [`Self::temp_output`], for one of several jobs of this process that may write to the same target.
    pub fn temp_output_of_job(&self, place: &Path, job: u32) -> TempOutput {
        self.create(place, sibling_with(&local(place), TEMP, &format!(".{job}")))
    }

    /// Creates a folder for the logs of the servers of a training beside its model.
    pub fn log_folder(&self, place: &Path) -> TempOutput {
        let place = &*resolve_link(place);
        self.create(place, sibling(&local(place), LOG))
    }

    /// Removes a path from the disk when the process ends at once.
    pub fn add(&self, path: &Path) {
        self.lock().temp_paths.push(path.to_owned());
    }

    pub fn forget(&self, path: &Path) {
        self.lock().temp_paths.retain(|other| other != path);
    }

    fn create(&self, place: &Path, path: PathBuf) -> TempOutput {
        remove_stale_siblings(&local(place));
        self.add(&path);
        TempOutput { path, target: place.into(), outputs: self.clone() }
    }

    /// Returns the paths. No output is persisted until the guard is dropped, so a process that removes its temporary
    /// outputs and ends holds the guard until then.
    pub fn lock(&self) -> MutexGuard<'_, OutputPaths> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The path beside which an output is written: its target, or for one in a store a path in the folder for temporary files.
fn local(target: &Path) -> Cow<'_, Path> {
    match address(target) {
        Some(_) => std::env::temp_dir().join(target.file_name().unwrap_or_default()).into(),
        None => target.into(),
    }
}

/// A file or folder that is written beside its target; dropping it removes it unless it was persisted.
#[derive(Debug)]
pub struct TempOutput {
    path: PathBuf,
    target: PathBuf,
    outputs: TempOutputs,
}

impl TempOutput {
    /// The path to write to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path to which [`Self::persist`] moves the output.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// What an error names: the target, or the path to write to if the target is in a store and this machine is at fault.
    pub fn shown(&self) -> &Path {
        if address(&self.target).is_some() { &self.path } else { &self.target }
    }

    /// Moves the output to its target by `put`. An end of the process that waits for [`TempOutputs::lock`] takes effect
    /// before or after the move, never within it.
    pub fn persist<E>(self, put: impl FnOnce(&Path, &Path) -> Result<(), E>) -> Result<(), E> {
        let mut work = self.outputs.lock();
        put(&self.path, &self.target)?;
        work.saved_paths.push(self.target.clone());
        Ok(())
    }
}

impl Drop for TempOutput {
    fn drop(&mut self) {
        self.outputs.forget(&self.path);
        remove(&self.path);
    }
}

/// The role of a temporary output. After an exchange of names it contains what the output replaced.
const TEMP: &str = "part";
/// The role of what is being replaced, on systems that cannot exchange two names in one step.
pub const OLD: &str = "old";
/// The role of a file that tests whether a path can be written.
pub const PROBE: &str = "trial";

/// The role of the logs of the servers of a training.
const LOG: &str = "write-ahead";

/// Returns a hidden path beside `path` that is unique to this process of this machine: `.NAME.ROLE-PROCESS@HOST`.
pub fn sibling(path: &Path, role: &str) -> PathBuf {
    sibling_with(path, role, "")
}

/// The same with a suffix of the number of the process: `.NAME.ROLE-PROCESS.JOB@HOST`.
fn sibling_with(path: &Path, role: &str, suffix: &str) -> PathBuf {
    let (start, end) = (name_before(path, role), machine::host());
    path.with_file_name(format!("{start}{}{suffix}@{end}", std::process::id()))
}

fn name_before(path: &Path, role: &str) -> String {
    let name = path.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy().into_owned());
    format!(".{name}.{role}-")
}

/// Removes what dead processes of this machine left beside a target; a replaced output moves back when nothing is at
/// the target now. Files of other machines that share the folder stay, because their processes may be alive.
pub fn remove_stale_siblings(place: &Path) {
    let end = format!("@{}", machine::host());
    for role in [OLD, TEMP, PROBE, LOG] {
        let start = name_before(place, role);
        let Ok(entries) = std::fs::read_dir(folder_of(place)) else { return };
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name();
            let process = name.to_str().and_then(|name| name.strip_prefix(&start)?.strip_suffix(&end));
            let number = process.and_then(|process| process.split('.').next());
            if number.and_then(|number| number.parse().ok()).is_some_and(machine::is_dead) {
                let is_back = role == OLD && rename_no_replace(&entry.path(), place).is_ok();
                if !is_back {
                    remove(&entry.path());
                }
            }
        }
    }
}

/// Removes a file or a folder, if it exists.
fn remove(path: &Path) {
    /// Another thread may add a file while the folder is being emptied.
    const MAX_ATTEMPTS: usize = 5;
    for _ in 0..MAX_ATTEMPTS {
        // Errors are ignored, since at worst a hidden file remains.
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        if !path.exists() {
            return;
        }
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finished_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let outputs = TempOutputs::default();
        let place = folder.path().join("out");
        let unfinished = outputs.temp_output(&place);
        std::fs::create_dir(unfinished.path()).unwrap();
        std::fs::write(unfinished.path().join("file"), "half").unwrap();
        assert_eq!(outputs.lock().temp_paths.len(), 1);
        drop(unfinished);
        assert_eq!(outputs.lock().temp_paths.len(), 0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_dead_process_was_writing_to_the_same_place_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let (living, dead, place) = (child.id(), u32::MAX, folder.path().join("out"));
        let host = machine::host();
        let name =
            |place: &str, role: &str, process: u32, host: &str| format!(".{place}.{role}-{process}@{host}");
        let others = [
            name("out", TEMP, living, &host),
            name("out", TEMP, dead, "elsewhere"),
            name("other", TEMP, dead, &host),
            format!(".out.part-x@{host}"),
        ];
        std::fs::write(&place, "new").unwrap();
        let mut left = [TEMP, OLD, PROBE, LOG].map(|role| name("out", role, dead, &host)).to_vec();
        left.push(format!(".out.{TEMP}-{dead}.7@{host}"));
        for name in others.iter().chain(&left) {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("file"), "half").unwrap();
        }
        drop(TempOutputs::default().temp_output(&place));
        for name in left {
            assert!(!folder.path().join(&name).exists(), "{name}");
        }
        for name in &others {
            assert!(folder.path().join(name).join("file").exists(), "{name}");
        }
        // The process is dead, but its parent has not yet waited for it.
        child.kill().unwrap();
        while !machine::is_dead(living) {
            std::thread::yield_now();
        }
        drop(TempOutputs::default().temp_output(&place));
        assert!(!folder.path().join(&others[0]).exists());
        child.wait().unwrap();
    }

    #[test]
    fn jobs_of_one_process_do_not_share_an_output_that_is_not_finished() {
        let folder = tempfile::tempdir().unwrap();
        let (outputs, place) = (TempOutputs::default(), folder.path().join("out"));
        let both = [1, 2].map(|job| outputs.temp_output_of_job(&place, job));
        for output in &both {
            std::fs::create_dir(output.path()).unwrap();
        }
        let [first, second] = both;
        drop(first);
        drop(outputs.temp_output(&place));
        assert!(second.path().is_dir());
        drop(second);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_dead_process_was_replacing_goes_back_when_nothing_is_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("out");
        let old = folder.path().join(format!(".out.{OLD}-{}@{}", u32::MAX, machine::host()));
        std::fs::create_dir(&old).unwrap();
        std::fs::write(old.join("file"), "before").unwrap();
        drop(TempOutputs::default().temp_output(&place));
        assert_eq!(std::fs::read_to_string(place.join("file")).unwrap(), "before");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_finished_stays_and_is_known_as_saved() {
        let folder = tempfile::tempdir().unwrap();
        let outputs = TempOutputs::default();
        let place = folder.path().join("out");
        let unfinished = outputs.temp_output(&place);
        std::fs::write(unfinished.path(), "whole").unwrap();
        unfinished.persist(|from, to| std::fs::rename(from, to)).unwrap();
        assert_eq!(std::fs::read_to_string(&place).unwrap(), "whole");
        assert_eq!(outputs.lock().saved_paths(), [place]);
    }
}
