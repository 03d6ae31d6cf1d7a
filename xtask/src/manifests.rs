//! `cargo xtask manifests`: the chart of Kubernetes and the objects of `submit --k8s`, checked without a cluster. Helm comes from `PyPI`, as a
//! library.

use std::path::Path;

use anyhow::Result;

use crate::command::{Cmd, is_available};
use crate::metadata;

const PACKAGES: [&str; 2] = ["helm-python-sdk==0.2.2", "kubernetes-validate==1.37.0"];

/// Runs the checks; with `bless` it writes the goldens of the chart anew.
pub(crate) fn run(root: &Path, bless: bool) -> Result<()> {
    if !is_available("python3", &["-c", "import venv, ensurepip"]) {
        println!("SKIPPED: the checks of the chart, because there is no Python 3 with venv here");
        return Ok(());
    }
    let environment = metadata::target_folder(root)?.join("manifests");
    let python = environment.join("bin/python");
    if !environment.join("complete").exists() {
        Cmd::new("python3", root).args(["-m", "venv"]).args([&environment]).run()?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        Cmd::new(&python, root).args(install).args(PACKAGES).run()?;
        std::fs::write(environment.join("complete"), "")?;
    }
    let words = if bless { &["deploy/helm/check.py", "--bless"][..] } else { &["deploy/helm/check.py"] };
    Cmd::new(&python, root).args(words).run()
}
