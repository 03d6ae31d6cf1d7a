//! What names of files and folders mean, on a disk and in a store.

use std::path::Path;

/// Characters that make a name a pattern.
pub(crate) const PATTERN: [char; 3] = ['*', '?', '['];

/// How patterns match: `*` and `?` neither a `/` nor a dot at the beginning of a name.
pub(crate) fn match_options() -> glob::MatchOptions {
    glob::MatchOptions {
        require_literal_leading_dot: true,
        require_literal_separator: true,
        ..glob::MatchOptions::new()
    }
}

/// Returns the column and the value that the name of a folder gives to its files.
fn partition_column(folder: &Path) -> Option<(String, String)> {
    let (name, value) = folder.file_name()?.to_str()?.split_once('=')?;
    (!name.is_empty()).then(|| (unescaped(name), unescaped(value)))
}

/// Decodes percent escapes such as `%2F` for `/`.
fn unescaped(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Returns the columns that the folders of a file give, from the outer folder to the inner one.
pub(crate) fn partition(file: &Path) -> Vec<(String, String)> {
    let folders = file.parent().into_iter().flat_map(Path::ancestors);
    let mut columns: Vec<_> = folders.map_while(partition_column).collect();
    columns.reverse();
    columns
}
