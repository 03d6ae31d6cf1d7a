//! A store holds files under relative paths: a local folder, or storage that a cluster shares. A file is visible when
//! it is whole, and never before. The same holds for the outputs of a run in the file system of a machine:
//!
//! | module | contents |
//! |---|---|
//! | [`temp_output`] | temporary outputs, which no end of the process leaves behind |
//! | [`file_identity`] | which paths mean the same file; atomic renames |
//! | [`machine`] | the name of the machine, and which processes it has |

mod error;
pub mod file_identity;
mod local;
pub mod machine;
#[cfg(any(feature = "cloud", feature = "hdfs"))]
mod object;
mod path;
mod store;
pub mod temp_output;

use std::sync::Arc;

pub use error::Error;
pub use local::LocalFolder;
pub use store::{Entry, EntryKind, FileWriter, Store};
pub use temp_output::{TempOutput, TempOutputs};

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
