//! The text files of the project: what git tracks, and what it would track.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::command::Cmd;

#[derive(Debug)]
pub(crate) struct TextFile {
    /// Path from the root, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl TextFile {
    pub(crate) fn is_rust(&self) -> bool {
        self.extension() == Some("rs")
    }

    pub(crate) fn is_markdown(&self) -> bool {
        self.extension() == Some("md")
    }

    /// Whether it is Rust that users run: of a crate, and no test.
    pub(crate) fn is_product(&self) -> bool {
        let is_test = |part: &str| part == "tests" || part == "tests.rs" || part.ends_with("_tests.rs");
        self.is_rust()
            && self.path.starts_with("crates/")
            && self.path.contains("/src/")
            && !self.path.split('/').any(is_test)
    }

    fn extension(&self) -> Option<&str> {
        Path::new(&self.path).extension()?.to_str()
    }
}

/// The root folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("the folder of this crate lies in the workspace").to_path_buf()
}

/// Paths of all files that git tracks or would track, sorted.
pub(crate) fn paths(root: &Path) -> Result<Vec<String>> {
    let listing = Cmd::new("git", root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .context("the file list comes from git: run this in a clone")?;
    let mut paths: Vec<String> = listing.split('\0').filter(|p| !p.is_empty()).map(str::to_owned).collect();
    paths.retain(|path| root.join(path).is_file());
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// All files that are text.
pub(crate) fn text_files(root: &Path) -> Result<Vec<TextFile>> {
    let mut files = Vec::new();
    for path in paths(root)? {
        let bytes = std::fs::read(root.join(&path)).with_context(|| format!("cannot read {path}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(TextFile { path, text });
        }
    }
    Ok(files)
}
