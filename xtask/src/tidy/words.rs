//! Text that must not stay: marks of unfinished work, paths of one machine, hosts of package registries.

use super::Finding;
use super::rust_text::blank;
use crate::tree::TextFile;

/// Marks of unfinished work, in any text. They are split in halves, so that this file does not contain them.
const LEFTOVERS: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X")];

/// Macros that must not stay in code.
const LEFTOVER_MACROS: &[&str] =
    &[concat!("db", "g!("), concat!("todo", "!("), concat!("unimplemented", "!(")];

/// Beginnings of absolute paths that exist on one machine only.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Hosts of registries: each machine configures its own.
const REGISTRY_HOSTS: &[&str] = &[
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("pypi.", "org"),
    concat!("files.", "pythonhosted.org"),
    concat!("registry.", "npmjs.org"),
    concat!("artif", "actory"),
];

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    files.iter().flat_map(check_file).collect()
}

fn check_file(file: &TextFile) -> Vec<Finding> {
    let code = if file.is_rust() { blank(&file.text) } else { String::new() };
    let mut findings = Vec::new();
    let mut report = |number: usize, text: String| {
        findings.push(Finding::new(format!("{}:{}", file.path, number + 1), text));
    };
    for (number, line) in code.lines().enumerate() {
        for word in LEFTOVER_MACROS.iter().filter(|word| has_word(line, word)) {
            report(number, format!("{word}..) must not stay"));
        }
    }
    for (number, line) in file.text.lines().enumerate() {
        for word in LEFTOVERS.iter().filter(|word| has_word(line, word)) {
            report(number, format!("{word} must not stay: do it, or open an issue and say why here"));
        }
        for path in MACHINE_PATHS.iter().filter(|path| has_path(line, path)) {
            report(number, format!("{path}... is a path of one machine"));
        }
        for host in REGISTRY_HOSTS.iter().filter(|host| line.contains(**host)) {
            report(
                number,
                format!("{host} is a registry: it is a matter of the machine, not of the project"),
            );
        }
    }
    findings
}

/// Whether `word` occurs as a whole word.
fn has_word(line: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let ends_open = word.ends_with('(');
        !line[..at].ends_with(is_word) && (ends_open || !line[at + word.len()..].starts_with(is_word))
    })
}

/// Whether an absolute path begins there, and not the middle of a longer path or address.
fn has_path(line: &str, path: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || "._-/~*}$".contains(c);
    line.match_indices(path).any(|(at, _)| !line[..at].ends_with(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&[TextFile { path: path.into(), text: text.into() }]).len()
    }

    #[test]
    fn leftovers_are_found_as_words_only() {
        let mark = LEFTOVERS[0];
        assert_eq!(findings("a.rs", &format!("// {mark}: later\n")), 1);
        assert_eq!(findings("a.rs", &format!("// {mark}D\n")), 0);
        assert_eq!(findings("a.rs", &format!("fn f() {{ {}1) }}\n", LEFTOVER_MACROS[0])), 1);
        assert_eq!(findings("a.md", &format!("{}1)\n", LEFTOVER_MACROS[0])), 0);
    }

    #[test]
    fn absolute_paths_of_a_machine_are_found_and_relative_ones_are_not() {
        let path = MACHINE_PATHS[0];
        assert_eq!(findings("a.md", &format!("in `{path}x`\n")), 1);
        assert_eq!(findings("a.md", &format!("https://example.org{path}x and ..{path}x\n")), 0);
    }

    #[test]
    fn registries_are_not_named() {
        assert_eq!(findings("a.toml", &format!("https://{}/simple\n", REGISTRY_HOSTS[2])), 1);
    }
}
