//! `cargo xtask wheel`: builds the wheel of the Python package in the dev profile, installs it into an empty environment, and runs its tests,
//! examples and checks of types there. Where something is missing it says so, and does nothing.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::command::{Cmd, is_available};
use crate::metadata;

const BUILDER: &str = "maturin==1.16.0";
const CHECKS: [&str; 1] = ["mypy==2.4.1"];
const INSTALL: [&str; 5] = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];

/// The interpreter of the environment in which the package is installed.
pub(crate) fn interpreter(target: &Path) -> PathBuf {
    target.join("python/bin/python")
}

pub(crate) fn run(root: &Path) -> Result<()> {
    if !is_available("python3", &["-c", "import venv, ensurepip"]) {
        println!("SKIPPED: the tests of python/, because there is no Python 3 with venv here");
        return Ok(());
    }
    let target = metadata::target_folder(root)?;
    let wheel = build(root, &target)?;
    let python = interpreter(&target);
    let environment = target.join("python");
    if environment.exists() {
        fs::remove_dir_all(&environment)?;
    }
    Cmd::new("python3", root).args(["-m", "venv"]).args([&environment]).run()?;
    // Its users need no compiler: only wheels are installed.
    let with_tests = format!("{}[test]", wheel.display());
    Cmd::new(&python, root).args(INSTALL).args(["--only-binary", ":all:", &with_tests]).args(CHECKS).run()?;
    let package = root.join("python");
    Cmd::new(&python, &package.join("tests")).args(["-m", "pytest", "-q"]).run()?;
    Cmd::new(&python, &package).args(["-m", "mypy", "--no-incremental"]).run()
}

/// The wheel, which has no debug information: that would be four fifths of it.
fn build(root: &Path, target: &Path) -> Result<PathBuf> {
    let (environment, wheels) = (target.join("python-build"), target.join("wheels"));
    let python = environment.join("bin/python");
    if !environment.join("complete").exists() {
        Cmd::new("python3", root).args(["-m", "venv"]).args([&environment]).run()?;
        Cmd::new(&python, root).args(INSTALL).args([BUILDER]).run()?;
        fs::write(environment.join("complete"), "")?;
    }
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?;
    }
    let words = ["-m", "maturin", "build", "--quiet", "--profile", "dev", "--strip", "--out"];
    Cmd::new(&python, &root.join("python")).args(words).args([&wheels]).run()?;
    let mut built = fs::read_dir(&wheels)?.filter_map(|entry| Some(entry.ok()?.path()));
    built.next().with_context(|| format!("no wheel in {}", wheels.display()))
}
