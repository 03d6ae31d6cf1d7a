//! What the machine offers: cores, memory, and how much of it this process took.

/// Share of the machine's memory for kept records, unless said otherwise.
const MEMORY_SHARE: u64 = 4;
/// Taken when the machine does not say how much memory it has.
const MEMORY_FALLBACK_BYTES: u64 = 1 << 30;

/// Cores that this process may use.
pub(crate) fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A quarter of the machine's memory, in bytes.
pub(crate) fn memory_share() -> u64 {
    kib_of("/proc/meminfo", "MemTotal:").map_or(MEMORY_FALLBACK_BYTES, |kib| kib * 1024 / MEMORY_SHARE)
}

/// The most memory this process ever had resident, in bytes; none where the system does not say.
pub(crate) fn peak_memory_bytes() -> Option<u64> {
    kib_of("/proc/self/status", "VmHWM:").map(|kib| kib * 1024)
}

fn kib_of(file: &str, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}
