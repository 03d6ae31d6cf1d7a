//! Compiles the bytes of a file and registers its functions in a table.

use std::collections::BTreeMap;

use matrix::function::Arity;
use matrix::{ElementType, FunctionTable};
use wasmtime::{Config, Engine, ExternType, Linker, TypedFunc, WasmParams, WasmResults};

use crate::exports::{
    AnswerArguments, ChangeArguments, ExportKind, MEMORY, MergeArguments, ParsedExport, ReadArguments,
    TYPE_COUNT, TermsArguments, parse_export, type_index,
};
use crate::sandbox::{Sandbox, SandboxFactory};
use crate::signature::FunctionSignature;
use crate::{Error, Limits, WasmPull, WasmPush, WasmSum};

/// The first bytes of every binary module.
const MAGIC: &[u8] = b"\0asm";

/// A module whose functions can be called.
#[derive(Clone)]
pub struct Module {
    recipe: SandboxFactory,
    signatures: Vec<FunctionSignature>,
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.signatures).finish()
    }
}

/// Compiles a module and reads its function signatures. The module is not trusted: it gets no imports, and `limits`
/// bound what it uses.
pub fn load(bytes: &[u8], limits: &Limits) -> Result<Module, Error> {
    if bytes.len() > limits.module_bytes {
        return Err(Error::TooLarge { actual: bytes.len(), limit: limits.module_bytes });
    }
    if !bytes.starts_with(MAGIC) {
        let begin = &bytes[..bytes.len().min(MAGIC.len())];
        let reason = format!("it begins with the bytes {begin:02x?}, expected {MAGIC:02x?}");
        return Err(Error::NotWasm { reason });
    }
    let engine = engine()?;
    let module = wasmtime::Module::new(&engine, bytes)
        .map_err(|error| Error::NotWasm { reason: format!("{error:#}") })?;
    let names: Vec<String> =
        module.imports().map(|import| format!("{}.{}", import.module(), import.name())).collect();
    if !names.is_empty() {
        return Err(Error::Imports { names });
    }
    match module.get_export(MEMORY) {
        Some(ExternType::Memory(_)) => {}
        Some(_) => return Err(Error::export(MEMORY, "no memory", "a memory")),
        None => return Err(Error::export(MEMORY, "not there", "a memory")),
    }
    let start = |error: wasmtime::Error| Error::Start { reason: format!("{error:#}") };
    let instance = Linker::new(&engine).instantiate_pre(&module).map_err(start)?;
    let recipe = SandboxFactory { engine, instance, limits: *limits };
    let mut sandbox = recipe.instantiate().map_err(|fault| Error::Start { reason: fault.to_string() })?;
    let exports: Vec<&str> = module.exports().map(|export| export.name()).collect();
    let functions = read_signatures(&exports, &mut sandbox)?;
    Ok(Module { recipe, signatures: functions })
}

impl Module {
    /// Adds all functions of the module to a table. After an error the table may hold some of them.
    pub fn register(&self, table: &mut FunctionTable) -> Result<(), Error> {
        for facts in &self.signatures {
            let (facts, recipe) = (facts.clone(), self.recipe.clone());
            match facts.kind {
                ExportKind::Change => table.add_push(WasmPush::new(facts, recipe))?,
                ExportKind::Terms => table.add_pull(WasmSum::new(facts, recipe))?,
                ExportKind::Read => table.add_pull(WasmPull::new(facts, recipe))?,
            };
        }
        Ok(())
    }

    /// Returns the names of the functions, ascending.
    pub fn names(&self) -> Vec<&str> {
        self.signatures.iter().map(|facts| facts.name.as_str()).collect()
    }
}

/// Creates an engine without the features whose results differ between machines.
fn engine() -> Result<Engine, Error> {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .wasm_multi_memory(false);
    Engine::new(&config).map_err(|error| Error::Machine { reason: format!("{error:#}") })
}

