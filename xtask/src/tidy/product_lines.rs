//! Lines of product code, without tests: of all crates, and the share of the largest one, which has a limit.

use std::collections::BTreeMap;

use super::Finding;
use super::rust_text::before_tests;
use crate::tree::TextFile;

/// Largest share of one crate, in percent.
const SHARE_LIMIT: usize = 16;

/// The number of lines of each crate.
fn by_crate(files: &[TextFile]) -> BTreeMap<&str, usize> {
    let mut lines = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_product()) {
        let name = file.path.split('/').nth(1).unwrap_or_default();
        *lines.entry(name).or_default() += before_tests(&file.text).lines().count();
    }
    lines
}

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let lines = by_crate(files);
    let total: usize = lines.values().sum();
    let large = lines.iter().filter(|(_, count)| **count * 100 > total * SHARE_LIMIT);
    large
        .map(|(name, count)| {
            let text =
                format!("has {count} of {total} lines of product code, more than {SHARE_LIMIT} %: divide it");
            Finding::new(*name, text)
        })
        .collect()
}

/// What the command prints.
pub(super) fn summary(files: &[TextFile]) -> String {
    let lines = by_crate(files);
    let total: usize = lines.values().sum();
    let largest = lines.iter().max_by_key(|(_, count)| **count);
    let (name, count) = largest.map_or(("", 0), |(name, count)| (*name, *count));
    let tenths = 1000 * count / total.max(1);
    format!(
        "{total} lines of product code, the largest crate is {name} with {}.{} %",
        tenths / 10,
        tenths % 10
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, lines: usize) -> TextFile {
        TextFile { path: path.into(), text: "let x = 1;\n".repeat(lines) }
    }

    #[test]
    fn a_crate_that_is_too_large_is_found() {
        let mut files: Vec<TextFile> =
            (0..10).map(|i| file(&format!("crates/c{i}/src/lib.rs"), 10)).collect();
        assert!(check(&files).is_empty());
        files.push(file("crates/c3/src/more.rs", 30));
        files.push(file("crates/c4/src/tests.rs", 100));
        let findings = check(&files);
        assert!(findings.len() == 1 && findings[0].text.contains("40 of 130"), "{findings:?}");
    }
}
