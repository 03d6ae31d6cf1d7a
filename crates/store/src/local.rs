//! A local folder. A file is written under a hidden name in the root of the folder, synced, and renamed.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, ErrorKind, Read, Seek as _, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use crate::error::Error;
use crate::{Entry, EntryKind, FileFacts, FileWriter, Store, path};

/// Beginning of the names of files that are being written.
const UNFINISHED: &str = ".unfinished-";
/// Another number in each process. Processes of several machines or containers may share a folder and have the same id.
static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().build_hasher().finish());

/// A store in a local folder, which the first file creates.
#[derive(Clone, Debug)]
pub struct LocalFolder {
    root: PathBuf,
    location: String,
}

impl LocalFolder {
    /// The folder `root`; `location` is what messages name it.
    pub fn new(root: PathBuf, location: &str) -> Self {
        Self { root, location: location.to_owned() }
    }

    fn path(&self, path: &str) -> Result<PathBuf, Error> {
        path::check(path)?;
        Ok(self.root.join(path))
    }

    fn io(&self, action: &'static str, path: &str) -> impl Fn(io::Error) -> Error + use<> {
        let (location, path) = (self.location.clone(), path.to_owned());
        move |source| match source.kind() {
            // Writing into a folder that was removed is no missing file of the reader.
            ErrorKind::NotFound if action == "write" => {
                Error::Io { action, location: location.clone(), path: path.clone(), source }
            }
            _ => Error::io(action, &location, &path, source),
        }
    }

    fn begin(&self, path: &str) -> Result<LocalFile, Error> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let target = self.path(path)?;
        fs::create_dir_all(&self.root).map_err(self.io("write", path))?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.root.join(format!("{UNFINISHED}{:016x}-{count}", *PROCESS));
        let file = File::create_new(&unfinished).map_err(self.io("write", path))?;
        let (folder, path) = (self.clone(), path.to_owned());
        Ok(LocalFile { file, unfinished, target, folder, path })
    }

    fn visit_unfinished(folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                Self::visit_unfinished(&entry.path())?;
            } else if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

fn facts_of(metadata: &fs::Metadata) -> FileFacts {
    let modified = metadata.modified().ok();
    let since_1970 = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    FileFacts {
        size_bytes: metadata.len(),
        version: modified.map_or_else(String::new, |time| format!("{time:?}")),
        modified_ms: since_1970.map(|time| time.as_millis() as u64),
    }
}

/// An error for something that may be missing.
fn unless_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Makes the names in a folder durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Creates a folder whose name is durable.
fn create_folder(root: &Path, folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    let mut created = folder;
    while created != root
        && let Some(parent) = created.parent()
    {
        sync_folder(parent)?;
        created = parent;
    }
    Ok(())
}

struct LocalFile {
    file: File,
    unfinished: PathBuf,
    target: PathBuf,
    folder: LocalFolder,
    path: String,
}

impl LocalFile {
    fn put(&self, rename: impl Fn(&Path, &Path) -> io::Result<()>) -> io::Result<()> {
        self.file.sync_all()?;
        let parent = self.target.parent().expect("a path in the folder has a parent");
        create_folder(&self.folder.root, parent)?;
        rename(&self.unfinished, &self.target)?;
        sync_folder(parent)
    }
}

impl Drop for LocalFile {
    fn drop(&mut self) {
        // After a rename the name is gone.
        let _ = fs::remove_file(&self.unfinished);
    }
}

impl Write for LocalFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl FileWriter for LocalFile {
    fn finish(self: Box<Self>) -> Result<(), Error> {
        self.put(|from, to| fs::rename(from, to)).map_err(self.folder.io("write", &self.path))
    }
}

impl Store for LocalFolder {
    fn location(&self) -> &str {
        &self.location
    }

    fn create(&self, path: &str) -> Result<Box<dyn FileWriter>, Error> {
        Ok(Box::new(self.begin(path)?))
    }

    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<bool, Error> {
        let mut file = self.begin(path)?;
        file.write_all(bytes).map_err(self.io("write", path))?;
        match file.put(|from, to| fs::hard_link(from, to)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(self.io("write", path)(error)),
        }
    }

    fn facts(&self, path: &str) -> Result<FileFacts, Error> {
        let metadata = fs::metadata(self.path(path)?).map_err(self.io("read", path))?;
        if !metadata.is_file() {
            return Err(self.io("read", path)(ErrorKind::NotFound.into()));
        }
        Ok(facts_of(&metadata))
    }

