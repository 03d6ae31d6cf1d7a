//! Which files a model may have: a folder with others is not replaced.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use super::manifest;
use super::names::{DICTIONARY_FILE, OPTIMIZER_FILE, WEIGHTS_FILE};
use crate::error::Error;

/// Whether bytes are a manifest, intact or damaged.
pub(crate) fn is_manifest(bytes: &[u8]) -> bool {
    let name = manifest::FORMAT_NAME.as_bytes();
    bytes.windows(name.len()).any(|window| window == name)
}

/// Checks that a folder with these files has only those of the model with this manifest.
pub(crate) fn check_files(
    path: &Path,
    manifest: &[u8],
    names: impl Iterator<Item = OsString>,
) -> Result<(), Error> {
    let manifest: serde_json::Value = serde_json::from_slice(manifest).unwrap_or_default();
    let listed = manifest["files"].as_array().into_iter().flatten().filter_map(|file| file["name"].as_str());
    let own = [manifest::FILE_NAME, WEIGHTS_FILE, OPTIMIZER_FILE, DICTIONARY_FILE];
    let own: BTreeSet<&str> = listed.chain(own).collect();
    let mut names: Vec<_> = names.collect();
    names.sort();
    match names.into_iter().find(|name| name.to_str().is_none_or(|name| !own.contains(name))) {
        Some(file) => Err(Error::ForeignFileInModel { path: path.into(), file: file.into() }),
        None => Ok(()),
    }
}
