//! Finds files of stores: `s3://BUCKET/PATH`, `hdfs://HOST:PORT/PATH` and so on, with the same rules as local ones.

use std::sync::Arc;

use store::{FileFacts, Store};

use crate::Error;
use crate::input::{Input, StoredFile};
use crate::path_rules::{PATTERN, match_options, partition};

/// The files that an address names: a file, the files of a folder and below it, or those that match a pattern; sorted by path.
pub(crate) fn resolve(input: &str) -> Result<Vec<Input>, Error> {
    let scheme_end = input.find("://").map_or(0, |at| at + "://".len());
    let pattern_start = input.find(PATTERN);
    let input = if pattern_start.is_some() { input } else { input.trim_end_matches('/') };
    let fixed = &input[..pattern_start.unwrap_or(input.len())];
    let Some(folder_end) = fixed.rfind('/').filter(|end| *end >= scheme_end) else {
        return folder(input);
    };
    let store = store::open(&input[..folder_end])?;
    let name = &input[folder_end + 1..];
    if pattern_start.is_some() {
        return pattern(&store, name, input);
    }
    match store.facts(name) {
        Ok(facts) => Ok(vec![open(&store, name.to_owned(), facts)?]),
        // A name that no file of a store has may be one of a folder.
        Err(store::Error::NotFound { .. } | store::Error::BadPath { .. }) => folder(input),
        Err(error) => Err(error.into()),
    }
}

fn folder(input: &str) -> Result<Vec<Input>, Error> {
    let store = store::open(input)?;
    let files = store.files("")?.into_iter().filter(|(file, _)| !is_hidden(file));
    open_all(&store, files, input)
}

fn pattern(store: &Arc<dyn Store>, pattern: &str, input: &str) -> Result<Vec<Input>, Error> {
    let compiled = glob::Pattern::new(pattern).map_err(|error| Error::BadPattern {
        pattern: input.to_owned(),
        at: error.pos,
        reason: error.msg.to_owned(),
    })?;
    let matches = |path: &str| compiled.matches_with(path, match_options());
    // A pattern may match a folder: then it means the files in it, unless the folder is hidden.
    let is_meant_by_folder = |file: &str, end: usize| {
        let name_start = file[..end].rfind('/').map_or(0, |before| before + 1);
        matches(&file[..end]) && !is_hidden(&file[name_start..])
    };
    let is_meant =
        |file: &str| matches(file) || file.match_indices('/').any(|(end, _)| is_meant_by_folder(file, end));
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
    let input = Input::stored(StoredFile { store: Arc::clone(store), path, facts })?;
    let columns = partition(input.name().as_ref());
    Ok(input.with_partition(columns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::MemoryInputs;
    use crate::interruptible::StopFlag;

    /// The files that an input means, with the columns of their folders.
    fn names(input: &str) -> Result<Vec<String>, Error> {
        let inputs =
            crate::resolve::resolve(&[input.to_owned()], &StopFlag::default(), &MemoryInputs::default())?;
        let shown =
            |input: &Input| format!("{} {:?}", input.name().trim_start_matches("file://"), input.partition());
        Ok(inputs.iter().map(shown).collect())
    }

    #[test]
    fn an_address_means_the_files_that_the_same_path_means() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            "day=1/a.csv",
            "day=1/hour=2/b.csv",
            "day=2/c.csv",
            "day=2/_SUCCESS",
            "_temporary/d.csv",
            "day=2/.e.csv",
            "x/f.csv",
            "x/_old/g.csv",
            "h.csv",
        ];
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "1,2\n").unwrap();
        }
        let root = folder.path().display().to_string();
        for input in [
            "",
            "/",
            "/day=1",
            "/day=1/",
            "/day=1/a.csv",
            "/h.csv",
            "/*.csv",
            "/*",
            "/day=*",
            "/day=*/*.csv",
            "/day=?/*",
            "/x/*",
            "/day=1/h*/b.csv",
            "/*/_old/*",
            "/nothing*",
            "/nothing",
            "/_temporary",
        ] {
            let (path, address) = (format!("{root}{input}"), format!("file://{root}{input}"));
            match (names(&path), names(&address)) {
                (Ok(by_path), Ok(by_address)) => assert_eq!(by_path, by_address, "{input}"),
                (Err(_), Err(error)) => assert!(error.to_string().contains("no data"), "{error}"),
                (by_path, by_address) => panic!("{input}: {by_path:?}, {by_address:?}"),
            }
        }
    }
}
