//! Module files that are sent with a job: their bytes, a digest that detects a damaged copy, and the function table
//! that they make with the built-ins.

use std::path::Path;

use matrix::function::value::FunctionValue;
use matrix::function::{pack, unpack};
use matrix::{FunctionFault, FunctionTable};
use xxhash_rust::xxh3::xxh3_64;

use crate::{Error, Limits, load};

/// The bytes of a module file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleFile {
    /// The file name that the user gave, for errors.
    pub file: String,
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// XXH3 digest of the bytes, so that processes can compare which module they have.
    pub digest: u64,
}

/// An error of one module file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("functions of {file}: {error}")]
pub struct FileError {
    /// The file name that the user gave.
    pub file: String,
    pub error: Error,
}

impl ModuleFile {
    /// Reads a file and checks that it is a module of functions. A file larger than the limit is not read into memory.
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

    /// Encodes the file as bytes that a job can contain.
    pub fn encode(&self) -> Vec<u8> {
        pack(self)
    }

    /// Decodes bytes from [`Self::encode`]. Bytes that do not match the digest are an error.
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

/// Reads several module files.
pub fn read_all(paths: &[impl AsRef<Path>], limits: &Limits) -> Result<Vec<ModuleFile>, FileError> {
    paths.iter().map(|path| ModuleFile::read(path.as_ref(), limits)).collect()
}

/// Returns the functions of `table` and those of the modules. Every process of a job makes the same table from the same
/// files.
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

/// Returns the built-in functions and those of the modules.
pub fn table_with_builtins(uploads: &[ModuleFile], limits: &Limits) -> Result<FunctionTable, FileError> {
    extend_table(&FunctionTable::builtin(), uploads, limits)
}

/// Returns the built-in functions and those of the module files at `paths`: the table of `--functions FILE.wasm`.
pub fn load_functions(paths: &[impl AsRef<Path>], limits: &Limits) -> Result<FunctionTable, FileError> {
    table_with_builtins(&read_all(paths, limits)?, limits)
}
