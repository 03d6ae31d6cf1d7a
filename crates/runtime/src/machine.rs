//! Facts about the machine: its cores and memory, and the peak memory of this process.

/// The default memory limit of kept records is the machine's memory divided by this number.
const MEMORY_SHARE: u64 = 4;
/// Memory to assume when the machine does not report its memory.
const MEMORY_FALLBACK_BYTES: u64 = 1 << 30;

/// Number of cores that this process may use.
pub fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The machine's memory in bytes; none where the system does not report it.
pub fn memory_bytes() -> Option<u64> {
    kib_of("/proc/meminfo", "MemTotal:").map(|kib| kib * 1024)
}

/// A quarter of the machine's memory, in bytes.
pub fn memory_share() -> u64 {
    memory_bytes().map_or(MEMORY_FALLBACK_BYTES, |bytes| bytes / MEMORY_SHARE)
}

/// Peak resident memory of this process in bytes; none where the system does not report it.
pub fn peak_memory_bytes() -> Option<u64> {
    kib_of("/proc/self/status", "VmHWM:").map(|kib| kib * 1024)
}

/// Raises the limit of open files of this process as far as the system allows: each task has a connection to each lane.
pub fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        // Where that is refused, the system says so when a connection needs more.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

fn kib_of(file: &str, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}
