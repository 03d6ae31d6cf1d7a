//! A store holds files under relative paths: a local folder, or storage that a cluster shares. A file is visible when
//! it is whole, and never before. The same holds for the outputs of a run in the file system of a machine:
//!
//! | module | contents |
//! |---|---|
//! | [`temp_output`] | temporary outputs, which no end of the process leaves behind |
//! | [`file_identity`] | which paths mean the same file; atomic renames |
//! | [`machine`] | the name of the machine, and which processes it has |

mod address;
mod error;
#[cfg(any(feature = "cloud", feature = "hdfs"))]
mod fault;
pub mod file_identity;
mod local;
pub mod machine;
#[cfg(any(feature = "cloud", feature = "hdfs"))]
mod object;
#[cfg(any(feature = "cloud", feature = "hdfs"))]
mod object_calls;
mod path;
mod store;
pub mod temp_output;

use std::os::unix::fs::DirBuilderExt as _;
use std::sync::Arc;

pub use address::address;
pub use error::{Error, io_advice};
pub use local::LocalFolder;
pub use store::{Entry, EntryKind, FileFacts, FileWriter, Store};
pub use temp_output::{TempOutput, TempOutputs};

/// The store of the folder of a file at an address, and the name of the file.
///
/// # Errors
/// Those of [`open`].
pub fn open_folder_of(address: &str) -> Result<(Arc<dyn Store>, &str), Error> {
    let address = address.trim_end_matches('/');
    let (folder, name) = address.rsplit_once('/').unwrap_or(("", address));
    Ok((open(folder)?, name))
}

/// Creates a folder that only its user may read. Object stores have no folders, and rights of their own.
///
/// # Errors
/// Those of the store.
pub fn create_private_folder(location: &str) -> Result<(), Error> {
    match location.split_once("://") {
        None | Some(("file", _)) => {
            let path = location.strip_prefix("file://").unwrap_or(location);
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
            made.map_err(|source| Error::io("create", location, "", source))
        }
        #[cfg(feature = "hdfs")]
        Some(("hdfs", _)) => object::create_private_folder(location),
        Some(_) => Ok(()),
    }
}

/// Copies a local file into a store. It is visible when it is whole.
///
/// # Errors
/// Those of the store, and of the file.
pub fn upload(from: &std::path::Path, store: &dyn Store, path: &str) -> Result<(), Error> {
    let failed = |source| Error::io("write", store.location(), path, source);
    let mut file = std::fs::File::open(from).map_err(failed)?;
    let mut writer = store.create(path)?;
    std::io::copy(&mut file, &mut writer).map_err(failed)?;
    writer.finish()
}

/// Copies all files of a local folder into the root of a store.
///
/// # Errors
/// Those of [`upload`].
pub fn upload_folder(from: &std::path::Path, store: &dyn Store) -> Result<(), Error> {
    let failed = |source| Error::io("write", store.location(), "", source);
    for entry in std::fs::read_dir(from).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        upload(&path, store, path.file_name().and_then(|name| name.to_str()).unwrap_or_default())?;
    }
    Ok(())
}

/// The store at a location: a path, `file://` and a path, or with the feature `cloud` `s3://BUCKET/PATH`, `gs://` and `az://`,
/// with the feature `hdfs` `hdfs://HOST:PORT/PATH`.
///
/// # Errors
/// [`Error::UnknownScheme`], and [`Error::Unusable`] for an address or settings that cannot be.
pub fn open(location: &str) -> Result<Arc<dyn Store>, Error> {
    match location.split_once("://") {
        None | Some(("file", _)) => {
            let path = location.strip_prefix("file://").unwrap_or(location);
            Ok(Arc::new(LocalFolder::new(path.into(), location)))
        }
        Some((scheme, _)) => {
            #[cfg(any(feature = "cloud", feature = "hdfs"))]
            if let Some(opened) = object::ObjectFolder::open(scheme, location) {
                return Ok(Arc::new(opened?));
            }
            Err(Error::UnknownScheme { location: location.into(), scheme: scheme.into() })
        }
    }
}
