//! `cargo xtask jvm`: builds the Maven project in `jvm/` and runs its tests against the program of the workspace. Without
//! Java or Maven it says so, and does nothing.

use std::path::Path;

use anyhow::Result;

use crate::command::{Cmd, is_available};
use crate::metadata;

/// Builds the program first.
pub(crate) fn build_and_run(root: &Path) -> Result<()> {
    Cmd::cargo(root, "build -p seraphim").run()?;
    run(root)
}

/// Connections that are cut, from more seeds.
pub(crate) fn run_cut_connections(root: &Path) -> Result<()> {
    run_with(root, &["-Dtest=CutConnectionsTest", "-Dsurefire.failIfNoSpecifiedTests=false"], "20")
}

/// Takes the program that is there.
pub(crate) fn run(root: &Path) -> Result<()> {
    run_with(root, &[], "2")
}

fn run_with(root: &Path, more: &[&str], cut_connection_seeds: &str) -> Result<()> {
    for program in ["java", "mvn"] {
        if !is_available(program, &["-version"]) {
            println!("SKIPPED: the tests of jvm/, because there is no {program} here");
            return Ok(());
        }
    }
    let folder = metadata::target_folder(root)?.join("debug");
    let program = format!("-Dseraphim.linux-{}={}", std::env::consts::ARCH, folder.display());
    let words = ["--batch-mode", "--no-transfer-progress", &program, "verify"];
    Cmd::new("mvn", &root.join("jvm"))
        .args(words)
        .args(more)
        .env("SERAPHIM_BIN", folder.join("seraphim"))
        .env("CUT_CONNECTION_SEEDS", cut_connection_seeds)
        .run()
}
