//! State machines of jobs do no IO: files of the crates `job` and `driver` name nothing that reads a file, opens a socket,
//! starts a thread or looks at a clock. The command line uses the crate `engine` and names none below it.

use super::Finding;
use super::rust_text::product_code;
use crate::tree::TextFile;

/// The folders that are held.
const PURE: &[&str] = &["crates/job/src/", "crates/driver/src/"];

/// What may not be named there, also by an import.
const FORBIDDEN: &[&str] = &[
    "std::fs",
    "std::io",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime",
    "data::Source",
    "data::Reader",
    "data::TaskData",
    "model::ModelFiles",
    "model::ModelClaim",
    "model::write",
    "model::read_manifest",
    "checkpoint::Folder",
    "checkpoint::folder",
    "rpc::transport",
    "rpc::serve",
];

/// Plain values of modules that do IO.
const ALLOWED: &[&str] = &["std::io::Error", "std::process::ExitCode"];

/// The crates below `engine`, which the command line does not name.
const BELOW_ENGINE: &[&str] = &[
    "algo",
    "checkpoint",
    "control",
    "data",
    "driver",
    "families",
    "job",
    "master",
    "math",
    "matrix",
    "member",
    "model",
    "rpc",
    "runtime",
    "server",
    "store",
    "worker",
];

fn check_command_line(file: &TextFile) -> Vec<Finding> {
    let code = product_code(&file.text);
    let imports = code.lines().enumerate().filter_map(|(number, line)| {
        let name = line.trim_start().strip_prefix("use ")?.split("::").next()?;
        BELOW_ENGINE.contains(&name).then(|| {
            let text = format!("{name}: the command line uses the crate engine and none below it");
            Finding::new(format!("{}:{}", file.path, number + 1), text)
        })
    });
    imports.collect()
}

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let is_pure =
        |file: &&TextFile| file.is_product() && PURE.iter().any(|folder| file.path.starts_with(folder));
    let is_command_line =
        |file: &&TextFile| file.is_product() && file.path.starts_with("crates/seraphim/src/");
    let of_command_line = files.iter().filter(is_command_line).flat_map(check_command_line);
    files.iter().filter(is_pure).flat_map(check_file).chain(of_command_line).collect()
}

fn check_file(file: &TextFile) -> Vec<Finding> {
    let code = product_code(&file.text);
    let mut findings = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let (first, rest) = line.trim_start().split_once("::{").unwrap_or(("", ""));
        let imported = |name: &&str| {
            let base = first.trim_start_matches("pub ").trim_start_matches("use ");
            name.rsplit_once("::").is_some_and(|(module, item)| {
                module == base && rest.split([',', '}', ' ', ':']).any(|word| word == item)
            })
        };
        let line = ALLOWED.iter().fold(line.to_owned(), |line, name| line.replace(name, ""));
        for name in FORBIDDEN.iter().filter(|name| line.contains(**name) || imported(name)) {
            let place = format!("{}:{}", file.path, number + 1);
            findings
                .push(Finding::new(place, format!("{name}: this crate does no IO; give it what it needs")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&[TextFile { path: path.into(), text: text.into() }]).len()
    }

    #[test]
    fn a_state_machine_that_does_io_is_found() {
        let path = "crates/driver/src/a.rs";
        for text in [
            "use std::fs::File;",
            "let now = Instant::now();",
            "use data::{Batch, Source};",
            "std::fs::read(x)",
        ] {
            assert_eq!(count(path, text), 1, "{text}");
            assert_eq!(count("crates/runtime/src/a.rs", text), 0, "{text}");
        }
        for text in
            ["// std::fs", "use std::time::Instant;", "use data::{Batch, Schema};", "std::process::ExitCode"]
        {
            assert_eq!(count(path, text), 0, "{text}");
        }
    }
}
