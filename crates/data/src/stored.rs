//! Finds files of stores: `s3://BUCKET/PATH`, `hdfs://HOST:PORT/PATH` and so on, with the same rules as local ones.

use std::sync::Arc;

use store::{FileFacts, Store};

use crate::Error;
use crate::input::{Input, StoredFile};
use crate::path_rules::{PATTERN, match_options, partition};

/// The files that an address names: a file, the files of a folder and below it, or those that match a pattern; sorted by path.
pub(crate) fn resolve(input: &str) -> Result<Vec<Input>, Error> {
    let scheme_end = input.find("://").map_or(0, |at| at + "://".len());
    let fixed = &input[..input.find(PATTERN).unwrap_or(input.len())];
    let input = if fixed.len() == input.len() { input.trim_end_matches('/') } else { input };
    let folder_end = fixed.trim_end_matches('/').rfind('/').filter(|end| *end >= scheme_end);
    let folder_end = if fixed.len() < input.len() { fixed.rfind('/') } else { folder_end };
    let Some(folder_end) = folder_end.filter(|end| *end >= scheme_end) else {
        return folder(&store::open(input)?, "", input);
    };
    let store = store::open(&input[..folder_end])?;
    let name = &input[folder_end + 1..];
    if fixed.len() < input.len() {
        return pattern(&store, name, input);
    }
    match store.facts(name) {
        Ok(facts) => Ok(vec![open(&store, name.to_owned(), facts)?]),
        Err(error) if error.is_not_found() => folder(&store, name, input),
        Err(error) => Err(error.into()),
    }
}

fn folder(store: &Arc<dyn Store>, path: &str, input: &str) -> Result<Vec<Input>, Error> {
    let files = store.files(path)?;
    let inner = |file: &str| file[path.len()..].trim_start_matches('/').to_owned();
    let files = files.into_iter().filter(|(file, _)| !is_hidden(&inner(file)));
    open_all(store, files, input)
}

fn pattern(store: &Arc<dyn Store>, pattern: &str, input: &str) -> Result<Vec<Input>, Error> {
    let compiled = glob::Pattern::new(pattern).map_err(|error| Error::BadPattern {
        pattern: input.to_owned(),
        at: error.pos,
        reason: error.msg.to_owned(),
    })?;
    // A pattern may match a folder: then it means the files in it.
    let matches = |path: &str| compiled.matches_with(path, match_options());
    let is_meant = |file: &str| {
        let folders = file.match_indices('/').filter(|(end, _)| matches(&file[..*end]));
        matches(file) || folders.into_iter().any(|(end, _)| !is_hidden(&file[end + 1..]))
    };
    let files = store.files("")?.into_iter().filter(|(file, _)| is_meant(file));
    open_all(store, files, input)
}

/// Whether a file or a folder on the way to it has a name that begins with `.` or `_`.
fn is_hidden(path: &str) -> bool {
    path.split('/').any(|name| name.starts_with(['.', '_']))
}

fn open_all(
    store: &Arc<dyn Store>,
    files: impl Iterator<Item = (String, FileFacts)>,
    input: &str,
) -> Result<Vec<Input>, Error> {
    let opened: Vec<Input> =
        files.map(|(path, facts)| open(store, path, facts)).collect::<Result<_, Error>>()?;
    if opened.is_empty() {
        let folder = store.location().into();
        return Err(Error::NothingMatches { pattern: input.to_owned(), folder });
    }
    Ok(opened)
}

fn open(store: &Arc<dyn Store>, path: String, facts: FileFacts) -> Result<Input, Error> {
    let columns = partition(path.as_ref());
    let input = Input::stored(StoredFile { store: Arc::clone(store), path, facts })?;
    Ok(input.with_partition(columns))
}
