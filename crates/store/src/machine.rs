//! The name of the machine, and which processes it has.

/// The name of the machine; empty where the system does not report it.
pub fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Whether this machine has no process of this number, or only a zombie. False where the system does not report it.
pub fn is_dead(process: u32) -> bool {
    let state = |process: &str| {
        let line = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The line is `NUMBER (NAME) STATE ...`, and the name may contain any character.
        line.rsplit_once(") ")?.1.chars().next()
    };
    state("self").is_some() && matches!(state(&process.to_string()), None | Some('Z' | 'X'))
}
