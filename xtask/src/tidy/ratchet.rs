//! Lengths of files and functions: a limit for all, and a list of exceptions, each with a number that may only
//! decrease.

use super::Finding;
use super::functions::functions;
use crate::tree::TextFile;

/// Longest file, in lines.
const FILE_LIMIT: usize = 500;

/// Longest function, in lines.
const FUNCTION_LIMIT: usize = 70;

/// Files above the limit: path and number of lines. The number may only decrease.
const LONG_FILES: &[(&str, usize)] = &[];

/// Functions above the limit: path, name and number of lines.
const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[];

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let listed = LONG_FILES.iter().find(|(path, _)| *path == file.path).map(|row| row.1);
        let length = file.text.lines().count();
        findings.extend(check_length(&file.path, "file", length, FILE_LIMIT, listed));
        for function in functions(&file.text) {
            let row =
                LONG_FUNCTIONS.iter().find(|(path, name, _)| *path == file.path && *name == function.name);
            let place = format!("{}:{}", file.path, function.line);
            let what = format!("function {}", function.name);
            findings.extend(check_length(
                &place,
                &what,
                function.length,
                FUNCTION_LIMIT,
                row.map(|row| row.2),
            ));
        }
    }
    let gone = LONG_FILES.iter().filter(|(path, _)| !files.iter().any(|file| file.path == *path));
    findings.extend(gone.map(|(path, _)| Finding::new(*path, "is gone: remove its row in ratchet.rs")));
    findings
}

fn check_length(
    place: &str,
    what: &str,
    length: usize,
    limit: usize,
    listed: Option<usize>,
) -> Option<Finding> {
    let text = match listed {
        None if length <= limit => return None,
        None => format!("{what} has {length} lines, the limit is {limit}: cut it by concern"),
        Some(_) if length <= limit => format!("{what} has {length} lines: remove its row in ratchet.rs"),
        Some(number) if length > number => format!("{what} grew from {number} to {length} lines"),
        Some(number) if length < number => format!("{what} has {length} lines: lower {number} in ratchet.rs"),
        Some(_) => return None,
    };
    Some(Finding::new(place, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_length_may_only_fall_and_the_list_must_follow() {
        assert_eq!(check_length("f", "file", 500, 500, None), None);
        assert!(check_length("f", "file", 501, 500, None).is_some());
        assert_eq!(check_length("f", "file", 600, 500, Some(600)), None);
        assert!(check_length("f", "file", 601, 500, Some(600)).is_some_and(|f| f.text.contains("grew")));
        assert!(check_length("f", "file", 599, 500, Some(600)).is_some_and(|f| f.text.contains("lower")));
        assert!(check_length("f", "file", 400, 500, Some(600)).is_some_and(|f| f.text.contains("remove")));
    }
}
