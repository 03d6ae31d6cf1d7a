//! Facts about the machine, or the container in it: its cores and memory, and the peak memory of this process.

/// The variable with the bytes of memory that a supervisor gives this process.
pub const MEMORY_VARIABLE: &str = "SERAPHIM_MEMORY_BYTES";
/// Files with the limit of a container, if it has one: of version 2 and of version 1 of control groups.
const CONTAINER_LIMITS: [&str; 2] =
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
/// The default memory limit of kept records is the machine's memory divided by this number.
const MEMORY_SHARE: u64 = 4;
/// Memory to assume when the machine does not report its memory.
const MEMORY_FALLBACK_BYTES: u64 = 1 << 30;

/// Number of cores that this process may use.
pub fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The memory in bytes that this process may use: of the machine, or of its container if that has less; none where the system
/// does not report it.
pub fn memory_bytes() -> Option<u64> {
    let machine = kib_of("/proc/meminfo", "MemTotal:").map(|kib| kib * 1024);
    let container = CONTAINER_LIMITS.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    let given = std::env::var(MEMORY_VARIABLE).ok();
    machine.into_iter().chain(container.chain(given).filter_map(|text| limit_of(&text))).min()
}

/// The bytes of a limit; none if there is no limit (`max`).
fn limit_of(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes > 0)
}

/// A quarter of [`memory_bytes`].
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_of_bytes_or_none() {
        assert_eq!(limit_of("268435456\n"), Some(268_435_456));
        for text in ["max\n", "", "0", "lots"] {
            assert_eq!(limit_of(text), None, "{text}");
        }
        assert!(memory_bytes().is_none_or(|bytes| bytes >= 4 * memory_share()));
    }
}
