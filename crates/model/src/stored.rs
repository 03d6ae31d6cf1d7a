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
    check_absent(&*store, overwrite)?;
    let trial = format!("{TRIAL}-{}", std::process::id());
    store.create_new(&trial, b"")?;
    Ok(store.remove(&trial)?)
}

fn check_absent(store: &dyn Store, overwrite: bool) -> Result<(), Error> {
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

/// Copies a model folder of this machine to an address.
pub(crate) fn upload(from: &Path, address: &str, overwrite: bool) -> Result<(), Error> {
    let store = store::open(address)?;
    check_absent(&*store, overwrite)?;
    store.remove(FILE_NAME)?;
    for entry in store.list("")? {
        store.remove(&entry.name)?;
    }
    let entries = std::fs::read_dir(from).map_err(Error::io("list", from))?;
    for entry in entries {
        let name = entry.map_err(Error::io("list", from))?.file_name();
        if let Some(name) = name.to_str().filter(|name| *name != FILE_NAME) {
            store::upload(&from.join(name), &*store, name)?;
        }
    }
    let manifest = std::fs::read(from.join(FILE_NAME)).map_err(Error::io("read", from))?;
    if store.create_new(FILE_NAME, &manifest)? {
        Ok(())
    } else {
        Err(Error::ModelExists { path: address.into() })
    }
}

/// The bytes of the manifest of a model.
pub(crate) fn manifest(address: &str) -> Result<Vec<u8>, Error> {
    let missing = || Error::NotAModel { path: address.into(), reason: "there is no model.json".into() };
    store::open(address)?.read(FILE_NAME).map_err(
        |error| {
            if error.is_not_found() { missing() } else { error.into() }
        },
    )
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
        std::io::copy(&mut source, &mut file).map_err(Error::io("copy", &remote))?;
    }
    let path = folder.path().join(FILE_NAME);
    std::fs::write(&path, bytes).map_err(Error::io("write", &path))?;
    Ok(folder)
}
