//! The table in docs/ps-functions.md equals that of the code: every function of the library, its kind, and the rows that it
//! takes.

#![allow(clippy::unwrap_used, reason = "a test")]

#[test]
fn the_table_of_the_page_is_that_of_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ps-functions.md");
    let page = std::fs::read_to_string(path).unwrap();
    let mut written: Vec<Vec<String>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('|').skip(1).take(4).map(|cell| cell.trim().replace('`', "")).collect())
        .collect();
    written.sort();
    let entries = families::functions().entries().into_iter();
    let known: Vec<Vec<String>> =
        entries.map(|entry| vec![entry.name, entry.kind.to_owned(), entry.from, entry.into]).collect();
    assert!(known.len() > 50, "the functions are there");
    for row in &known {
        assert!(written.contains(row), "docs/ps-functions.md lacks the row | `{}` |", row.join(" | "));
    }
    assert_eq!(written, known, "the page has rows that the code has not");
}
