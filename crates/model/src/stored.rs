//! Models in stores, such as `hdfs://HOST:PORT/PATH`. `model.json` is written last and removed first, so a model is there when all of it
//! is. A model that is read is first copied to this machine.

use std::path::Path;

use store::Store;
use tempfile::TempDir;

use super::manifest::{FILE_NAME, Manifest};
use super::own_files::{check_files, is_manifest};
use crate::error::Error;

/// The name of a file that tests whether something can be written.
const TRIAL: &str = "trial";

/// As [`super::write::check_target`].
pub(crate) fn check_target(address: &str, overwrite: bool) -> Result<(), Error> {
    let store = store::open(address)?;
    check_replaceable(&*store, overwrite)?;
    let trial = format!("{TRIAL}-{}", std::process::id());
    store.create_new(&trial, b"")?;
    Ok(store.remove(&trial)?)
}

/// As [`super::write::check_absent`]. A program without this kind of store leaves that to those that write the model.
pub(crate) fn check_absent(address: &str, overwrite: bool) -> Result<(), Error> {
    match store::open(address) {
        Ok(store) => check_replaceable(&*store, overwrite),
        Err(store::Error::UnknownScheme { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Checks that nothing is there, or with `overwrite` a model without other files.
fn check_replaceable(store: &dyn Store, overwrite: bool) -> Result<(), Error> {
    let path = Path::new(store.location());
    let names: Vec<String> = store.list("")?.into_iter().map(|entry| entry.name).collect();
    if names.is_empty() {
        return Ok(());
    }
    if !overwrite {
        return Err(Error::ModelExists { path: path.into() });
    }
    let manifest =
        if names.iter().any(|name| name == FILE_NAME) { store.read(FILE_NAME)? } else { Vec::new() };
    if !is_manifest(&manifest) {
        return Err(Error::NotReplaceable { path: path.into() });
    }
    check_files(path, &manifest, names.into_iter().map(Into::into))
}

/// Moves a model folder of this machine to an address.
pub(crate) fn upload(from: &Path, address: &str, overwrite: bool) -> Result<(), Error> {
    let store = store::open(address)?;
    check_replaceable(&*store, overwrite)?;
    store.remove(FILE_NAME)?;
    for entry in store.list("")? {
        store.remove(&entry.name)?;
    }
    let path = from.join(FILE_NAME);
    let manifest = std::fs::read(&path).map_err(Error::io("read", &path))?;
    std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
    store::upload_folder(from, &*store)?;
    if store.create_new(FILE_NAME, &manifest)? {
        Ok(())
    } else {
        Err(Error::ModelExists { path: address.into() })
    }
}

/// The bytes of the manifest of a model.
pub(crate) fn manifest(address: &str) -> Result<Vec<u8>, Error> {
    store::open(address)?.read(FILE_NAME).map_err(|error| match error {
        store::Error::NotFound { .. } => {
            Error::NotAModel { path: address.into(), reason: "there is no model.json".into() }
        }
        error => error.into(),
    })
}

/// Copies the files of a model to a temporary folder of this machine.
pub(crate) fn download(address: &str, manifest: &Manifest, bytes: &[u8]) -> Result<TempDir, Error> {
    let folder = tempfile::Builder::new().prefix("seraphim-model-").tempdir();
    let folder = folder.map_err(Error::io("create a folder in", &std::env::temp_dir()))?;
    let store = store::open(address)?;
    for entry in &manifest.files {
        let path = folder.path().join(&entry.name);
        let mut file = std::fs::File::create(&path).map_err(Error::io("create", &path))?;
        let mut source = store.open(&entry.name)?;
        let remote = Path::new(address).join(&entry.name);
        std::io::copy(&mut source, &mut file).map_err(|error| match error.kind() {
            std::io::ErrorKind::StorageFull => Error::io("write", &path)(error),
            _ => Error::io("copy", &remote)(error),
        })?;
    }
    let path = folder.path().join(FILE_NAME);
    std::fs::write(&path, bytes).map_err(Error::io("write", &path))?;
    Ok(folder)
}
