//! WebAssembly modules with PS functions. The program that submits a job reads them once and sends them with the job. A
//! build without the feature `wasm` reports an error when a job names modules.

use driver::Error;
use job::Modules;
use matrix::FunctionTable;
use rpc::message::Base64Bytes;

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

/// Reads the files and checks that they are modules with PS functions.
pub fn read_modules(files: &[String]) -> Result<Modules, Error> {
    read_with(OF_FILES, files)
}

fn read_with(reader: Option<FileReader>, files: &[String]) -> Result<Modules, Error> {
    match reader {
        _ if files.is_empty() => Ok(Modules::default()),
        None => Err(no_modules_error()),
        Some(read) => read(files).map(Modules),
    }
}

/// Returns `table` extended by the functions of the modules.
pub fn extend_table(modules: &Modules, table: &FunctionTable) -> Result<FunctionTable, Error> {
    extend_table_with(OF_JOBS, modules, table)
}

fn extend_table_with(
    reader: Option<server::ModuleLoader>,
    modules: &Modules,
    table: &FunctionTable,
) -> Result<FunctionTable, Error> {
    match reader {
        _ if modules.is_empty() => Ok(table.clone()),
        None => Err(no_modules_error()),
        Some(table_of) => table_of(table, modules.list())
            .map_err(|what| Error::request(what, "fix the file, or leave it out")),
    }
}

#[cfg(feature = "wasm")]
fn read(files: &[String]) -> Result<Vec<Base64Bytes>, Error> {
    let uploads = wasm::module_file::read_all(files, &wasm::Limits::default()).map_err(|error| {
        Error::request(error.to_string(), "docs/wasm-functions.md describes what a module must export")
    })?;
    Ok(uploads.iter().map(|upload| Base64Bytes(upload.encode())).collect())
}

fn no_modules_error() -> Error {
    Error::request(
        "this program was built without WebAssembly modules, so it does not support --functions",
        "build it with them: cargo build --release -p seraphim --features wasm",
    )
}

#[cfg(feature = "wasm")]
fn table_of(table: &FunctionTable, modules: &[Base64Bytes]) -> Result<FunctionTable, String> {
    use wasm::module_file::{self, ModuleFile};

    let uploads = modules.iter().map(|module| ModuleFile::decode(&module.0)).collect::<Result<Vec<_>, _>>();
    let uploads = uploads.map_err(|fault| format!("a module of the job: {fault}"))?;
    module_file::extend_table(table, &uploads, &wasm::Limits::default()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_modules_says_so_to_whoever_brings_some() {
        let builtin = FunctionTable::builtin();
        let refused = [
            read_with(None, &["any.wasm".to_owned()]).map(drop),
            extend_table_with(None, &Modules(vec![Base64Bytes(b"\0asm".to_vec())]), &builtin).map(drop),
        ];
        for result in refused {
            let error = result.unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains("built without WebAssembly modules") && text.contains("--features wasm"),
                "{text}"
            );
            assert_eq!(error.exit(), job::Exit::Usage);
        }
        assert!(read_with(None, &[]).unwrap().is_empty());
        extend_table_with(None, &Modules::default(), &builtin).unwrap();
    }
}