/// Reads the functions that the exports define and checks each of them.
fn read_signatures(exports: &[&str], sandbox: &mut Sandbox) -> Result<Vec<FunctionSignature>, Error> {
    let mut kinds: BTreeMap<&str, (ExportKind, [bool; TYPE_COUNT])> = BTreeMap::new();
    let meanings = exports.iter().map(|export| Ok((*export, parse_export(export)?)));
    let meanings = meanings.collect::<Result<Vec<_>, Error>>()?;
    for (export, meaning) in &meanings {
        let ParsedExport::Code(kind, name, element) = meaning else { continue };
        let (first, types) = kinds.entry(name).or_insert((*kind, [false; TYPE_COUNT]));
        if first != kind {
            let actual =
                format!("{} code of {name}, which has {} code as well", kind.prefix(), first.prefix());
            return Err(Error::export(export, actual, "one kind of code for a function"));
        }
        types[type_index(*element)] = true;
    }
    for (export, meaning) in &meanings {
        if let ParsedExport::Property(name) = meaning
            && !kinds.contains_key(name)
        {
            let actual = format!("a property of {name:?}, which has no code export");
            return Err(Error::export(
                export,
                actual,
                format!("an export such as change:{name}:TYPE beside it"),
            ));
        }
    }
    if kinds.is_empty() {
        return Err(Error::Empty);
    }
    let mut reader = ExportReader { exports, sandbox };
    kinds.into_iter().map(|(name, (kind, types))| reader.signature(name, kind, types)).collect()
}

/// Reads the properties of functions from exports.
struct ExportReader<'a> {
    exports: &'a [&'a str],
    sandbox: &'a mut Sandbox,
}

impl ExportReader<'_> {
    fn signature(
        &mut self,
        name: &str,
        kind: ExportKind,
        types: [bool; TYPE_COUNT],
    ) -> Result<FunctionSignature, Error> {
        for (has_code, element) in types.iter().zip(ElementType::ALL) {
            let export = format!("{}:{name}:{}", kind.prefix(), element.name());
            match kind {
                _ if !has_code => {}
                ExportKind::Change => self.check_type::<ChangeArguments, i32>(&export)?,
                ExportKind::Terms => self.check_type::<TermsArguments, i32>(&export)?,
                ExportKind::Read => self.check_type::<ReadArguments, u64>(&export)?,
            }
        }
        let answer = format!("answer:{name}");
        let answers = kind == ExportKind::Read && self.has(&answer);
        if kind == ExportKind::Read {
            self.check_type::<MergeArguments, u64>(&format!("merge:{name}"))?;
            if answers {
                self.check_type::<AnswerArguments, u64>(&answer)?;
            }
        }
        let writes =
            if kind == ExportKind::Change { self.count("writes", name)? } else { Some(Arity::Exactly(0)) };
        let version = self.constant("version", name)?.unwrap_or(1);
        let version = u32::try_from(version).map_err(|_| {
            Error::export(&format!("version:{name}"), format!("a function that gave {version}"), "0 or more")
        })?;
        Ok(FunctionSignature {
            name: name.to_owned(),
            kind,
            version,
            reads: self.required_count("reads", name)?,
            writes: writes.map_or_else(|| self.required_count("writes", name), Ok)?,
            arguments: self.count("arguments", name)?,
            // A module is not trusted, so its code may trap anywhere.
            tries_first: self.constant("tries_first", name)? != Some(0),
            overwrites: self.constant("overwrites", name)?.is_some_and(|number| number != 0),
            types,
            has_answer: answers,
        })
    }

    fn has(&self, export: &str) -> bool {
        self.exports.contains(&export)
    }

    /// Checks the type of an export, if the export exists.
    fn check_type<P: WasmParams, R: WasmResults>(&mut self, export: &str) -> Result<(), Error> {
        if self.has(export) {
            return self.sandbox.function::<P, R>(export).map(drop);
        }
        Err(Error::export(export, "not there", "a function of the interface"))
    }

    /// Returns the result of a function without arguments, if the module exports it.
    fn constant(&mut self, word: &str, name: &str) -> Result<Option<i32>, Error> {
        let export = format!("{word}:{name}");
        if !self.has(&export) {
            return Ok(None);
        }
        let function: TypedFunc<(), i32> = self.sandbox.function(&export)?;
        let number = self.sandbox.call(&export, &function, 0, ());
        number.map(Some).map_err(|fault| Error::export(&export, fault.to_string(), "a number"))
    }

    /// Returns a number of rows. The module exports n for exactly n, or -n for n or more.
    fn count(&mut self, word: &str, name: &str) -> Result<Option<Arity>, Error> {
        let count = |n: i32| {
            let size = n.unsigned_abs() as usize;
            if n < 0 { Arity::AtLeast(size) } else { Arity::Exactly(size) }
        };
        Ok(self.constant(word, name)?.map(count))
    }

    fn required_count(&mut self, word: &str, name: &str) -> Result<Arity, Error> {
        let expected =
            "a function without arguments that gives a number of rows, negative for that many or more";
        self.count(word, name)?.ok_or_else(|| Error::export(&format!("{word}:{name}"), "not there", expected))
    }
}
