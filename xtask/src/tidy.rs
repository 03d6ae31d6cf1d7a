//! `cargo xtask tidy`: the rules that no compiler checks. Each rule is one file and one function that returns findings.
//! All findings are printed, sorted, before the command fails.

mod circles;
mod dependencies;
mod functions;
mod licences;
mod links;
mod module_docs;
mod packages;
mod product_lines;
mod purity;
mod ratchet;
mod rust_text;
mod tables;
mod value_names;
mod vocabulary;
mod words;

use std::path::Path;

use anyhow::{Result, bail};

use crate::{metadata, tree};

/// A rule that is broken, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// `file`, `file:line` or `package`.
    pub(crate) location: String,
    /// What is wrong and what to do.
    pub(crate) text: String,
}

impl Finding {
    fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { location: place.into(), text: text.into() }
    }
}

/// Runs every rule over the tree below `root` and its packages.
pub(crate) fn run(root: &Path) -> Result<()> {
    let files = tree::text_files(root)?;
    let packages = metadata::packages(root)?;
    let mut findings = Vec::new();
    findings.extend(dependencies::check(&packages));
    findings.extend(licences::check(&packages, &[]));
    findings.extend(packages::check(&packages));
    findings.extend(fuzz_packages(root)?);
    findings.extend(circles::check(&files));
    findings.extend(product_lines::check(&files));
    findings.extend(purity::check(&files));
    findings.extend(module_docs::check(&files));
    findings.extend(ratchet::check(&files));
    findings.extend(value_names::check(&files));
    findings.extend(vocabulary::check(&files));
    findings.extend(words::check(&files));
    findings.extend(links::check(root, &files));
    findings.extend(tables::check(&files));
    findings.sort();
    for finding in &findings {
        println!("{}: {}", finding.location, finding.text);
    }
    if !findings.is_empty() {
        bail!("tidy: {} findings", findings.len());
    }
    println!("tidy: {} files, {} packages, nothing found", files.len(), packages.len());
    println!("tidy: {}", product_lines::summary(&files));
    Ok(())
}

/// Checks the fuzz targets, which are a workspace of their own. One more licence is allowed there (that of libFuzzer,
/// which is not in any release).
fn fuzz_packages(root: &Path) -> Result<Vec<Finding>> {
    let folder = root.join("fuzz");
    if !folder.join("Cargo.toml").is_file() {
        return Ok(Vec::new());
    }
    let packages = metadata::packages_with(&folder, &["--all-features"])?;
    let mut findings = licences::check(&packages, &["NCSA"]);
    findings.extend(packages::check(&packages));
    Ok(findings)
}
