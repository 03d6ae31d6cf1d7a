//! Facts about the machine: its name, cores and memory, the peak memory of this process, and which processes exist.

/// The default memory limit of kept records is the machine's memory divided by this number.
const MEMORY_SHARE: u64 = 4;
/// Memory to assume when the machine does not report its memory.
const MEMORY_FALLBACK_BYTES: u64 = 1 << 30;

/// Number of cores that this process may use.
pub(crate) fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The machine's memory in bytes; none where the system does not report it.
pub(crate) fn memory_bytes() -> Option<u64> {
    kib_of("/proc/meminfo", "MemTotal:").map(|kib| kib * 1024)
}

/// A quarter of the machine's memory, in bytes.
pub(crate) fn memory_share() -> u64 {
    memory_bytes().map_or(MEMORY_FALLBACK_BYTES, |bytes| bytes / MEMORY_SHARE)
}

/// Peak resident memory of this process in bytes; none where the system does not report it.
pub(crate) fn peak_memory_bytes() -> Option<u64> {
    kib_of("/proc/self/status", "VmHWM:").map(|kib| kib * 1024)
}

/// The name of the machine; empty where the system does not report it.
pub(crate) fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Whether this machine has no process of this number, or only a zombie. False where the system does not report it.
pub(crate) fn is_dead(process: u32) -> bool {
    let state = |process: &str| {
        let line = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The line is `NUMBER (NAME) STATE ...`, and the name may contain any character.
        line.rsplit_once(") ")?.1.chars().next()
    };
    state("self").is_some() && matches!(state(&process.to_string()), None | Some('Z' | 'X'))
}

fn kib_of(file: &str, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}
