//! Tests of `resolve.rs`.

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
    for path in
        ["b/2/x.csv", "a.csv", "b/1/y.csv", "c/z.csv", ".hidden/h.csv", "_temporary/0/t.csv", "b/_SUCCESS"]
    {
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
