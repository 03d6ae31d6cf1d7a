//! The program of which servers and workers of this machine are processes.

use std::path::PathBuf;
use std::process::Command;

use driver::Error;

/// A program that starts processes of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// None: the file of this process.
    path: Option<PathBuf>,
    /// What comes before the arguments of a command.
    arguments: Vec<String>,
}

/// The program that runs.
pub static THIS_PROGRAM: Program = Program { path: None, arguments: Vec::new() };

impl Program {
    /// A program with the commands of this one, as an interpreter that runs it.
    pub fn new(path: impl Into<PathBuf>, arguments: Vec<String>) -> Self {
        Self { path: Some(path.into()), arguments }
    }

    /// A command of the program.
    ///
    /// # Errors
    /// If the system does not tell the file of this process.
    pub fn command(&self) -> Result<(PathBuf, Command), Error> {
        let path = match &self.path {
            Some(path) => path.clone(),
            None => std::env::current_exe().map_err(Error::io("find", "this program"))?,
        };
        let mut command = Command::new(&path);
        command.args(&self.arguments);
        Ok((path, command))
    }
}
