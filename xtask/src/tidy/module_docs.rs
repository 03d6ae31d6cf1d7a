//! Every Rust file begins with a module doc. A file with the tests of the module beside it (`tests.rs`) needs none.

use super::Finding;
use crate::tree::TextFile;

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let bare = |file: &&TextFile| {
        file.is_rust() && !file.path.ends_with("/tests.rs") && !file.text.trim_start().starts_with("//!")
    };
    let text = "has no module doc: begin with a `//!` line that says what the file is for";
    files.iter().filter(bare).map(|file| Finding::new(&file.path, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_module_doc_is_found() {
        let file = |text: &str| TextFile { path: "a.rs".into(), text: text.into() };
        assert!(check(&[file("//! What it is for.\n")]).is_empty());
        assert_eq!(check(&[file("use std::fmt;\n//! Late.\n")]).len(), 1);
    }
}
