//! Finds the files that the user names: files, folders, patterns, standard input.

use crate::Error;
use crate::arrays::{MemoryInputs, PREFIX};
use crate::input::Input;
use crate::interruptible::StopFlag;
use std::path::{Path, PathBuf};

/// Characters that make a name a pattern.
const PATTERN: [char; 3] = ['*', '?', '['];

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
fn partition(file: &Path) -> Vec<(String, String)> {
    let folders = file.parent().into_iter().flat_map(Path::ancestors);
    let mut columns: Vec<_> = folders.map_while(partition_column).collect();
    columns.reverse();
    columns
}

fn pattern(input: &str) -> Result<Vec<PathBuf>, Error> {
    let options = glob::MatchOptions { require_literal_leading_dot: true, ..glob::MatchOptions::new() };
    let paths = glob::glob_with(input, options).map_err(|error| Error::BadPattern {
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
mod tests {
    use super::*;

    fn names(files: &[Input]) -> Vec<String> {
        files.iter().map(|f| f.path().unwrap().file_name().unwrap().to_str().unwrap().to_owned()).collect()
    }

    fn filled_folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.libsvm", "a.libsvm", ".hidden", "_SUCCESS", "c.txt"] {
            std::fs::write(folder.path().join(name), "1 1:1\n").unwrap();
        }
        std::fs::create_dir(folder.path().join("sub.libsvm")).unwrap();
        folder
    }

    fn resolved(folder: &tempfile::TempDir, input: &str) -> Result<Vec<Input>, Error> {
        resolve(
            &[folder.path().join(input).to_str().unwrap().to_owned()],
            &StopFlag::default(),
            &MemoryInputs::default(),
        )
    }

    #[test]
    fn a_folder_gives_its_files_sorted_without_markers() {
        let folder = filled_folder();
        assert_eq!(names(&resolved(&folder, "").unwrap()), ["a.libsvm", "b.libsvm", "c.txt"]);
    }

    #[test]
    fn folders_named_by_a_column_give_it_to_their_files() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["day=1/part=a%2Fb/x.csv", "day=2/part=c/y.csv", "other/z.csv"] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "1\n").unwrap();
        }
        let column = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let files = resolved(&folder, "").unwrap();
        assert_eq!(names(&files), ["x.csv", "y.csv", "z.csv"]);
        assert_eq!(files[0].partition(), [column("day", "1"), column("part", "a/b")]);
        assert!(files[2].partition().is_empty());
        let files = resolved(&folder, "day=*/part=c/*.csv").unwrap();
        assert_eq!(files[0].partition(), [column("day", "2"), column("part", "c")]);
        let files = resolved(&folder, "day=2/part=c/y.csv").unwrap();
        assert_eq!(files[0].partition(), [column("day", "2"), column("part", "c")]);
    }

    #[test]
    fn files_of_subfolders_are_read_and_those_of_hidden_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        for path in [
            "b/2/x.csv",
            "a.csv",
            "b/1/y.csv",
            "c/z.csv",
            ".hidden/h.csv",
            "_temporary/0/t.csv",
            "b/_SUCCESS",
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "1\n").unwrap();
        }
        let all = ["a.csv", "y.csv", "x.csv", "z.csv"];
        for input in ["", "*"] {
            assert_eq!(names(&resolved(&folder, input).unwrap()), all, "{input}");
        }
        assert_eq!(names(&resolved(&folder, "[bc]").unwrap()), all[1..], "folders that a pattern matches");
        assert_eq!(names(&resolved(&folder, "b/**").unwrap()), all[1..3], "a folder and those in it");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(folder.path(), folder.path().join("b/back")).unwrap();
            assert_eq!(names(&resolved(&folder, "").unwrap()), all, "a link to a folder around it");
        }
    }

    #[test]
    fn a_pattern_gives_its_files_sorted() {
        let folder = filled_folder();
        assert_eq!(names(&resolved(&folder, "*.libsvm").unwrap()), ["a.libsvm", "b.libsvm"]);
        assert_eq!(names(&resolved(&folder, "[c]*").unwrap()), ["c.txt"]);
    }

    #[test]
    fn what_matches_nothing_is_an_error_that_says_where_it_looked() {
        let folder = filled_folder();
        let error = resolved(&folder, "sub.libsvm").err().unwrap();
        assert!(matches!(&error, Error::EmptyFolder { folder } if folder.ends_with("sub.libsvm")), "{error}");
        for input in ["*.vw", "x.libsvm", "sub*"] {
            let error = resolved(&folder, input).err().unwrap();
            assert!(
                matches!(&error, Error::NothingMatches { pattern, .. } if pattern.ends_with(input)),
                "{error}"
            );
            assert!(error.to_string().contains(folder.path().to_str().unwrap()), "{error}");
        }
        assert!(matches!(resolved(&folder, "a[*"), Err(Error::BadPattern { .. })));
        assert!(resolve(&[], &StopFlag::default(), &MemoryInputs::default()).is_err());
    }

    #[test]
    fn the_paths_of_inputs_are_those_that_are_opened() {
        let folder = filled_folder();
        for input in ["", "*.libsvm", "c.txt", "[c]*"] {
            let name = folder.path().join(input).display().to_string();
            let opened = resolved(&folder, input).unwrap();
            let paths: Vec<_> = opened.iter().map(|file| file.path().unwrap().to_owned()).collect();
            assert_eq!(input_paths(&[name, "-".to_owned()]), paths, "{input}");
        }
        let nothing = folder.path().join("*.vw").display().to_string();
        assert!(input_paths(&[nothing, "/no/such/file".to_owned()]).is_empty());
    }

    #[test]
    fn a_pattern_is_searched_below_its_fixed_part() {
        for (input, folder) in [
            ("a/b/*.csv", "a/b"),
            ("a/b*/c/d.csv", "a"),
            ("/*.csv", "/"),
            ("*.csv", "."),
            ("x.csv", "."),
            ("a/x", "a"),
        ] {
            assert_eq!(folder_of(input), Path::new(folder), "{input}");
        }
    }
}
