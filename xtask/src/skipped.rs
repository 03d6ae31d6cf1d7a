//! Tests that were skipped because something is missing on this machine. Each test writes itself to a file, and ci
//! names all of them in its last line.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::metadata;

/// The variable that contains the path of the file; see `crates/seraphim/tests/program/common/skip.rs`.
pub(crate) const VARIABLE: &str = "SERAPHIM_SKIPPED";

/// Path of the file. It has one line per skipped test: its name, a tab and the reason.
pub(crate) fn file(root: &Path) -> Result<PathBuf> {
    Ok(metadata::target_folder(root)?.join("skipped.txt"))
}

/// Clears the file.
pub(crate) fn clear(root: &Path) -> Result<()> {
    let path = file(root)?;
    std::fs::create_dir_all(path.parent().unwrap_or(root))?;
    std::fs::write(&path, "").with_context(|| format!("cannot write {}", path.display()))
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SkippedTests {
    /// Names of tests, sorted, each once.
    tests: Vec<String>,
    /// Reasons, sorted, each once.
    reasons: Vec<String>,
}

impl SkippedTests {
    /// Reads the tests that were skipped since the file was cleared.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let path = file(root)?;
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let lines = || text.lines().filter_map(|line| line.split_once('\t'));
        let mut skipped = Self {
            tests: lines().map(|(name, _)| name.to_owned()).collect(),
            reasons: lines().map(|(_, reason)| reason.to_owned()).collect(),
        };
        for list in [&mut skipped.tests, &mut skipped.reasons] {
            list.sort();
            list.dedup();
        }
        skipped
    }

    /// Text for the last line of ci; empty if no test was skipped.
    pub(crate) fn text(&self) -> String {
        match self.tests.len() {
            0 => String::new(),
            1 => format!("; SKIPPED: 1 test, {}", self.tests[0]),
            count => format!("; SKIPPED: {count} tests, {}", self.tests.join(", ")),
        }
    }

    /// Returns an error if a test was skipped.
    pub(crate) fn fail_if_any(&self) -> Result<()> {
        let (tests, reasons) = (self.tests.join(", "), self.reasons.join("; "));
        ensure!(self.tests.is_empty(), "tests were skipped: {tests}. The reason: {reasons}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_were_skipped_are_counted_once_and_named() {
        let skipped = SkippedTests::parse("b\tno data\na\tno target\nb\tno other data\n");
        assert_eq!(skipped.text(), "; SKIPPED: 2 tests, a, b");
        let error = skipped.fail_if_any().unwrap_err().to_string();
        assert_eq!(error, "tests were skipped: a, b. The reason: no data; no other data; no target");
        assert_eq!(SkippedTests::parse("a\tno data\n").text(), "; SKIPPED: 1 test, a");
        assert_eq!(SkippedTests::parse("").text(), "");
        SkippedTests::parse("").fail_if_any().unwrap();
    }
}
