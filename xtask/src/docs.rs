//! `cargo xtask docs`: runs the code blocks of README.md, `docs/` and `examples/` that are marked `run`.
//!
//! It executes blocks that begin with ```` ```sh run ```` or ```` ```python run ````. The blocks of one document run in
//! order and in one folder: a fresh copy of the files of the project, which blocks may change. `seraphim` is the binary
//! of the dev profile. `cargo run --release -- ...` runs the same binary, so nothing is built for it. A Python block is
//! skipped with a message if a module that it imports is missing (the interpreter is that of `cargo xtask wheel`, if
//! there is one; else `PYTHON` names it, default `python3`).

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::command::{Cmd, is_available};
use crate::{ci, metadata, tree, wheel};

/// What to do with pages that are generated from the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageMode {
    /// Check that they are what the program prints.
    Check,
    /// Write them again.
    Bless,
}

/// A page that is generated from the code: a heading, then the output of `seraphim ARGUMENTS`.
struct GeneratedPage {
    page: &'static str,
    heading: &'static str,
    arguments: &'static [&'static str],
}

const GENERATED: &[GeneratedPage] = &[GeneratedPage {
    page: "docs/parameters.md",
    heading: "# Parameters\n\nMade by `cargo xtask docs --bless` from `seraphim algorithms --markdown`; do not edit.\n\n",
    arguments: &["algorithms", "--markdown"],
}];

/// Precedes the real cargo in `PATH` and runs the built binary for `cargo run --release -- ...`.
const CARGO_SHIM: &str = r#"#!/bin/sh
if [ "$1 $2 $3" = "run --release --" ]; then shift 3; exec seraphim "$@"; fi
echo "only 'cargo run --release -- ...' is run from the docs, not: cargo $*" >&2
exit 1
"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Shell,
    Python,
}

#[derive(Debug, PartialEq, Eq)]
struct Block {
    language: Language,
    line: usize,
    code: String,
}

/// Runs all blocks of all documents, and checks or writes the generated pages.
pub(crate) fn run(root: &Path, pages: PageMode) -> Result<()> {
    ci::build(root)?;
    let target = metadata::target_folder(root)?;
    let bin = target.join("debug");
    for row in GENERATED {
        check_page(root, &bin, row, pages)?;
    }
    if pages == PageMode::Bless {
        return Ok(());
    }
    let scratch = target.join("docs-run");
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch).with_context(|| format!("cannot remove {}", scratch.display()))?;
    }
    let path = search_path(bin, &scratch)?;
    let (mut run_count, mut skip_count) = (0usize, 0usize);
    for file in tree::text_files(root)?.iter().filter(|file| file.is_markdown()) {
        let blocks = blocks(&file.text).with_context(|| file.path.clone())?;
        if blocks.is_empty() {
            continue;
        }
        let folder = scratch.join(file.path.replace('/', "_"));
        copy_project(root, &folder)?;
        for block in blocks {
            println!("\n-- {}:{}", file.path, block.line);
            let ran = run_block(&block, &folder, &path);
            let ran = ran.with_context(|| format!("block at {}:{}", file.path, block.line))?;
            *(if ran { &mut run_count } else { &mut skip_count }) += 1;
        }
    }
    println!("docs: {run_count} blocks ran, {skip_count} skipped");
    Ok(())
}

fn check_page(root: &Path, bin: &Path, row: &GeneratedPage, pages: PageMode) -> Result<()> {
    let printed = Cmd::new(bin.join("seraphim"), root).args(row.arguments).output()?;
    let wanted = format!("{}{}\n", row.heading, printed.trim_end());
    let path = root.join(row.page);
    if pages == PageMode::Bless {
        return std::fs::write(&path, wanted).with_context(|| format!("cannot write {}", row.page));
    }
    if std::fs::read_to_string(&path).ok().as_ref() != Some(&wanted) {
        bail!(
            "{} is not what `seraphim {}` prints: run cargo xtask docs --bless",
            row.page,
            row.arguments.join(" ")
        );
    }
    Ok(())
}

