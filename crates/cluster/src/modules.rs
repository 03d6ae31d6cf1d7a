//! WebAssembly modules with PS functions. The program that submits a job reads them once and sends them with the job. A
//! build without the feature `wasm` reports an error when a job names modules.

use matrix::FunctionTable;
use rpc::message::Base64Bytes;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The function with which a server loads modules.
#[cfg(feature = "wasm")]
pub const OF_JOBS: Option<server::ModuleLoader> = Some(table_of);
/// A server of this build cannot load modules.
#[cfg(not(feature = "wasm"))]
pub const OF_JOBS: Option<server::ModuleLoader> = None;

/// The function with which a submitting program reads modules from files.
type FileReader = fn(&[String]) -> Result<Vec<Base64Bytes>, Error>;
#[cfg(feature = "wasm")]
const OF_FILES: Option<FileReader> = Some(read);
#[cfg(not(feature = "wasm"))]
const OF_FILES: Option<FileReader> = None;

/// The modules of a job, as they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Modules(Vec<Base64Bytes>);

impl Modules {
    /// Reads the files and checks that they are modules with PS functions.
    pub fn read(files: &[String]) -> Result<Self, Error> {
        Self::read_with(OF_FILES, files)
    }

    fn read_with(reader: Option<FileReader>, files: &[String]) -> Result<Self, Error> {
        match reader {
            _ if files.is_empty() => Ok(Self::default()),
            None => Err(no_modules_error()),
            Some(read) => read(files).map(Self),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Total size of the modules.
    pub fn len_bytes(&self) -> usize {
        self.0.iter().map(|module| module.0.len()).sum()
    }

    /// The modules in the form of the messages to servers.
    pub fn list(&self) -> &[Base64Bytes] {
        &self.0
    }

    /// Returns `table` extended by the functions of the modules.
    pub fn extend_table(&self, table: &FunctionTable) -> Result<FunctionTable, Error> {
        self.extend_table_with(OF_JOBS, table)
    }

    fn extend_table_with(
        &self,
        reader: Option<server::ModuleLoader>,
        table: &FunctionTable,
    ) -> Result<FunctionTable, Error> {
        match reader {
            _ if self.is_empty() => Ok(table.clone()),
            None => Err(no_modules_error()),
            Some(table_of) => table_of(table, &self.0).map_err(|what| Error::InvalidRequest {
                what,
                advice: "fix the file, or leave it out".into(),
            }),
        }
    }
}

#[cfg(feature = "wasm")]
fn read(files: &[String]) -> Result<Vec<Base64Bytes>, Error> {
    let uploads = wasm::module_file::read_all(files, &wasm::Limits::default()).map_err(|error| {
        let advice = "docs/wasm-functions.md describes what a module must export".into();
        Error::InvalidRequest { what: error.to_string(), advice }
    })?;
    Ok(uploads.iter().map(|upload| Base64Bytes(upload.encode())).collect())
}

fn no_modules_error() -> Error {
    Error::InvalidRequest {
        what: "this program was built without WebAssembly modules, so it does not support --functions".into(),
        advice: "build it with them: cargo build --release -p seraphim --features wasm".into(),
    }
}

#[cfg(feature = "wasm")]
fn table_of(table: &FunctionTable, modules: &[Base64Bytes]) -> Result<FunctionTable, String> {
    use wasm::module_file::{ModuleFile, extend_table};

    let uploads = modules.iter().map(|module| ModuleFile::decode(&module.0)).collect::<Result<Vec<_>, _>>();
    let uploads = uploads.map_err(|fault| format!("a module of the job: {fault}"))?;
    extend_table(table, &uploads, &wasm::Limits::default()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_modules_says_so_to_whoever_brings_some() {
        let builtin = FunctionTable::builtin();
        let refused = [
            Modules::read_with(None, &["any.wasm".to_owned()]).map(drop),
            Modules(vec![Base64Bytes(b"\0asm".to_vec())]).extend_table_with(None, &builtin).map(drop),
        ];
        for result in refused {
            let error = result.unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains("built without WebAssembly modules") && text.contains("--features wasm"),
                "{text}"
            );
            assert_eq!(error.exit(), crate::exit::Exit::Usage);
        }
        assert!(Modules::read_with(None, &[]).unwrap().is_empty());
        Modules::default().extend_table_with(None, &builtin).unwrap();
    }
}
