//! Ctrl-C: the first one asks the run to stop at the next step, the second one ends the process at once. [`Interrupt`]
//! knows all temporary outputs, so that an end at any time removes them and never leaves half of an output at its
//! target. When a process was killed, the next process of the same machine that writes to the same target removes its
//! temporary outputs.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use data::StopFlag;

use crate::error::Error;
use crate::exit::Exit;
use crate::file_identity::{folder_of, rename_no_replace};
use crate::machine;

/// A flag that Ctrl-C or a termination signal raises.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    outputs: Arc<Mutex<OutputPaths>>,
}

/// The paths of temporary and of saved outputs, and the messages of Ctrl-C.
#[derive(Debug, Default)]
struct OutputPaths {
    temp_paths: Vec<PathBuf>,
    saved_paths: Vec<PathBuf>,
    /// If set, the first Ctrl-C prints this message and ends the process.
    exit_message: Option<String>,
    /// The message of the first Ctrl-C when the process continues until it can stop.
    stop_message: Option<&'static str>,
}

/// The default message of the first Ctrl-C.
const STOP_MESSAGE_DEFAULT: &str =
    "stopping at the next step; press Ctrl-C again to end at once, without saving";

impl Interrupt {
    /// Creates a flag that no signal raises, for tests and embedding programs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a flag that the signals of this process raise. If the process already has a handler, no signal raises
    /// the flag.
    pub fn install() -> Self {
        let interrupt = Self::new();
        let raised = interrupt.clone();
        let handler = move || {
            if let Some(farewell) = &raised.outputs().exit_message {
                write_stderr(farewell);
                std::process::exit(Exit::Interrupted as i32);
            }
            if raised.raised.swap(true, Ordering::SeqCst) {
                raised.end_now();
            }
            let stopping = raised.outputs().stop_message.unwrap_or(STOP_MESSAGE_DEFAULT);
            write_stderr(stopping);
        };
        // The only error is a second handler in one process; then the first handler stays in force.
        let _ = ctrlc::set_handler(handler);
        interrupt
    }

    pub fn raise(&self) {
        self.raised.store(true, Ordering::SeqCst);
    }

    /// Whether the user asked the run to stop.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Makes the first Ctrl-C print `farewell` and end the process: the work that the process waits for is done by
    /// other processes and continues.
    pub fn exit_on_interrupt(&self, farewell: String) {
        self.outputs().exit_message = Some(farewell);
    }

    /// Sets the message of the first Ctrl-C.
    pub fn set_stop_message(&self, text: &'static str) {
        self.outputs().stop_message = Some(text);
    }

    /// Ends this process when standard input ends, since the parent process holds the other end of it.
    pub fn end_with_parent(&self) {
        let own = self.clone();
        std::thread::spawn(move || {
            // The parent never writes to it, and a read error counts as an end too.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            let work = own.outputs();
            work.temp_paths.iter().for_each(|path| remove(path));
            std::process::exit(Exit::Interrupted as i32);
        });
    }

    /// Returns the same flag in the type that ends a wait for standard input.
    pub(crate) fn stop_reading(&self) -> StopFlag {
        StopFlag(Arc::clone(&self.raised))
    }

    /// Returns an error if the user asked to stop; `when` follows "interrupted: " in its text.
    pub(crate) fn check(&self, when: &str) -> Result<(), Error> {
        if self.is_raised() { Err(Error::Interrupted { what: when.to_owned() }) } else { Ok(()) }
    }

    /// Creates a temporary output beside its target. It first removes the temporary outputs that dead processes of this
    /// machine left there.
    pub fn temp_output(&self, place: &Path) -> TempOutput {
        let path = sibling(place, TEMP);
        remove_stale_siblings(place);
        self.outputs().temp_paths.push(path.clone());
        TempOutput { path, target: place.into(), interrupt: self.clone() }
    }

    fn outputs(&self) -> MutexGuard<'_, OutputPaths> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The second Ctrl-C. The lock is held until the process ends, so that no output is persisted any more.
    fn end_now(&self) {
        let work = self.outputs();
        for path in &work.temp_paths {
            remove(path);
        }
        write_stderr(&match &work.saved_paths[..] {
            [] => "ended at once; nothing was saved".to_owned(),
            saved => {
                let names: Vec<String> = saved.iter().map(|path| path.display().to_string()).collect();
                format!("ended at once; saved before that: {}", names.join(", "))
            }
        });
        std::process::exit(Exit::Interrupted as i32);
    }
}

