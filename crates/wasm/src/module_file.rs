//! Modules that travel with a job: the bytes of the files, with what tells a broken copy, and the table that they make with the
//! built-ins.

use std::path::Path;

use matrix::function::value::FunctionValue;
use matrix::function::{pack, unpack};
use matrix::{FunctionFault, FunctionTable};
use xxhash_rust::xxh3::xxh3_64;

use crate::{Error, Limits, load};

/// The bytes of a module file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleFile {
    /// As the user named the file, for errors.
    pub file: String,
    /// The module.
    pub bytes: Vec<u8>,
    /// XXH3 of the bytes, so that processes can say which module they hold.
    pub digest: u64,
}

/// A file and what is wrong with it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("functions of {file}: {error}")]
pub struct FileError {
    /// As the user named the file.
    pub file: String,
    /// What is wrong.
    pub error: Error,
}

impl ModuleFile {
    /// Reads a file, of which no more than `limits` allow are taken into memory, and checks that it is a module of
    /// functions.
    pub fn read(path: &Path, limits: &Limits) -> Result<Self, FileError> {
        let file = path.display().to_string();
        let of_file = |error| FileError { file: file.clone(), error };
        let cannot = |error: std::io::Error| of_file(Error::File { reason: error.to_string() });
        let len = std::fs::metadata(path).map_err(cannot)?.len();
        if len > limits.module_bytes as u64 {
            return Err(of_file(Error::TooLarge { actual: len as usize, limit: limits.module_bytes }));
        }
        let bytes = std::fs::read(path).map_err(cannot)?;
        load(&bytes, limits).map_err(of_file)?;
        let digest = xxh3_64(&bytes);
        Ok(Self { file, bytes, digest })
    }

    /// As bytes that a job can carry.
    pub fn encode(&self) -> Vec<u8> {
        pack(self)
    }

    /// Out of such bytes; those of another module than the digest says are an error.
    pub fn decode(bytes: &[u8]) -> Result<Self, FunctionFault> {
        unpack(bytes)
    }
}

impl FunctionValue for ModuleFile {
    fn pack(&self, out: &mut Vec<u8>) {
        self.file.pack(out);
        self.bytes.pack(out);
        self.digest.pack(out);
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        let (file, own, digest) = <(String, Vec<u8>, u64)>::unpack(bytes)?;
        let actual = xxh3_64(&own);
        if actual == digest {
            return Ok(Self { file, bytes: own, digest });
        }
        let what = format!("digest of the functions of {file}");
        Err(FunctionFault::argument(
            what,
            format!("{actual:016x}"),
            format!("{digest:016x}: send them again"),
        ))
    }

    fn is_finite(&self) -> bool {
        true
    }
}

/// Reads module files, as a user names them.
pub fn read_all(paths: &[impl AsRef<Path>], limits: &Limits) -> Result<Vec<ModuleFile>, FileError> {
    paths.iter().map(|path| ModuleFile::read(path.as_ref(), limits)).collect()
}

/// The functions of `table` and those of the modules. Every process of a job makes the same table of the same uploads.
pub fn extend_table(
    table: &FunctionTable,
    uploads: &[ModuleFile],
    limits: &Limits,
) -> Result<FunctionTable, FileError> {
    let mut table = table.clone();
    for upload in uploads {
        let of_file = |error| FileError { file: upload.file.clone(), error };
        load(&upload.bytes, limits).and_then(|module| module.register(&mut table)).map_err(of_file)?;
    }
    Ok(table)
}

/// The same with the built-ins.
pub fn table_with_builtins(uploads: &[ModuleFile], limits: &Limits) -> Result<FunctionTable, FileError> {
    extend_table(&FunctionTable::builtin(), uploads, limits)
}

/// The built-ins and the functions of the modules in these files: what `--functions FILE.wasm` makes.
pub fn load_functions(paths: &[impl AsRef<Path>], limits: &Limits) -> Result<FunctionTable, FileError> {
    table_with_builtins(&read_all(paths, limits)?, limits)
}
