//! Ctrl-C: the first one asks for a stop at the next step, the second one ends the process at once. What is being
//! written aside is known here, so that it is removed, and never half put in place, whenever the end comes. What a process that
//! was killed has left is removed by the next one that writes to the same place on the same machine.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use data::StopReading;

use crate::error::Error;
use crate::exit::Exit;
use crate::machine;
use crate::place::{folder_of, put_new};

/// A flag that Ctrl-C (or a termination signal) raises.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    work: Arc<Mutex<Work>>,
}

/// What is being written.
#[derive(Debug, Default)]
struct Work {
    unfinished: Vec<PathBuf>,
    saved: Vec<PathBuf>,
    /// What the first Ctrl-C says, and ends the process with.
    farewell: Option<String>,
    /// What the first Ctrl-C says when the process goes on until it can stop.
    stopping: Option<&'static str>,
}

/// What the first Ctrl-C says where nothing else was chosen.
const STOPPING: &str = "stopping at the next step; once more ends at once, without saving";

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
            if let Some(farewell) = &raised.work().farewell {
                say(farewell);
                std::process::exit(Exit::Interrupted as i32);
            }
            if raised.raised.swap(true, Ordering::SeqCst) {
                raised.end_now();
            }
            let stopping = raised.work().stopping.unwrap_or(STOPPING);
            say(stopping);
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
    pub fn end_with(&self, farewell: String) {
        self.work().farewell = Some(farewell);
    }

    /// From now on the first Ctrl-C says this.
    pub fn say_on_stop(&self, text: &'static str) {
        self.work().stopping = Some(text);
    }

    /// Ends this process when standard input ends: the process that started it holds the other end.
    pub fn end_with_parent(&self) {
        let own = self.clone();
        std::thread::spawn(move || {
            // Nothing is ever written there; an error is an end as well.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            let work = own.work();
            work.unfinished.iter().for_each(|path| remove(path));
            std::process::exit(Exit::Interrupted as i32);
        });
    }

    /// What ends a wait for standard input: the same flag.
    pub(crate) fn stop_reading(&self) -> StopReading {
        StopReading(Arc::clone(&self.raised))
    }

    /// An error when somebody asked to stop; `when` says what was done, after "interrupted".
    pub(crate) fn check(&self, when: &str) -> Result<(), Error> {
        if self.is_raised() { Err(Error::Interrupted { what: when.to_owned() }) } else { Ok(()) }
    }

    /// A file or folder beside `place` for what is not finished yet. What dead processes of this machine have left there is
    /// removed.
    pub fn unfinished(&self, place: &Path) -> Unfinished {
        let path = sibling(place, PART);
        sweep(place);
        self.work().unfinished.push(path.clone());
        Unfinished { path, place: place.into(), interrupt: self.clone() }
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The second Ctrl-C means now. The lock is held to the end, so that nothing is put in place any more.
    fn end_now(&self) {
        let work = self.work();
        for path in &work.unfinished {
            remove(path);
        }
        say(&match &work.saved[..] {
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
pub struct Unfinished {
    path: PathBuf,
    place: PathBuf,
    interrupt: Interrupt,
}

impl Unfinished {
    /// Where to write.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it belongs.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Puts it in its place by `put`; a Ctrl-C comes before that or after it.
    pub fn finish(self, put: impl FnOnce(&Path, &Path) -> Result<(), Error>) -> Result<(), Error> {
        let mut work = self.interrupt.work();
        put(&self.path, &self.place)?;
        work.saved.push(self.place.clone());
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.interrupt.work().unfinished.retain(|path| *path != self.path);
        remove(&self.path);
    }
}

/// The role of what is being written. When it has changed places with what was there, that is in it.
const PART: &str = "part";
/// The role of what is being replaced, where two names cannot change places in one step.
pub(crate) const OLD: &str = "old";
/// The role of what shows whether a place can be written.
pub(crate) const TRIAL: &str = "trial";

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
fn sweep(place: &Path) {
    let end = format!("@{}", machine::host());
    for role in [OLD, PART, TRIAL] {
        let start = name_before(place, role);
        let Ok(entries) = std::fs::read_dir(folder_of(place)) else { return };
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name();
            let process = name.to_str().and_then(|name| name.strip_prefix(&start)?.strip_suffix(&end));
            if process.and_then(|process| process.parse().ok()).is_some_and(machine::is_dead) {
                let is_back = role == OLD && put_new(&entry.path(), place).is_ok();
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
    const TRIES: usize = 5;
    for _ in 0..TRIES {
        // Nobody is left to tell; the worst is a hidden file that stays.
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        if !path.exists() {
            return;
        }
    }
}

/// A word from the signal's thread; nobody may be there to read it.
fn say(text: &str) {
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
        let unfinished = interrupt.unfinished(&place);
        std::fs::create_dir(unfinished.path()).unwrap();
        std::fs::write(unfinished.path().join("file"), "half").unwrap();
        assert_eq!(interrupt.work().unfinished.len(), 1);
        drop(unfinished);
        assert_eq!(interrupt.work().unfinished.len(), 0);
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
            name("out", PART, living, &host),
            name("out", PART, dead, "elsewhere"),
            name("other", PART, dead, &host),
            format!(".out.part-x@{host}"),
        ];
        std::fs::write(&place, "new").unwrap();
        let left = [PART, OLD, TRIAL].map(|role| name("out", role, dead, &host));
        for name in others.iter().chain(&left) {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("file"), "half").unwrap();
        }
        drop(Interrupt::new().unfinished(&place));
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
        drop(Interrupt::new().unfinished(&place));
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
        drop(Interrupt::new().unfinished(&place));
        assert_eq!(std::fs::read_to_string(place.join("file")).unwrap(), "before");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_finished_stays_and_is_known_as_saved() {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = Interrupt::new();
        let place = folder.path().join("out");
        let unfinished = interrupt.unfinished(&place);
        std::fs::write(unfinished.path(), "whole").unwrap();
        unfinished.finish(|from, to| std::fs::rename(from, to).map_err(Error::io("write", to))).unwrap();
        assert_eq!(std::fs::read_to_string(&place).unwrap(), "whole");
        assert_eq!(interrupt.work().saved, [place]);
    }
}
