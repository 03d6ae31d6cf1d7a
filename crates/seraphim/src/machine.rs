//! What the machine offers: cores, memory, and how much of it this process took; its name and its processes.

/// Share of the machine's memory for kept records, unless said otherwise.
const MEMORY_SHARE: u64 = 4;
/// Taken when the machine does not say how much memory it has.
const MEMORY_FALLBACK_BYTES: u64 = 1 << 30;

/// Cores that this process may use.
pub(crate) fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The machine's memory, in bytes; none where the system does not say.
pub(crate) fn memory_bytes() -> Option<u64> {
    kib_of("/proc/meminfo", "MemTotal:").map(|kib| kib * 1024)
}

/// A quarter of the machine's memory, in bytes.
pub(crate) fn memory_share() -> u64 {
    memory_bytes().map_or(MEMORY_FALLBACK_BYTES, |bytes| bytes / MEMORY_SHARE)
}

/// The most memory this process ever had resident, in bytes; none where the system does not say.
pub(crate) fn peak_memory_bytes() -> Option<u64> {
    kib_of("/proc/self/status", "VmHWM:").map(|kib| kib * 1024)
}

/// The name of the machine; empty where the system does not say.
pub(crate) fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Whether this machine has no such process, or one that has ended and is not yet waited for. No, where it does not say.
pub(crate) fn is_dead(process: u32) -> bool {
    let state = |process: &str| {
        let line = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // NUMBER (NAME) STATE ..., where the name may hold anything.
        line.rsplit_once(") ")?.1.chars().next()
    };
    state("self").is_some() && matches!(state(&process.to_string()), None | Some('Z' | 'X'))
}

fn kib_of(file: &str, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}
