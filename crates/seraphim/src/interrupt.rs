//! Ctrl-C: the first one asks for a stop at the next step, the second one ends the process at once. What is being
//! written aside is known here, so that it is removed, and never half put in place, whenever the end comes. What a process that
//! was killed has left is removed by the next one that writes to the same place on the same machine.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use data::StopFlag;

use crate::error::Error;
use crate::exit::Exit;
use crate::file_identity::{folder_of, rename_no_replace};
use crate::machine;

/// A flag that Ctrl-C (or a termination signal) raises.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    outputs: Arc<Mutex<OutputPaths>>,
}

/// What is being written.
#[derive(Debug, Default)]
struct OutputPaths {
    temp_paths: Vec<PathBuf>,
    saved_paths: Vec<PathBuf>,
    /// What the first Ctrl-C says, and ends the process with.
    exit_message: Option<String>,
    /// What the first Ctrl-C says when the process goes on until it can stop.
    stop_message: Option<&'static str>,
}

/// What the first Ctrl-C says where nothing else was chosen.
const STOP_MESSAGE_DEFAULT: &str = "stopping at the next step; once more ends at once, without saving";

impl Interrupt {
    /// A flag that nobody raises by itself: for tests and embedding.
    pub fn new() -> Self {
        Self::default()
    }

    /// A flag raised by the signals of this process. When the process has a handler already, the flag stays down.
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
        // The only failure is a second handler in one process; then the first one is the one that counts.
        let _ = ctrlc::set_handler(handler);
        interrupt
    }

    /// Raises the flag.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::SeqCst);
    }

    /// Whether somebody asked to stop.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// From now on the first Ctrl-C says this and ends the process: what it waits for is the work of others, and goes on.
    pub fn exit_on_interrupt(&self, farewell: String) {
        self.outputs().exit_message = Some(farewell);
    }

    /// From now on the first Ctrl-C says this.
    pub fn set_stop_message(&self, text: &'static str) {
        self.outputs().stop_message = Some(text);
    }

    /// Ends this process when standard input ends: the process that started it holds the other end.
    pub fn end_with_parent(&self) {
        let own = self.clone();
        std::thread::spawn(move || {
            // Nothing is ever written there; an error is an end as well.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            let work = own.outputs();
            work.temp_paths.iter().for_each(|path| remove(path));
            std::process::exit(Exit::Interrupted as i32);
        });
    }

    /// What ends a wait for standard input: the same flag.
    pub(crate) fn stop_reading(&self) -> StopFlag {
        StopFlag(Arc::clone(&self.raised))
    }

    /// An error when somebody asked to stop; `when` says what was done, after "interrupted".
    pub(crate) fn check(&self, when: &str) -> Result<(), Error> {
        if self.is_raised() { Err(Error::Interrupted { what: when.to_owned() }) } else { Ok(()) }
    }

    /// A file or folder beside `target` for what is not finished yet. What dead processes of this machine have left there is
    /// removed.
    pub fn temp_output(&self, place: &Path) -> TempOutput {
        let path = sibling(place, TEMP);
        remove_stale_siblings(place);
        self.outputs().temp_paths.push(path.clone());
        TempOutput { path, target: place.into(), interrupt: self.clone() }
    }

    fn outputs(&self) -> MutexGuard<'_, OutputPaths> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The second Ctrl-C means now. The lock is held to the end, so that nothing is put in place any more.
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

/// Something that is written beside its place, and removed unless it is put there.
#[derive(Debug)]
pub struct TempOutput {
    path: PathBuf,
    target: PathBuf,
    interrupt: Interrupt,
}

impl TempOutput {
    /// Where to write.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it belongs.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Puts it in its place by `put`; a Ctrl-C comes before that or after it.
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

/// The role of what is being written. When it has changed places with what was there, that is in it.
const TEMP: &str = "part";
/// The role of what is being replaced, where two names cannot change places in one step.
pub(crate) const OLD: &str = "old";
/// The role of what shows whether a place can be written.
pub(crate) const PROBE: &str = "trial";

/// A hidden neighbour of `path`, of this process of this machine alone: `.NAME.ROLE-PROCESS@HOST`.
pub(crate) fn sibling(path: &Path, role: &str) -> PathBuf {
    let (start, end) = (name_before(path, role), machine::host());
    path.with_file_name(format!("{start}{}@{end}", std::process::id()))
}

fn name_before(path: &Path, role: &str) -> String {
    let name = path.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy().into_owned());
    format!(".{name}.{role}-")
}

/// Removes what dead processes of this machine have left beside a place. What was there before goes back when nothing is
/// there now. Those of other machines, who may share the folder, cannot be told from living ones.
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

/// Removes a file or a folder, if it is there.
fn remove(path: &Path) {
    /// The thread that writes may add a file while its folder is being emptied.
    const MAX_ATTEMPTS: usize = 5;
    for _ in 0..MAX_ATTEMPTS {
        // Nobody is left to tell; the worst is a hidden file that stays.
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        if !path.exists() {
            return;
        }
    }
}

/// A word from the signal's thread; nobody may be there to read it.
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
        // Dead, and nobody has asked yet how it ended.
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
