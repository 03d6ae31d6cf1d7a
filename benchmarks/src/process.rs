//! Runs a process on chosen cores, and reads its time and its peak memory from the kernel.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Interval between two polls of child processes. A peak stays readable, so only the end of a process can be missed.
const WATCH_PAUSE: Duration = Duration::from_millis(10);

/// Interval between two polls of the memory of all processes.
const TREE_PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Seconds from start to end.
    pub(crate) wall_s: f64,
    /// User and system seconds of all its threads.
    pub(crate) cpu_s: f64,
    /// Peak resident memory. The kernel counts from the fork on, so it is never below a few megabytes of this process.
    pub(crate) peak_mb: f64,
}

/// Cores that a process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    One,
    Two,
}

impl Cores {
    /// The cores as `taskset -c` takes them.
    fn list(self) -> &'static str {
        match self {
            Self::One => "0",
            Self::Two => "0,1",
        }
    }

    pub(crate) fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

/// A command pinned to cores, without standard input.
pub(crate) fn pinned_command(cores: Cores, program: &Path, arguments: &[OsString]) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", cores.list()]).arg(program).args(arguments).stdin(Stdio::null());
    command
}

/// Runs a program to its end. Its standard output is dropped; its standard error is shown.
pub(crate) fn measure(cores: Cores, program: &Path, arguments: &[OsString]) -> Result<Usage> {
    let mut command = pinned_command(cores, program, arguments);
    command.stdout(Stdio::null()).stderr(Stdio::inherit());
    let start = Instant::now();
    let child = command.spawn().context("cannot start taskset (util-linux)")?;
    let (status, mut usage) = wait(&child)?;
    usage.wall_s = start.elapsed().as_secs_f64();
    if !status.success() {
        bail!("{status}: {} {arguments:?}", program.display());
    }
    Ok(usage)
}

/// Runs a program to its end and polls the processes that it starts with `word` as their first argument. Returns the
/// peak of each in MB.
pub(crate) fn children_peaks(
    cores: Cores,
    program: &Path,
    arguments: &[OsString],
    word: &str,
) -> Result<Vec<f64>> {
    let mut command = pinned_command(cores, program, arguments);
    let mut child = command.stdout(Stdio::null()).spawn().context("cannot start taskset (util-linux)")?;
    let mut peaks = BTreeMap::new();
    loop {
        let status = child.try_wait().context("wait")?;
        for folder in std::fs::read_dir("/proc").context("/proc")?.flatten().map(|entry| entry.path()) {
            // A process may end between two polls.
            if let Some(peak) = peak_of_child(&folder, child.id(), word) {
                peaks.insert(folder, peak);
            }
        }
        match status {
            None => std::thread::sleep(WATCH_PAUSE),
            Some(status) if status.success() => return Ok(peaks.into_values().collect()),
            Some(status) => bail!("{status}: {} {arguments:?}", program.display()),
        }
    }
}

/// Runs a program to its end. Returns the peak of the largest process among it and its children, in MB, at the moment
/// when `is_reached` is true for the first time, and at the end.
pub(crate) fn largest_peaks(
    program: &Path,
    arguments: &[OsString],
    is_reached: impl Fn() -> bool,
) -> Result<[f64; 2]> {
    let mut command = pinned_command(Cores::Two, program, arguments);
    let mut child = command.stdout(Stdio::null()).spawn().context("cannot start taskset (util-linux)")?;
    let (mut before, mut largest) = (None, 0f64);
    loop {
        let status = child.try_wait().context("wait")?;
        let now_reached = is_reached();
        for folder in std::fs::read_dir("/proc").context("/proc")?.flatten().map(|entry| entry.path()) {
            let is_own = folder.ends_with(child.id().to_string());
            let peaks = ["server", "worker"].map(|word| peak_of_child(&folder, child.id(), word));
            let own = is_own.then(|| peak_of(&folder)).flatten();
            largest = peaks.into_iter().flatten().chain(own).fold(largest, f64::max);
        }
        if now_reached {
            before.get_or_insert(largest);
        }
        match status {
            None => std::thread::sleep(WATCH_PAUSE),
            Some(status) if status.success() => {
                return Ok([before.context("the moment was not seen")?, largest]);
            }
            Some(status) => bail!("{status}: {} {arguments:?}", program.display()),
        }
    }
}

