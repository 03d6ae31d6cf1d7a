//! Files that import each other in a circle: such files can only be understood together. A limit for each crate, which
//! may only decrease.
//!
//! Read are the imports of product code (`use`, and paths that begin with `crate`, `self` or `super`). A name counts for
//! the file that defines it, also if another one hands it on.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::rust_text::product_code;
use crate::tree::TextFile;

/// Number of circles of each crate that has some.
const CIRCLES: &[(&str, usize)] = &[("data", 1), ("matrix", 2), ("runtime", 1), ("server", 1), ("worker", 1)];

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (folder, crate_files) in by_crate(files) {
        let name = folder.rsplit('/').nth(1).unwrap_or(folder);
        let limit = CIRCLES.iter().find(|(listed, _)| *listed == name).map_or(0, |row| row.1);
        let circles = circles(folder, &crate_files);
        if circles.len() == limit {
            continue;
        }
        let list: Vec<String> = circles.iter().map(|circle| circle.join(", ")).collect();
        let (count, list) = (circles.len(), list.join("; "));
        let text =
            format!("{count} circles of files, listed are {limit} (xtask/src/tidy/circles.rs): {list}");
        findings.push(Finding::new(folder, text));
    }
    findings
}

/// The Rust files of each crate, by its folder `.../src`.
fn by_crate(files: &[TextFile]) -> BTreeMap<&str, Vec<&TextFile>> {
    let mut crates: BTreeMap<&str, Vec<&TextFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_product()) {
        let end = file.path.find("/src/").map_or(0, |at| at + "/src".len());
        crates.entry(&file.path[..end]).or_default().push(file);
    }
    crates
}

/// A module and what it hands on.
struct Module {
    file: usize,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// The imports, each a path and the name that it has here.
    imports: Vec<(Vec<String>, String)>,
    /// The names of its items.
    items: BTreeSet<String>,
}

/// Returns the circles of a crate, each with its files in order.
fn circles(folder: &str, files: &[&TextFile]) -> Vec<Vec<String>> {
    let modules = modules(folder, files);
    let arrows: Vec<BTreeSet<usize>> = (0..modules.len()).map(|module| targets(&modules, module)).collect();
    let mut found: BTreeSet<Vec<usize>> = BTreeSet::new();
    for module in 0..modules.len() {
        let reached = reachable(&arrows, module);
        if reached.contains(&module) {
            found.insert(
                reached.into_iter().filter(|other| reachable(&arrows, *other).contains(&module)).collect(),
            );
        }
    }
    let path = |module: &usize| files[modules[*module].file].path[folder.len() + 1..].to_owned();
    found.iter().map(|circle| circle.iter().map(path).collect()).collect()
}

fn reachable(arrows: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        open.extend(arrows[module].iter().filter(|target| reached.insert(**target)));
    }
    reached
}

fn modules(folder: &str, files: &[&TextFile]) -> Vec<Module> {
    let mut modules: Vec<Module> = Vec::new();
    let mut by_path: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for (file, text) in files.iter().enumerate() {
        let inner = text.path[folder.len() + 1..].trim_end_matches(".rs");
        let mut path: Vec<String> = inner.split('/').map(str::to_owned).collect();
        if ["mod", "lib", "main"].contains(&path.last().map_or("", String::as_str)) {
            path.pop();
        }
        by_path.insert(path, modules.len());
        let code = product_code(&text.text);
        let (imports, items) = (imports(&code), items(&code));
        modules.push(Module { file, parent: None, children: BTreeMap::new(), imports, items });
    }
    for (path, module) in &by_path {
        let Some((name, above)) = path.split_last() else { continue };
        if let Some(parent) = by_path.get(above) {
            modules[*module].parent = Some(*parent);
            modules[*parent].children.insert(name.clone(), *module);
        }
    }
    modules
}

/// The modules that a module takes names from.
fn targets(modules: &[Module], module: usize) -> BTreeSet<usize> {
    let own = modules[module].imports.iter();
    own.filter_map(|(path, _)| resolve(modules, module, path, 0)).filter(|target| *target != module).collect()
}

