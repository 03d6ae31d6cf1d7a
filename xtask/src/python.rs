//! `cargo xtask python`: builds the wheel of the Python package with the jars of `jvm/`, installs it into an environment of
//! its own, and runs its tests. Where something is missing it says so, and does nothing.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::command::{Cmd, is_available};
use crate::metadata;

/// Where `cargo xtask jvm` leaves the jar that the package needs.
const JARS: &str = "jvm/spark/target";

/// The environment, in the folder of the build.
const ENVIRONMENT: &str = "python-package";

/// The interpreter of the environment in which the package is installed.
pub(crate) fn interpreter(target: &Path) -> PathBuf {
    target.join(ENVIRONMENT).join("bin/python")
}

pub(crate) fn run(root: &Path) -> Result<()> {
    let target = metadata::target_folder(root)?;
    let (environment, python) = (target.join(ENVIRONMENT), interpreter(&target));
    if let Some(missing) = missing(root, &environment, &python) {
        println!("SKIPPED: the tests of python/spark/, because {missing}");
        return Ok(());
    }
    Cmd::new("sh", root)
        .args(["python/spark/test.sh"])
        .env("PYTHON", python)
        .env("SERAPHIM_BIN", target.join("debug/seraphim"))
        .run()
}

/// Makes the environment. Returns what is missing for the tests.
fn missing(root: &Path, environment: &Path, python: &Path) -> Option<&'static str> {
    if !is_available("java", &["-version"]) {
        return Some("there is no java here");
    }
    let is_jar = |entry: std::fs::DirEntry| entry.path().extension().is_some_and(|ending| ending == "jar");
    if !root.join(JARS).read_dir().is_ok_and(|files| files.flatten().any(is_jar)) {
        return Some("jvm/ is not built: run `cargo xtask jvm` before");
    }
    let pip = ["-m", "pip", "--version"];
    if !is_available(&python.to_string_lossy(), &pip) {
        let created = Cmd::new("python3", root).args(["-m", "venv"]).args([environment]).run();
        if created.is_err() || !is_available(&python.to_string_lossy(), &pip) {
            return Some("there is no Python 3 with venv and pip here");
        }
    }
    None
}