/// A file or folder that is written beside its target; dropping it removes it unless it was persisted.
#[derive(Debug)]
pub struct TempOutput {
    path: PathBuf,
    target: PathBuf,
    interrupt: Interrupt,
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

    /// Moves the output to its target by `put`; a Ctrl-C takes effect before or after the move, never within it.
    pub fn persist(self, put: impl FnOnce(&Path, &Path) -> Result<(), Error>) -> Result<(), Error> {
        let mut work = self.interrupt.outputs();
        put(&self.path, &self.target)?;
        work.saved_paths.push(self.target.clone());
        Ok(())
    }
}

impl Drop for TempOutput {
    fn drop(&mut self) {
        self.interrupt.outputs().temp_paths.retain(|path| *path != self.path);
        remove(&self.path);
    }
}

/// The role of a temporary output. After an exchange of names it contains what the output replaced.
const TEMP: &str = "part";
/// The role of what is being replaced, on systems that cannot exchange two names in one step.
pub(crate) const OLD: &str = "old";
/// The role of a file that tests whether a path can be written.
pub(crate) const PROBE: &str = "trial";

/// Returns a hidden path beside `path` that is unique to this process of this machine: `.NAME.ROLE-PROCESS@HOST`.
pub(crate) fn sibling(path: &Path, role: &str) -> PathBuf {
    let (start, end) = (name_before(path, role), machine::host());
    path.with_file_name(format!("{start}{}@{end}", std::process::id()))
}

fn name_before(path: &Path, role: &str) -> String {
    let name = path.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy().into_owned());
    format!(".{name}.{role}-")
}

/// Removes what dead processes of this machine left beside a target; a replaced output moves back when nothing is at
/// the target now. Files of other machines that share the folder stay, because their processes may be alive.
fn remove_stale_siblings(place: &Path) {
    let end = format!("@{}", machine::host());
    for role in [OLD, TEMP, PROBE] {
        let start = name_before(place, role);
        let Ok(entries) = std::fs::read_dir(folder_of(place)) else { return };
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name();
            let process = name.to_str().and_then(|name| name.strip_prefix(&start)?.strip_suffix(&end));
            if process.and_then(|process| process.parse().ok()).is_some_and(machine::is_dead) {
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

/// Writes a message from the signal thread; an error is ignored, since nobody may read it.
fn write_stderr(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "\n{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finished_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = Interrupt::new();
        let place = folder.path().join("out");
        let unfinished = interrupt.temp_output(&place);
        std::fs::create_dir(unfinished.path()).unwrap();
        std::fs::write(unfinished.path().join("file"), "half").unwrap();
        assert_eq!(interrupt.outputs().temp_paths.len(), 1);
        drop(unfinished);
        assert_eq!(interrupt.outputs().temp_paths.len(), 0);
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
        let left = [TEMP, OLD, PROBE].map(|role| name("out", role, dead, &host));
        for name in others.iter().chain(&left) {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("file"), "half").unwrap();
        }
        drop(Interrupt::new().temp_output(&place));
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
        drop(Interrupt::new().temp_output(&place));
        assert!(!folder.path().join(&others[0]).exists());
        child.wait().unwrap();
    }

    #[test]
    fn what_a_dead_process_was_replacing_goes_back_when_nothing_is_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("out");
        let old = folder.path().join(format!(".out.{OLD}-{}@{}", u32::MAX, machine::host()));
        std::fs::create_dir(&old).unwrap();
        std::fs::write(old.join("file"), "before").unwrap();
        drop(Interrupt::new().temp_output(&place));
        assert_eq!(std::fs::read_to_string(place.join("file")).unwrap(), "before");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_finished_stays_and_is_known_as_saved() {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = Interrupt::new();
        let place = folder.path().join("out");
        let unfinished = interrupt.temp_output(&place);
        std::fs::write(unfinished.path(), "whole").unwrap();
        unfinished.persist(|from, to| std::fs::rename(from, to).map_err(Error::io("write", to))).unwrap();
        assert_eq!(std::fs::read_to_string(&place).unwrap(), "whole");
        assert_eq!(interrupt.outputs().saved_paths, [place]);
    }
}
