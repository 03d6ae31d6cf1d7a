//! Checks that tables of the docs contain every entry of the table in the code: flags, exit codes, formats.

use super::Finding;
use crate::tree::TextFile;

/// A table of the code and the page that repeats it.
struct DocumentedTable {
    code: &'static str,
    page: &'static str,
    /// The text before and after each entry in the code.
    entry: (&'static str, char),
    /// How the page spells an entry.
    spelled: fn(&str) -> String,
}

const DOCUMENTED_TABLES: &[DocumentedTable] = &[
    DocumentedTable {
        code: "crates/job/src/keys.rs",
        page: "docs/commands.md",
        entry: ("    key(\"", '"'),
        spelled: |name| format!("`--{}", name.replace('_', "-")),
    },
    DocumentedTable {
        code: "crates/job/src/exit.rs",
        page: "docs/exit-codes.md",
        entry: ("    (Exit::", ')'),
        spelled: |row| row.split('"').nth(1).unwrap_or(row).to_owned(),
    },
    DocumentedTable {
        code: "crates/data/src/format/table.rs",
        page: "docs/data-formats.md",
        entry: ("name: \"", '"'),
        spelled: |name| format!("| `{name}` |"),
    },
];

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    DOCUMENTED_TABLES.iter().flat_map(|pair| check_pair(pair, files)).collect()
}

fn check_pair(pair: &DocumentedTable, files: &[TextFile]) -> Vec<Finding> {
    let text = |path: &str| files.iter().find(|file| file.path == path).map(|file| file.text.as_str());
    let (Some(code), Some(page)) = (text(pair.code), text(pair.page)) else {
        return vec![Finding::new(
            pair.page,
            format!("this page or {} is gone: change tidy/tables.rs", pair.code),
        )];
    };
    let entries = entries(code, pair.entry);
    if entries.is_empty() {
        let text = format!("no entries begin with {:?}: change tidy/tables.rs", pair.entry.0);
        return vec![Finding::new(pair.code, text)];
    }
    let missing = entries.into_iter().map(pair.spelled).filter(|spelled| !page.contains(spelled.as_str()));
    missing
        .map(|spelled| Finding::new(pair.page, format!("lacks {spelled:?}, which is in {}", pair.code)))
        .collect()
}

/// Returns the texts between each `start` and the next `end`.
fn entries<'a>(code: &'a str, (start, end): (&str, char)) -> Vec<&'a str> {
    code.match_indices(start)
        .filter_map(|(at, _)| {
            let rest = &code[at + start.len()..];
            rest.find(end).map(|length| &rest[..length])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_lacks_an_entry_is_found() {
        let file = |path: &str, text: &str| TextFile { path: path.into(), text: text.into() };
        let code = "    key(\"data\", 1),\n    key(\"bad_lines\", 2),\n";
        let page = |text| [file(DOCUMENTED_TABLES[0].code, code), file(DOCUMENTED_TABLES[0].page, text)];
        assert!(
            check_pair(&DOCUMENTED_TABLES[0], &page("| `--data FILES` | | `--bad-lines N` |")).is_empty()
        );
        assert_eq!(check_pair(&DOCUMENTED_TABLES[0], &page("| `--data FILES` |")).len(), 1);
    }

    #[test]
    fn an_exit_code_is_known_by_its_meaning() {
        assert_eq!(
            (DOCUMENTED_TABLES[1].spelled)("Exit::Io, \"reading or writing failed\""),
            "reading or writing failed"
        );
    }

    #[test]
    fn a_page_or_table_that_is_gone_is_found() {
        assert_eq!(check_pair(&DOCUMENTED_TABLES[0], &[]).len(), 1);
    }
}
