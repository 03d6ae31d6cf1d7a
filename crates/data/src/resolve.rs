//! Finds the files that the user names: files, folders, patterns, standard input.

use crate::Error;
use crate::arrays::{MemoryInputs, PREFIX};
use crate::input::Input;
use crate::interruptible::StopFlag;
use crate::path_rules::{PATTERN, match_options, partition};
use crate::stored;
use std::path::{Path, PathBuf};

/// Opens the files that `inputs` name, in the given order; the files of a folder, with those of its subfolders, or of a
/// pattern are sorted by path.
pub(crate) fn resolve(
    inputs: &[String],
    stop: &StopFlag,
    memory: &MemoryInputs,
) -> Result<Vec<Input>, Error> {
    if inputs.is_empty() {
        return Err(Error::BadOption { option: "data", reason: "no input given".to_owned() });
    }
    let mut files = Vec::new();
    for input in inputs {
        let path = Path::new(input);
        if input == "-" {
            files.push(Input::standard_input(stop)?);
        } else if input.starts_with(PREFIX) && !path.exists() {
            let arrays = memory.find(input).ok_or_else(|| Error::NoArrays { input: input.clone() })?;
            files.push(Input::of_arrays(input, arrays));
        } else if input.contains("://") && !path.exists() {
            files.extend(stored::resolve(input)?);
        } else if path.is_dir() {
            let paths = folder(path)?;
            if paths.is_empty() {
                return Err(Error::EmptyFolder { folder: path.to_owned() });
            }
            extend(&mut files, &paths)?;
        } else if path.exists() {
            files.push(file(path)?);
        } else if input.contains(PATTERN) {
            let paths = pattern(input)?;
            if paths.is_empty() {
                return Err(no_match_error(input, &folder_of(input)));
            }
            extend(&mut files, &paths)?;
        } else {
            return Err(no_match_error(input, &folder_of(input)));
        }
    }
    Ok(files)
}

/// Returns the paths of the files that `inputs` name, without opening them. An input that matches nothing gives no
/// path.
pub fn input_paths(inputs: &[String]) -> Vec<PathBuf> {
    let paths_of = |input: &String| {
        let path = PathBuf::from(input);
        if path.is_dir() {
            folder(&path).unwrap_or_default()
        } else if path.exists() {
            vec![path]
        } else if input.contains(PATTERN) {
            pattern(input).unwrap_or_default()
        } else {
            Vec::new()
        }
    };
    inputs.iter().filter(|input| *input != "-").flat_map(paths_of).collect()
}

fn extend(files: &mut Vec<Input>, paths: &[PathBuf]) -> Result<(), Error> {
    for path in paths {
        files.push(file(path)?);
    }
    Ok(())
}

fn file(path: &Path) -> Result<Input, Error> {
    Ok(Input::file(path)?.with_partition(partition(path)))
}

fn no_match_error(input: &str, folder: &Path) -> Error {
    Error::NothingMatches { pattern: input.to_owned(), folder: folder.to_owned() }
}

/// Returns the folder in which a pattern or a missing file is searched.
fn folder_of(input: &str) -> PathBuf {
    let fixed = &input[..input.find(PATTERN).unwrap_or(input.len())];
    match fixed.rfind('/') {
        Some(0) => PathBuf::from("/"),
        Some(end) => PathBuf::from(&fixed[..end]),
        None => PathBuf::from("."),
    }
}

/// Returns the files of a folder and of its subfolders, sorted. It skips names that begin with `.` or `_` (markers of Hadoop
/// and Spark).
fn folder(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    add_folder(path, &mut Vec::new(), &mut files)?;
    files.sort();
    Ok(files)
}

/// Whether the files of a folder do not include this one.
fn is_hidden(path: &Path) -> bool {
    path.file_name().is_none_or(|name| {
        name.as_encoded_bytes().starts_with(b".") || name.as_encoded_bytes().starts_with(b"_")
    })
}

/// Adds the files of a folder. `open` are the real paths of the folders around it: a link to one of them is not followed.
fn add_folder(path: &Path, open: &mut Vec<PathBuf>, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let failed = |source| Error::io("list", path.display().to_string(), source);
    let real = std::fs::canonicalize(path).map_err(failed)?;
    if open.contains(&real) {
        return Ok(());
    }
    open.push(real);
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let inner = entry.map_err(failed)?.path();
        if is_hidden(&inner) {
            continue;
        }
        if inner.is_dir() {
            add_folder(&inner, open, files)?;
        } else if inner.is_file() {
            files.push(inner);
        }
    }
    open.pop();
    Ok(())
}

fn pattern(input: &str) -> Result<Vec<PathBuf>, Error> {
    let paths = glob::glob_with(input, match_options()).map_err(|error| Error::BadPattern {
        pattern: input.to_owned(),
        at: error.pos,
        reason: error.msg.to_owned(),
    })?;
    let mut files = Vec::new();
    for path in paths {
        let path = path.map_err(|error| {
            let file = error.path().display().to_string();
            Error::io("list", file, error.into())
        })?;
        if path.is_dir() {
            if !is_hidden(&path) {
                files.extend(folder(&path)?);
            }
        } else if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    // A pattern may match a folder as well as what is in it.
    files.dedup();
    Ok(files)
}

#[cfg(test)]
mod tests;