/// The module that defines what a path names; none for a path into another crate.
fn resolve(modules: &[Module], from: usize, path: &[String], depth: usize) -> Option<usize> {
    /// More steps than any name is handed on.
    const DEPTH: usize = 16;
    let (first, mut rest) = path.split_first()?;
    let mut module = match first.as_str() {
        "crate" => (0..modules.len()).find(|at| modules[*at].parent.is_none())?,
        "self" => from,
        "super" => modules[from].parent?,
        name => *modules[from].children.get(name)?,
    };
    while let Some((name, after)) = rest.split_first() {
        if name == "super" {
            module = modules[module].parent?;
        } else if let Some(child) = modules[module].children.get(name) {
            module = *child;
        } else {
            let handed_on = modules[module].imports.iter().find(|(_, known)| known == name);
            return match handed_on {
                Some((path, _)) if depth < DEPTH => {
                    let whole: Vec<String> = path.iter().chain(after).cloned().collect();
                    resolve(modules, module, &whole, depth + 1)
                }
                // The name of an exported macro lies in the root, wherever it is defined. What is no item is made by a macro.
                _ => {
                    let is_root = modules[module].parent.is_none();
                    (!is_root || name == "*" || modules[module].items.contains(name)).then_some(module)
                }
            };
        }
        rest = after;
    }
    Some(module)
}

/// The imports of a text of code without comments: each path with the name that it brings.
fn imports(code: &str) -> Vec<(Vec<String>, String)> {
    let mut imports = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        let is_word = !rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        rest = &rest[at + "use ".len()..];
        if let Some(end) = rest.find(';').filter(|_| is_word) {
            expand(&[], rest[..end].trim(), &mut imports);
            rest = &rest[end..];
        }
    }
    for first in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(first) {
            // A visibility, `pub(in super::super)`, is no import.
            let is_first = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
                && !code[..at].ends_with("(in ");
            let path = code[at..].split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').next();
            // What a list such as `super::{a, b}` names is among the imports above.
            if let Some(path) = path.filter(|path| is_first && !path.ends_with("::")) {
                let path: Vec<String> =
                    path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
                imports.push((path, String::new()));
            }
        }
    }
    imports
}

/// The names that a text of code defines.
fn items(code: &str) -> BTreeSet<String> {
    const KEYWORDS: [&str; 8] = ["struct", "enum", "trait", "type", "fn", "const", "static", "union"];
    let mut words =
        code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).peekable();
    let mut items = BTreeSet::new();
    while let Some(word) = words.next() {
        if let Some(name) = words.peek().filter(|_| KEYWORDS.contains(&word)) {
            items.insert((*name).to_owned());
        }
    }
    items
}

/// Adds the paths of a tree such as `a::{b, c as d}`.
fn expand(before: &[String], tree: &str, imports: &mut Vec<(Vec<String>, String)>) {
    if let Some((head, inner)) = tree.split_once('{') {
        let head: Vec<String> =
            head.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let path: Vec<String> = before.iter().cloned().chain(head).collect();
        let inner = inner.trim_end().strip_suffix('}').unwrap_or(inner);
        let mut depth = 0;
        let parts = inner.split(|c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        });
        parts.map(str::trim).filter(|part| !part.is_empty()).for_each(|part| expand(&path, part, imports));
        return;
    }
    let (path, name) = tree.split_once(" as ").unwrap_or((tree, tree.rsplit("::").next().unwrap_or(tree)));
    let own = path.split("::").map(|part| part.trim().to_owned());
    let mut path: Vec<String> = before.iter().cloned().chain(own).collect();
    let mut name = name.trim().to_owned();
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
        name = path.last().cloned().unwrap_or_default();
    }
    imports.push((path, name));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let files: Vec<TextFile> = files
            .iter()
            .map(|(path, text)| TextFile { path: format!("a/src/{path}"), text: (*text).to_owned() })
            .collect();
        circles("a/src", &files.iter().collect::<Vec<_>>())
    }

    #[test]
    fn files_that_import_each_other_are_a_circle() {
        let files = [
            ("lib.rs", "mod x; mod y; mod z; pub use x::X;"),
            ("x.rs", "use crate::y::{self, Y as Other}; struct X;"),
            ("y.rs", "use super::z; struct Y;"),
            ("z.rs", "fn f() { crate::X::new() }"),
        ];
        assert_eq!(found(&files), [["x.rs", "y.rs", "z.rs"]]);
    }

    #[test]
    fn a_file_that_hands_names_on_is_in_no_circle() {
        let files = [
            ("lib.rs", "mod m;"),
            ("m/mod.rs", "mod x; mod y; pub use self::x::X; use y::Y;"),
            ("m/x.rs", "use super::{Y, y::Z}; struct X; // use super::M"),
            (
                "m/y.rs",
                "pub(in super::super) struct Y; struct Z;\n#[cfg(test)]\nmod tests { use super::super::X; }",
            ),
        ];
        assert_eq!(found(&files), Vec::<Vec<String>>::new());
    }
}
