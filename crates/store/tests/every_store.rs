//! What every store promises, for a local folder and for each location in `SERAPHIM_STORES` (separated by spaces), as
//! `cargo xtask ci --slow` starts them: S3 and HDFS.

use std::io::Read as _;
use std::sync::Arc;

use store::{Entry, EntryKind, Store};

/// More than a part of an upload, and not a whole number of them.
const LARGE: usize = (20 << 20) + 17;

/// A folder of its own in each store.
fn stores(test: &str) -> Vec<(Arc<dyn Store>, Option<tempfile::TempDir>)> {
    let local = tempfile::tempdir().expect("the system has a folder for temporary files");
    let place = local.path().join("a/b").display().to_string();
    let mut all = vec![(store::open(&place).expect("it is a path"), Some(local))];
    let others = std::env::var("SERAPHIM_STORES").unwrap_or_default();
    for location in others.split_whitespace() {
        let place = format!("{location}/{test}-{}", std::process::id());
        all.push((store::open(&place).unwrap_or_else(|error| panic!("{error}")), None));
    }
    all
}

fn write(store: &dyn Store, path: &str, bytes: &[u8]) {
    let mut file = store.create(path).unwrap_or_else(|error| panic!("{error}"));
    file.write_all(bytes).unwrap_or_else(|error| panic!("{}: {error}", store.location()));
    file.finish().unwrap_or_else(|error| panic!("{error}"));
}

fn names(store: &dyn Store, folder: &str) -> Vec<String> {
    let entries = store.list(folder).unwrap_or_else(|error| panic!("{error}"));
    entries.into_iter().map(|entry| entry.name).collect()
}

#[test]
fn a_file_is_visible_when_it_is_whole_and_is_read_as_it_was_written() {
    for (store, _folder) in stores("whole") {
        let store = store.as_ref();
        assert!(store.open("a").err().is_some_and(|error| error.is_not_found()), "{}", store.location());
        let large: Vec<u8> = (0..LARGE).map(|i| (i % 251) as u8).collect();
        for (path, bytes) in [("empty", &[][..]), ("small", b"hello"), ("x/y/large", &large)] {
            let mut file = store.create(path).unwrap_or_else(|error| panic!("{error}"));
            for chunk in bytes.chunks(100_003) {
                file.write_all(chunk).unwrap_or_else(|error| panic!("{}: {error}", store.location()));
            }
            assert!(store.read(path).is_err(), "{} shows {path} before its end", store.location());
            file.finish().unwrap_or_else(|error| panic!("{error}"));
            let mut read = Vec::new();
            let mut reader = store.open(path).unwrap_or_else(|error| panic!("{error}"));
            reader.read_to_end(&mut read).unwrap_or_else(|error| panic!("{}: {error}", store.location()));
            assert!(read == bytes, "{} gives other bytes of {path}", store.location());
        }
        write(store, "small", b"another");
        assert_eq!(store.read("small").unwrap(), b"another", "{}", store.location());
        let unfinished = store.create("never").unwrap();
        drop(unfinished);
        assert!(!names(store, "").contains(&"never".to_owned()), "{}", store.location());
        store.remove("").unwrap();
    }
}

#[test]
fn folders_are_listed_and_removed() {
    for (store, _folder) in stores("folders") {
        let store = store.as_ref();
        assert_eq!(store.list("none").unwrap(), [], "{}", store.location());
        for path in ["a", "b/1", "b/2", "b/c/3", "bb"] {
            write(store, path, path.as_bytes());
        }
        let file = |name: &str, size_bytes| Entry { name: name.into(), kind: EntryKind::File { size_bytes } };
        let folder = |name: &str| Entry { name: name.into(), kind: EntryKind::Folder };
        assert_eq!(
            store.list("").unwrap(),
            [file("a", 1), folder("b"), file("bb", 2)],
            "{}",
            store.location()
        );
        assert_eq!(
            store.list("b").unwrap(),
            [file("1", 3), file("2", 3), folder("c")],
            "{}",
            store.location()
        );
        store.remove("b/1").unwrap();
        store.remove("b/1").unwrap();
        assert_eq!(names(store, "b"), ["2", "c"], "{}", store.location());
        store.remove("b").unwrap();
        assert_eq!(names(store, ""), ["a", "bb"], "{}", store.location());
        store.remove_unfinished("").unwrap();
        assert_eq!(names(store, ""), ["a", "bb"], "{}", store.location());
        store.remove("").unwrap();
        assert_eq!(names(store, ""), [""; 0], "{}", store.location());
    }
}

#[test]
fn of_several_that_create_a_file_one_does() {
    for (store, _folder) in stores("race") {
        let winners = std::thread::scope(|scope| {
            let create = |i: u8| {
                let store = Arc::clone(&store);
                scope.spawn(move || store.create_new("claim", &[i]).unwrap_or_else(|error| panic!("{error}")))
            };
            let threads: Vec<_> = (0..8).map(create).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("it does not panic"))
                .filter(|won| *won)
                .count()
        });
        assert_eq!(winners, 1, "{}", store.location());
        assert_eq!(store.read("claim").unwrap().len(), 1);
        assert!(!store.create_new("claim", b"x").unwrap(), "{}", store.location());
        store.remove("").unwrap();
    }
}

#[test]
fn a_location_that_cannot_be_is_refused() {
    let error = store::open("ftp://a/b").unwrap_err().to_string();
    assert!(error.contains("\"ftp\"") && error.contains("this program knows paths"), "{error}");
}

#[test]
fn any_part_of_a_file_is_read_and_a_file_that_has_changed_is_not() {
    for (store, _folder) in stores("ranges") {
        let store = store.as_ref();
        let large: Vec<u8> = (0..LARGE).map(|i| (i % 251) as u8).collect();
        write(store, "x/large", &large);
        let facts = store.facts("x/large").unwrap();
        assert_eq!(facts.size_bytes, LARGE as u64, "{}", store.location());
        for range in [0..LARGE, 5..6, LARGE - 3..LARGE, 100..100, 1 << 20..11 << 20] {
            let mut read = Vec::new();
            let mut reader =
                store.open_range("x/large", &facts, range.start as u64..range.end as u64).unwrap();
            reader.read_to_end(&mut read).unwrap_or_else(|error| panic!("{}: {error}", store.location()));
            assert!(read == large[range.clone()], "{} gives other bytes of {range:?}", store.location());
        }
        assert_eq!(store.files("").unwrap(), [("x/large".to_owned(), facts.clone())], "{}", store.location());
        assert!(store.facts("x").is_err_and(|error| error.is_not_found()), "{}", store.location());
        // Some stores know times in seconds.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        write(store, "x/large", &large[1..]);
        let read = store.open_range("x/large", &facts, 0..facts.size_bytes);
        let read = read.and_then(|mut file| {
            let read = file.read_to_end(&mut Vec::new());
            read.map_err(|source| store::Error::Io {
                action: "read",
                location: String::new(),
                path: String::new(),
                source,
            })
        });
        let text = read.unwrap_err().to_string();
        assert!(text.contains("has changed"), "{}: {text}", store.location());
        store.remove("").unwrap();
    }
}