/// Runs a program to its end. Returns its standard output, and the largest memory in MB that it and all its descendants
/// had together at one of the polls.
pub(crate) fn tree_output(command: &mut Command) -> Result<(String, f64)> {
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context("cannot start taskset")?;
    let mut stdout = child.stdout.take().context("it is piped")?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let mut largest = 0f64;
    loop {
        let status = child.try_wait().context("wait")?;
        largest = largest.max(tree_memory(child.id()));
        match status {
            None => std::thread::sleep(TREE_PAUSE),
            Some(status) if status.success() => break,
            Some(status) => bail!("{status}: {command:?}"),
        }
    }
    let text = reader.join().map_err(|_| anyhow::anyhow!("the reader of its output has failed"))??;
    Ok((text, largest))
}

/// Resident memory of a process and all its descendants in MB.
fn tree_memory(root: u32) -> f64 {
    let Ok(folders) = std::fs::read_dir("/proc") else { return 0.0 };
    let process = |folder: &Path| {
        let id: u32 = folder.file_name()?.to_str()?.parse().ok()?;
        let status = std::fs::read_to_string(folder.join("status")).ok()?;
        let memory_kb = status_number(&status, "VmRSS:").unwrap_or(0);
        // A process that has ended has no memory.
        Some((id, (status_number(&status, "PPid:")? as u32, kibibytes(memory_kb))))
    };
    let all: BTreeMap<u32, (u32, f64)> =
        folders.flatten().filter_map(|entry| process(&entry.path())).collect();
    let belongs = |mut id: u32| loop {
        match all.get(&id) {
            _ if id == root => return true,
            Some((parent, _)) if *parent != id => id = *parent,
            _ => return false,
        }
    };
    all.iter().filter(|(id, _)| belongs(**id)).map(|(_, (_, memory))| memory).sum()
}

/// Peak resident memory of a process so far in MB.
fn peak_of(folder: &Path) -> Option<f64> {
    let status = std::fs::read_to_string(folder.join("status")).ok()?;
    Some(kibibytes(status_number(&status, "VmHWM:")?))
}

/// A number in the status of a process.
fn status_number(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Converts the KiB in which Linux counts to MB.
fn kibibytes(count: u64) -> f64 {
    count as f64 * 1024.0 / 1e6
}

/// Peak resident memory of a process so far in MB, if it is such a child of `parent`.
fn peak_of_child(folder: &Path, parent: u32, word: &str) -> Option<f64> {
    let read = |name| std::fs::read_to_string(folder.join(name)).ok();
    let is_child = status_number(&read("status")?, "PPid:")? == u64::from(parent)
        && read("cmdline")?.split('\0').nth(1) == Some(word);
    if is_child { peak_of(folder) } else { None }
}

/// Runs a program to its end and returns its standard output.
pub(crate) fn output(cores: Cores, program: &Path, arguments: &[OsString]) -> Result<String> {
    let output = pinned_command(cores, program, arguments).stderr(Stdio::inherit()).output();
    let output = output.context("cannot start taskset (util-linux)")?;
    if !output.status.success() {
        bail!("{}: {} {arguments:?}", output.status, program.display());
    }
    String::from_utf8(output.stdout).context("output is not UTF-8")
}

#[allow(unsafe_code, reason = "std waits without the usage of the child")]
fn wait(child: &Child) -> Result<(ExitStatus, Usage)> {
    let mut status: libc::c_int = 0;
    // SAFETY: `rusage` is plain integers, for which all bits zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let pid = child.id() as libc::pid_t;
    // SAFETY: both pointers are to live, writable values of the types wait4 asks for.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    if waited != pid {
        return Err(std::io::Error::last_os_error()).context("wait4");
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    let cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    let peak_mb = kibibytes(usage.ru_maxrss as u64);
    Ok((ExitStatus::from_raw(status), Usage { wall_s: 0.0, cpu_s, peak_mb }))
}

/// Starts this program again for an inner measurement and returns its JSON.
pub(crate) fn run_child(cores: Cores, words: &[OsString]) -> Result<serde_json::Value> {
    let own = std::env::current_exe().context("where am I")?;
    let mut all = arguments(["inner"]);
    all.extend_from_slice(words);
    serde_json::from_str(&output(cores, &own, &all)?).context("an inner measurement printed no JSON")
}

/// Converts words to arguments.
pub(crate) fn arguments<S: Into<OsString>>(words: impl IntoIterator<Item = S>) -> Vec<OsString> {
    words.into_iter().map(Into::into).collect()
}
