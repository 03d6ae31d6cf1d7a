//! Exit codes, which scripts may rely on. `docs/exit-codes.md` has the same table.

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    Done = 0,
    /// A fault of the program itself.
    Internal = 1,
    /// The command line, the job file or a parameter is wrong.
    Usage = 2,
    /// The data are wrong: a bad line, no records, one class only.
    Data = 3,
    /// The model directory is damaged, of another version, or does not fit the request.
    Model = 4,
    /// Reading or writing failed: no such file, no permission, disk full.
    Io = 5,
    /// The user stopped the command by Ctrl-C or a termination signal; an earlier message lists what was saved.
    Interrupted = 130,
}

/// Every exit code with its meaning, for the help text.
pub const TABLE: &[(Exit, &str)] = &[
    (Exit::Done, "done"),
    (Exit::Internal, "a fault of the program itself"),
    (Exit::Usage, "the command line, the job file or a parameter is wrong"),
    (Exit::Data, "the data are wrong: a bad line, no records, one class only"),
    (Exit::Model, "the model directory is damaged, of another version, or does not fit"),
    (Exit::Io, "reading or writing failed"),
    (Exit::Interrupted, "stopped by Ctrl-C; an earlier message lists what was saved"),
];

impl Exit {
    /// Returns the exit with a code that another process sent; [`Exit::Internal`] when no exit has that code.
    pub fn from_code(code: u8) -> Self {
        TABLE.iter().map(|row| row.0).find(|exit| *exit as u8 == code).unwrap_or(Self::Internal)
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