    fn open_range(
        &self,
        path: &str,
        facts: &FileFacts,
        range: Range<u64>,
    ) -> Result<Box<dyn Read + Send>, Error> {
        let mut file = File::open(self.path(path)?).map_err(self.io("read", path))?;
        let metadata = file.metadata().map_err(self.io("read", path))?;
        if facts_of(&metadata) != *facts {
            return Err(self.io("read", path)(Error::changed()));
        }
        file.seek(SeekFrom::Start(range.start)).map_err(self.io("read", path))?;
        Ok(Box::new(file.take(range.end - range.start)))
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>, Error> {
        let path = if folder.is_empty() { self.root.clone() } else { self.path(folder)? };
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.io("list", folder)(error)),
        };
        let mut listed = Vec::new();
        for entry in entries {
            let entry = entry.map_err(self.io("list", folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let metadata = entry.metadata().map_err(self.io("list", folder))?;
            let file = EntryKind::File { size_bytes: metadata.len() };
            let kind = if metadata.is_dir() { EntryKind::Folder } else { file };
            listed.push(Entry { name, kind });
        }
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    fn remove(&self, path: &str) -> Result<(), Error> {
        if path.is_empty() {
            return unless_missing(fs::remove_dir_all(&self.root)).map_err(self.io("remove", path));
        }
        let target = self.path(path)?;
        let removed = if target.is_dir() { fs::remove_dir_all(&target) } else { fs::remove_file(&target) };
        unless_missing(removed).map_err(self.io("remove", path))
    }

    fn remove_unfinished(&self, folder: &str) -> Result<(), Error> {
        let path = if folder.is_empty() { self.root.clone() } else { self.path(folder)? };
        unless_missing(Self::visit_unfinished(&path)).map_err(self.io("remove", folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, LocalFolder) {
        let root = tempfile::tempdir().unwrap();
        let folder = LocalFolder::new(root.path().join("store"), "the store");
        (root, folder)
    }

    fn put(store: &LocalFolder, path: &str, text: &str) {
        let mut file = store.create(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.finish().unwrap();
    }

    #[test]
    fn a_file_is_visible_when_it_is_finished() {
        let (_root, store) = folder();
        assert_eq!(store.list("").unwrap(), []);
        let mut file = store.create("a/b").unwrap();
        file.write_all(b"text").unwrap();
        assert!(store.read("a/b").unwrap_err().is_not_found());
        assert_eq!(store.list("").unwrap(), []);
        file.finish().unwrap();
        assert_eq!(store.read("a/b").unwrap(), b"text");
        let file = Entry { name: "b".into(), kind: EntryKind::File { size_bytes: 4 } };
        assert_eq!(store.list("a").unwrap(), [file]);
        assert_eq!(store.list("").unwrap(), [Entry { name: "a".into(), kind: EntryKind::Folder }]);
        drop(store.create("a/c").unwrap());
        assert_eq!(store.list("a").unwrap().len(), 1);
        put(&store, "a/b", "other");
        assert_eq!(store.read("a/b").unwrap(), b"other");
    }

    #[test]
    fn one_of_many_creates_a_new_file() {
        let (_root, store) = folder();
        let wins: Vec<bool> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|i| {
                    let store = &store;
                    scope.spawn(move || store.create_new("claim", &[i; 1000]).unwrap())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(wins.iter().filter(|won| **won).count(), 1);
        let winner = wins.iter().position(|won| *won).unwrap() as u8;
        assert_eq!(store.read("claim").unwrap(), [winner; 1000]);
        assert_eq!(fs::read_dir(&store.root).unwrap().count(), 1, "nothing unfinished is left");
    }

    #[test]
    fn what_killed_writers_left_is_removed() {
        let (_root, store) = folder();
        put(&store, "a", "text");
        std::mem::forget(store.begin("b").unwrap());
        assert_eq!(fs::read_dir(&store.root).unwrap().count(), 2);
        store.remove_unfinished("").unwrap();
        assert_eq!(fs::read_dir(&store.root).unwrap().count(), 1);
    }

    #[test]
    fn files_and_folders_are_removed_and_may_be_missing() {
        let (_root, store) = folder();
        put(&store, "a/b", "1");
        put(&store, "c", "2");
        store.remove("a").unwrap();
        store.remove("c").unwrap();
        store.remove("c").unwrap();
        store.remove("x/y").unwrap();
        assert_eq!(store.list("").unwrap(), []);
        store.remove("").unwrap();
        assert!(!store.root.exists());
    }

    #[test]
    fn errors_name_the_path_and_the_store() {
        let (root, store) = folder();
        fs::write(root.path().join("store"), "a file where the folder belongs").unwrap();
        let text = store.create("a").err().unwrap().to_string();
        assert!(text.contains("cannot write the store/a"), "{text}");
        let text = store.read("a").unwrap_err().to_string();
        assert!(text.contains('a') && text.contains("the store"), "{text}");
    }
}
