//! Checks that the targets of relative links in Markdown files exist.

use std::path::Path;

use super::Finding;
use crate::tree::TextFile;

pub(super) fn check(root: &Path, files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_markdown()) {
        let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
        for (line, target) in links(&file.text) {
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() && !root.join(folder).join(path).exists() {
                findings.push(Finding::new(
                    format!("{}:{line}", file.path),
                    format!("link {target:?} leads nowhere"),
                ));
            }
        }
    }
    findings
}

/// `(line, target)` of each `[text](target)` outside code blocks that names no scheme.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            let target = &rest[..rest.find([')', ' ']).unwrap_or(rest.len())];
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push((number + 1, target));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_code_and_without_a_scheme() {
        let text = "[a](b.md) [c](https://d.org)\n```\n[x](y.md)\n```\n[e](f.md#g) [h](#i)\n";
        assert_eq!(links(text), [(1, "b.md"), (5, "f.md#g"), (5, "#i")]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let file = TextFile { path: "README.md".into(), text: "[a](no/such/file.md) [b](Cargo.toml)".into() };
        let root = crate::tree::root();
        let findings = check(&root, &[file]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].location, "README.md:1");
    }
}