/// `PATH` with the shim and the built binary first.
fn search_path(bin: PathBuf, scratch: &Path) -> Result<std::ffi::OsString> {
    let front = scratch.join("bin");
    std::fs::create_dir_all(&front)?;
    let shim = front.join("cargo");
    std::fs::write(&shim, CARGO_SHIM)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&shim, std::fs::Permissions::from_mode(0o755))?;
    }
    let old = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = vec![front, bin];
    folders.extend(std::env::split_paths(&old));
    std::env::join_paths(folders).context("a folder of the search path holds a separator")
}

fn copy_project(root: &Path, folder: &Path) -> Result<()> {
    for path in tree::paths(root)? {
        let to: PathBuf = folder.join(&path);
        std::fs::create_dir_all(to.parent().unwrap_or(folder))?;
        std::fs::copy(root.join(&path), &to).with_context(|| format!("cannot copy {path}"))?;
    }
    Ok(())
}

/// Runs a block. Returns false if it was skipped.
fn run_block(block: &Block, folder: &Path, path: &std::ffi::OsStr) -> Result<bool> {
    for line in block.code.lines() {
        println!("   {line}");
    }
    let python = python();
    let command = match block.language {
        Language::Shell => Cmd::new("bash", folder).args(["-euo", "pipefail", "-c", &block.code]),
        Language::Python => {
            let names: Vec<&str> = modules(&block.code).collect();
            let import =
                if names.is_empty() { String::new() } else { format!("import {}", names.join(", ")) };
            if !is_available(&python, &["-c", &import]) {
                println!("skipped: {python} with these modules is not there: {import:?}");
                return Ok(false);
            }
            Cmd::new(python, folder).args(["-c", &block.code])
        }
    };
    command.env("PATH", path).run_quietly()?;
    Ok(true)
}

/// The interpreter with the package of this project, if it was built; else `PYTHON`, or `python3`.
fn python() -> String {
    let target = std::env::current_dir().map(|root| metadata::target_folder(&root));
    let installed = target.ok().and_then(Result::ok).map(|target| wheel::interpreter(&target));
    match installed.filter(|python| python.exists()) {
        Some(python) => python.display().to_string(),
        None => std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned()),
    }
}

/// Modules that Python code imports: the first word after `import` or `from`.
fn modules(code: &str) -> impl Iterator<Item = &str> {
    code.lines()
        .filter_map(|line| line.strip_prefix("import ").or_else(|| line.strip_prefix("from ")))
        .flat_map(|rest| rest.split(" import ").next().unwrap_or_default().split(','))
        .filter_map(|part| part.split_whitespace().next())
}

/// The blocks of a document that are marked `run`.
fn blocks(text: &str) -> Result<Vec<Block>> {
    let mut found = Vec::new();
    let mut open: Option<Option<Block>> = None;
    for (number, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => {
                let language = match info.split_whitespace().collect::<Vec<_>>().as_slice() {
                    ["sh", "run"] => Some(Language::Shell),
                    ["python", "run"] => Some(Language::Python),
                    words if words.contains(&"run") => bail!("line {}: cannot run {info:?}", number + 1),
                    _ => None,
                };
                open =
                    Some(language.map(|language| Block { language, line: number + 1, code: String::new() }));
            }
            (Some(_), Some("")) => found.extend(open.take().flatten()),
            (Some(Some(block)), _) => {
                block.code.push_str(line);
                block.code.push('\n');
            }
            _ => {}
        }
    }
    if open.is_some() {
        bail!("the last code block is not closed");
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_marked_run_are_taken() {
        let text = "```sh run\na\nb\n```\n```sh\nc\n```\n```python run\nimport numpy\n```\n";
        let found = blocks(text).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].line, found[0].code.as_str()), (1, "a\nb\n"));
        assert_eq!(found[1].language, Language::Python);
    }

    #[test]
    fn a_block_left_open_or_in_an_unknown_language_is_an_error() {
        assert!(blocks("```sh run\na\n").is_err());
        assert!(blocks("```fish run\na\n```\n").is_err());
    }

    #[test]
    fn modules_are_the_first_words_of_imports() {
        let code = "import json, numpy as np\nfrom safetensors.numpy import load_file\nx = 1\n";
        assert_eq!(modules(code).collect::<Vec<_>>(), ["json", "numpy", "safetensors.numpy"]);
    }
}
