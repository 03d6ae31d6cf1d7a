//! Identity of paths (which ones mean the same file), and atomic renames.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The identity of a file or folder, which also recognizes it behind links.
#[derive(Clone, Debug)]
pub struct FileIdentity {
    /// The path without links and dots, as far as it exists.
    canonical: PathBuf,
    /// Device and inode number of the existing file.
    inode: Option<(u64, u64)>,
}

impl FileIdentity {
    /// Returns the identity of what is, or would be, at a path.
    pub fn of(path: &Path) -> Self {
        Self { canonical: canonical(path), inode: inode(path) }
    }

    /// Whether both paths mean the same file or folder.
    pub fn is_same(&self, other: &Self) -> bool {
        self.canonical == other.canonical || self.inode.is_some() && self.inode == other.inode
    }

    /// Whether this path lies in the folder `other`, at any depth.
    pub fn is_inside(&self, other: &Self) -> bool {
        self.canonical != other.canonical && self.canonical.starts_with(&other.canonical)
    }
}

/// Returns the folder of a path; the current folder if the path has none.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Resolves a link, so that what it leads to is replaced and not the link.
pub fn resolve_link(path: &Path) -> Cow<'_, Path> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => path.canonicalize().map_or(Cow::Borrowed(path), Cow::Owned),
        _ => Cow::Borrowed(path),
    }
}

/// Whether a path is a device or a pipe, which a renamed file cannot replace.
pub fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

/// Resolves the existing folders of a path, and appends the names that do not exist yet.
fn canonical(path: &Path) -> PathBuf {
    if let Ok(canonical) = path.canonicalize() {
        return canonical;
    }
    match path.file_name() {
        Some(name) => canonical(folder_of(path)).join(name),
        None => path.into(),
    }
}

#[cfg(unix)]
fn inode(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn inode(_: &Path) -> Option<(u64, u64)> {
    None
}

/// Renames with `flags`; false when the system does not support them. See [`rename_no_replace`] and [`exchange`].
#[cfg(target_os = "linux")]
fn rename_with(from: &Path, to: &Path, flags: rustix::fs::RenameFlags) -> std::io::Result<bool> {
    use rustix::io::Errno;
    match rustix::fs::renameat_with(rustix::fs::CWD, from, rustix::fs::CWD, to, flags) {
        Ok(()) => Ok(true),
        // The kernel or the file system does not support these renames.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Renames `from` to `to` if `to` does not exist; otherwise the error has the kind `AlreadyExists`.
pub fn rename_no_replace(from: &Path, to: &Path) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    if rename_with(from, to, rustix::fs::RenameFlags::NOREPLACE)? {
        return Ok(());
    }
    if to.symlink_metadata().is_ok() {
        return Err(std::io::ErrorKind::AlreadyExists.into());
    }
    std::fs::rename(from, to)
}

/// Exchanges two names, so that both exist at every moment. Returns false when the system does not support it.
pub fn exchange(one: &Path, other: &Path) -> std::io::Result<bool> {
    #[cfg(target_os = "linux")]
    return rename_with(one, other, rustix::fs::RenameFlags::EXCHANGE);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (one, other);
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_between_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::write(&from, "new").unwrap();
        std::fs::write(&to, "stranger").unwrap();
        assert_eq!(rename_no_replace(&from, &to).unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
        std::fs::remove_file(&to).unwrap();
        rename_no_replace(&from, &to).unwrap();
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "new");
    }

    #[test]
    fn a_path_that_is_not_there_yet_is_known_by_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out").join("file");
        let dotted = folder.path().join(".").join("out").join("file");
        assert!(FileIdentity::of(&path).is_same(&FileIdentity::of(&dotted)));
        assert!(FileIdentity::of(&path).is_inside(&FileIdentity::of(&folder.path().join("out"))));
        assert!(
            !FileIdentity::of(&folder.path().join("output"))
                .is_inside(&FileIdentity::of(&folder.path().join("out")))
        );
    }

    #[cfg(unix)]
    #[test]
    fn two_names_of_one_file_are_the_same_and_two_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        let (one, other, link, hard) = (path("one"), path("other"), path("link"), path("hard"));
        std::fs::write(&one, "same").unwrap();
        std::fs::write(&other, "same").unwrap();
        std::os::unix::fs::symlink(&one, &link).unwrap();
        std::fs::hard_link(&one, &hard).unwrap();
        let is_one = |path| FileIdentity::of(&one).is_same(&FileIdentity::of(path));
        assert!(is_one(&one) && is_one(&link) && is_one(&hard));
        assert!(!is_one(&other) && !is_one(&path("absent")));
        assert!(!FileIdentity::of(&one).is_inside(&FileIdentity::of(&one)));
        assert_eq!(folder_of(Path::new("name")), Path::new("."));
        assert_eq!(folder_of(Path::new("a/name")), Path::new("a"));
    }

    #[test]
    fn names_are_exchanged() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        std::fs::write(&one, "1").unwrap();
        std::fs::write(&other, "2").unwrap();
        if exchange(&one, &other).unwrap() {
            let read = |path| std::fs::read_to_string(path).unwrap();
            assert_eq!((read(&one), read(&other)), ("2".into(), "1".into()));
        }
    }
}
