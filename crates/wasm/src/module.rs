//! From the bytes of a file to functions in a table.

use std::collections::BTreeMap;

use matrix::function::{Count, Shape};
use matrix::{FunctionFault, FunctionTable};
use wasmtime::{Config, Engine, ExternType, Linker, TypedFunc, WasmParams, WasmResults};

use crate::names::{
    AnswerArguments, ChangeArguments, Kind, MEMORY, Meaning, MergeArguments, ReadArguments, TYPES,
    TermsArguments, meaning, place,
};
use crate::push::no_code;
use crate::sandbox::{Recipe, Sandbox};
use crate::{Error, Limits, WasmPull, WasmPush, WasmSum};

/// The first bytes of every binary module.
const MAGIC: &[u8] = b"\0asm";

/// A module whose functions can be called.
#[derive(Clone)]
pub struct Module {
    recipe: Recipe,
    functions: Vec<Facts>,
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.functions).finish()
    }
}

/// What a module says of one of its functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) version: u32,
    pub(crate) reads: Count,
    pub(crate) writes: Count,
    /// Numbers in the argument.
    pub(crate) arguments: Option<Count>,
    /// Whether it is tried on all partitions before it changes the first.
    pub(crate) tries_first: bool,
    /// Whether it writes all of its rows without looking at what they held.
    pub(crate) overwrites: bool,
    /// For which element types there is code.
    pub(crate) types: [bool; 3],
    /// Whether the answer is made of the last part by code.
    pub(crate) answers: bool,
}

/// What every function of a module says of itself, in the words of the trait that it implements.
macro_rules! says_its_facts {
    () => {
        fn name(&self) -> &str {
            &self.facts.name
        }

        fn version(&self) -> u32 {
            self.facts.version
        }

        fn reads(&self) -> Count {
            self.facts.reads
        }

        fn check(&self, argument: &Vec<f64>, shape: &Shape) -> Result<(), FunctionFault> {
            self.facts.check(argument, shape)
        }
    };
}
pub(crate) use says_its_facts;

/// Compiles a module and looks at its functions. Nothing of it is trusted: it gets no imports, and what it may take is
/// bounded.
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
    let recipe = Recipe { engine, instance, limits: *limits };
    let mut sandbox = recipe.sandbox().map_err(|fault| Error::Start { reason: fault.to_string() })?;
    let exports: Vec<&str> = module.exports().map(|export| export.name()).collect();
    let functions = functions(&exports, &mut sandbox)?;
    Ok(Module { recipe, functions })
}

impl Module {
    /// Adds all functions of the module to a table. After an error it may hold some of them.
    pub fn register(&self, table: &mut FunctionTable) -> Result<(), Error> {
        for facts in &self.functions {
            let (facts, recipe) = (facts.clone(), self.recipe.clone());
            match facts.kind {
                Kind::Change => table.add_push(WasmPush::new(facts, recipe))?,
                Kind::Terms => table.add_pull(WasmSum::new(facts, recipe))?,
                Kind::Read => table.add_pull(WasmPull::new(facts, recipe))?,
            };
        }
        Ok(())
    }

    /// Names of the functions, ascending.
    pub fn names(&self) -> Vec<&str> {
        self.functions.iter().map(|facts| facts.name.as_str()).collect()
    }
}

/// Everything that a module could do differently on another machine is off.
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

/// The functions that exports make, each checked.
fn functions(exports: &[&str], sandbox: &mut Sandbox) -> Result<Vec<Facts>, Error> {
    let mut kinds: BTreeMap<&str, (Kind, [bool; 3])> = BTreeMap::new();
    let meanings = exports.iter().map(|export| Ok((*export, meaning(export)?)));
    let meanings = meanings.collect::<Result<Vec<_>, Error>>()?;
    for (export, meaning) in &meanings {
        let Meaning::Code(kind, name, element) = meaning else { continue };
        let (first, types) = kinds.entry(name).or_insert((*kind, [false; 3]));
        if first != kind {
            let actual = format!("{} code of {name}, which has {} code as well", kind.word(), first.word());
            return Err(Error::export(export, actual, "one kind of code for a function"));
        }
        types[place(*element)] = true;
    }
    for (export, meaning) in &meanings {
        if let Meaning::About(name) = meaning
            && !kinds.contains_key(name)
        {
            let actual = format!("about {name:?}, of which there is no code");
            return Err(Error::export(export, actual, format!("change:{name}:TYPE or the like beside it")));
        }
    }
    if kinds.is_empty() {
        return Err(Error::Empty);
    }
    let mut reader = Reader { exports, sandbox };
    kinds.into_iter().map(|(name, (kind, types))| reader.facts(name, kind, types)).collect()
}

/// Reads what exports say.
struct Reader<'a> {
    exports: &'a [&'a str],
    sandbox: &'a mut Sandbox,
}

