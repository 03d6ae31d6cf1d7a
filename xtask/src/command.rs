//! Runs commands: each is printed before it runs, and a failure is an error.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// A command that is being built.
#[derive(Debug)]
pub(crate) struct Cmd {
    inner: Command,
}

impl Cmd {
    /// A program that runs in `folder`, without standard input.
    pub(crate) fn new(program: impl AsRef<OsStr>, folder: &Path) -> Self {
        let mut inner = Command::new(program);
        inner.current_dir(folder).stdin(Stdio::null());
        Self { inner }
    }

    /// The cargo that runs this program, with arguments split at spaces.
    pub(crate) fn cargo(folder: &Path, words: &str) -> Self {
        Self::new(cargo_path(), folder).args(words.split_whitespace())
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.inner.args(arguments);
        self
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.inner.env(name, value);
        self
    }

    /// The command as one would type it.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in self.inner.get_envs() {
            if let Some(value) = value {
                let _ = write!(text, "{}={:?} ", name.to_string_lossy(), value.to_string_lossy());
            }
        }
        let program = Path::new(self.inner.get_program());
        text.push_str(&program.file_name().unwrap_or(program.as_os_str()).to_string_lossy());
        for argument in self.inner.get_args() {
            let _ = write!(text, " {}", argument.to_string_lossy());
        }
        text
    }

    /// Runs it with the output streams of this process. An error names the command and its exit status.
    pub(crate) fn run(mut self) -> Result<()> {
        let text = self.text();
        println!("$ {text}");
        let status = self.inner.status().with_context(|| format!("cannot start: {text}"))?;
        if !status.success() {
            bail!("failed with {status}: {text}");
        }
        Ok(())
    }

    /// Runs it with the output streams of this process, without printing the command.
    pub(crate) fn run_quietly(mut self) -> Result<()> {
        let status = self.inner.status().with_context(|| format!("cannot start: {}", self.text()))?;
        if !status.success() {
            bail!("failed with {status}");
        }
        Ok(())
    }

    /// Runs it with the output streams of this process and returns its exit status; -1 if a signal ended it.
    pub(crate) fn run_for_code(mut self) -> Result<i32> {
        let text = self.text();
        println!("$ {text}");
        let status = self.inner.status().with_context(|| format!("cannot start: {text}"))?;
        Ok(status.code().unwrap_or(-1))
    }

    /// Runs it without printing the command and returns its standard output.
    pub(crate) fn output(mut self) -> Result<String> {
        let text = self.text();
        let output = self.inner.output().with_context(|| format!("cannot start: {text}"))?;
        if !output.status.success() {
            bail!("failed with {}: {text}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        String::from_utf8(output.stdout).with_context(|| format!("not UTF-8: the output of {text}"))
    }
}

/// Whether a program starts and exits with status 0.
pub(crate) fn is_available(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The cargo that runs this program, or the one in `PATH`.
pub(crate) fn cargo_path() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