impl Reader<'_> {
    fn facts(&mut self, name: &str, kind: Kind, types: [bool; 3]) -> Result<Facts, Error> {
        for (has_code, (_, element)) in types.iter().zip(TYPES) {
            let export = format!("{}:{name}:{element}", kind.word());
            match kind {
                _ if !has_code => {}
                Kind::Change => self.typed::<ChangeArguments, i32>(&export)?,
                Kind::Terms => self.typed::<TermsArguments, i32>(&export)?,
                Kind::Read => self.typed::<ReadArguments, u64>(&export)?,
            }
        }
        let answer = format!("answer:{name}");
        let answers = kind == Kind::Read && self.has(&answer);
        if kind == Kind::Read {
            self.typed::<MergeArguments, u64>(&format!("merge:{name}"))?;
            if answers {
                self.typed::<AnswerArguments, u64>(&answer)?;
            }
        }
        let writes = if kind == Kind::Change { self.count("writes", name)? } else { Some(Count::Exactly(0)) };
        let version = self.number("version", name)?.unwrap_or(1);
        let version = u32::try_from(version).map_err(|_| {
            Error::export(&format!("version:{name}"), format!("a function that gave {version}"), "0 or more")
        })?;
        Ok(Facts {
            name: name.to_owned(),
            kind,
            version,
            reads: self.needed("reads", name)?,
            writes: writes.map_or_else(|| self.needed("writes", name), Ok)?,
            arguments: self.count("arguments", name)?,
            // Code that nobody vouches for may trap anywhere.
            tries_first: self.number("tries_first", name)? != Some(0),
            overwrites: self.number("overwrites", name)?.is_some_and(|number| number != 0),
            types,
            answers,
        })
    }

    fn has(&self, export: &str) -> bool {
        self.exports.contains(&export)
    }

    /// Whether an export is there with a type.
    fn typed<P: WasmParams, R: WasmResults>(&mut self, export: &str) -> Result<(), Error> {
        if self.has(export) {
            return self.sandbox.function::<P, R>(export).map(drop);
        }
        Err(Error::export(export, "not there", "a function of the interface"))
    }

    /// What a function without arguments gives, if there is one.
    fn number(&mut self, word: &str, name: &str) -> Result<Option<i32>, Error> {
        let export = format!("{word}:{name}");
        if !self.has(&export) {
            return Ok(None);
        }
        let function: TypedFunc<(), i32> = self.sandbox.function(&export)?;
        let number = self.sandbox.call(&export, &function, 0, ());
        number.map(Some).map_err(|fault| Error::export(&export, fault.to_string(), "a number"))
    }

    /// A number of rows: n, or -n for n or more.
    fn count(&mut self, word: &str, name: &str) -> Result<Option<Count>, Error> {
        let count = |n: i32| {
            let size = n.unsigned_abs() as usize;
            if n < 0 { Count::AtLeast(size) } else { Count::Exactly(size) }
        };
        Ok(self.number(word, name)?.map(count))
    }

    fn needed(&mut self, word: &str, name: &str) -> Result<Count, Error> {
        let expected =
            "a function without arguments that gives a number of rows, negative for that many or more";
        self.count(word, name)?.ok_or_else(|| Error::export(&format!("{word}:{name}"), "not there", expected))
    }
}

impl Facts {
    /// The functions of an instance that do the work, by element type.
    pub(crate) fn code<P: WasmParams, R: WasmResults>(
        &self,
        sandbox: &mut Sandbox,
        kind: Kind,
    ) -> Result<[Option<TypedFunc<P, R>>; 3], FunctionFault> {
        let mut code = [const { None }; 3];
        for (i, (_, element)) in TYPES.iter().enumerate() {
            if self.types[i] {
                let export = format!("{}:{}:{element}", kind.word(), self.name);
                let function = sandbox.function(&export);
                code[i] = Some(function.map_err(|error| FunctionFault::own(error.to_string()))?);
            }
        }
        Ok(code)
    }

    /// Refuses what the module does not take.
    pub(crate) fn check(&self, argument: &[f64], shape: &Shape) -> Result<(), FunctionFault> {
        let element = place(shape.element);
        if !self.types[element] {
            let known: Vec<&str> =
                TYPES.iter().zip(self.types).filter(|(_, has)| *has).map(|((_, text), _)| *text).collect();
            let expected = format!("{}, for which the module has code", known.join(" or "));
            return Err(FunctionFault::argument("element type of the matrix", TYPES[element].1, expected));
        }
        if let Some(count) = self.arguments
            && !holds(count, argument.len())
        {
            let actual = argument.len().to_string();
            return Err(FunctionFault::argument("numbers in the argument", actual, count.to_string()));
        }
        Ok(())
    }

    /// The fault of an element type without code.
    pub(crate) fn no_code(&self, element: usize) -> FunctionFault {
        no_code(&self.name, TYPES[element].1)
    }
}

fn holds(count: Count, n: usize) -> bool {
    match count {
        Count::Exactly(exact) => n == exact,
        Count::AtLeast(least) => n >= least,
    }
}
