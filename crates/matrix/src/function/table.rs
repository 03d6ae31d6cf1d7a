//! The table of functions by name: the built-ins and the user's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::error::Error;
use crate::function::call::{AnyPull, AnyPush, BoundPull, Erased};
use crate::function::value::FunctionValue;
use crate::function::{
    Arity, FunctionCall, FunctionFault, PullFunction, PushFunction, PushProgram, RowChange, RowFold,
    builtins, pack, unpack,
};
use crate::lists::functions::{ListRead, ListWrite};
use crate::partitioner::OwnPartitioner;
use crate::spec::MatrixSpec;

/// A name is suggested for a name with typos (a letter too many, too few, wrong, or swapped): at most one typo for this
/// number of characters, and one typo in any name.
const CHARACTERS_PER_TYPO: usize = 3;

/// PS functions and partitioners of a program by name. Every process of a job has the same table.
#[derive(Clone)]
pub struct FunctionTable {
    functions: BTreeMap<String, RegisteredFunction>,
    pub(crate) partitioners: BTreeMap<&'static str, OwnPartitioner>,
}

#[derive(Clone)]
enum RegisteredFunction {
    Pull(Arc<dyn AnyPull>),
    Push(Arc<dyn AnyPush>),
    RowFold(RowFold),
    RowChange(RowChange),
    ListRead(ListRead),
    ListWrite(ListWrite),
}

/// A pull function of any kind.
pub(crate) enum AnyRead<'a> {
    Columns(&'a Arc<dyn AnyPull>),
    Rows(&'a RowFold),
    Lists(ListRead),
}

/// A push function of any kind.
pub(crate) enum AnyWrite<'a> {
    Columns(&'a Arc<dyn AnyPush>),
    Rows(&'a RowChange),
    Lists(ListWrite),
}

/// The version of every function of rows and of lists.
const ROW_FUNCTION_VERSION: u32 = 1;

impl RegisteredFunction {
    fn kind(&self) -> &'static str {
        match self {
            RegisteredFunction::Pull(_)
            | RegisteredFunction::RowFold(_)
            | RegisteredFunction::ListRead(_) => "pull",
            RegisteredFunction::Push(_)
            | RegisteredFunction::RowChange(_)
            | RegisteredFunction::ListWrite(_) => "push",
        }
    }
}

/// The description of a function in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionEntry {
    pub name: String,
    pub version: u32,
    /// `pull` or `push`.
    pub kind: &'static str,
    /// Number of rows that it reads.
    pub from: String,
    /// Number of rows that it writes.
    pub into: String,
}

impl Default for FunctionTable {
    fn default() -> Self {
        Self::builtin()
    }
}

impl std::fmt::Debug for FunctionTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.functions.keys()).entries(self.partitioners.keys()).finish()
    }
}

impl FunctionTable {
    /// Creates a table of the built-in functions, without partitioners.
    pub fn builtin() -> Self {
        let mut table = Self { functions: BTreeMap::new(), partitioners: BTreeMap::new() };
        builtins::register(&mut table).expect("the names of the built-ins differ");
        table
    }

    pub fn add_pull(&mut self, function: impl PullFunction) -> Result<&mut Self, FunctionFault> {
        let name = function.name().to_owned();
        self.add(name, RegisteredFunction::Pull(Arc::new(Erased(Arc::new(function)))))
    }

    pub fn add_push(&mut self, function: impl PushFunction) -> Result<&mut Self, FunctionFault> {
        let name = function.name().to_owned();
        self.add(name, RegisteredFunction::Push(Arc::new(Erased(Arc::new(function)))))
    }

    pub fn add_row_fold(&mut self, fold: RowFold) -> Result<&mut Self, FunctionFault> {
        self.add(fold.name().to_owned(), RegisteredFunction::RowFold(fold))
    }

    pub fn add_row_change(&mut self, change: RowChange) -> Result<&mut Self, FunctionFault> {
        self.add(change.name().to_owned(), RegisteredFunction::RowChange(change))
    }

    pub(crate) fn add_lists(&mut self) -> Result<&mut Self, FunctionFault> {
        for read in ListRead::ALL {
            self.add(read.name().to_owned(), RegisteredFunction::ListRead(read))?;
        }
        for write in ListWrite::ALL {
            self.add(write.name().to_owned(), RegisteredFunction::ListWrite(write))?;
        }
        Ok(self)
    }

    /// Whether a function reads lists.
    pub(crate) fn is_list_read(&self, name: &str) -> bool {
        matches!(self.functions.get(name), Some(RegisteredFunction::ListRead(_)))
    }

    fn add(&mut self, name: String, row: RegisteredFunction) -> Result<&mut Self, FunctionFault> {
        if name.is_empty() {
            return Err(FunctionFault::argument("name of a function", "empty", "a name"));
        }
        if self.functions.contains_key(&name) {
            return Err(FunctionFault::DuplicateName { name });
        }
        self.functions.insert(name, row);
        Ok(self)
    }

    /// Adds a partitioner, which [`Partitioner::Own`](crate::Partitioner::Own) names.
    pub fn add_partitioner(&mut self, partitioner: OwnPartitioner) -> Result<&mut Self, FunctionFault> {
        let name = partitioner.name;
        if self.partitioners.contains_key(name) {
            return Err(FunctionFault::DuplicateName { name: name.to_owned() });
        }
        self.partitioners.insert(name, partitioner);
        Ok(self)
    }

    /// Returns all PS functions, sorted by name.
    pub fn entries(&self) -> Vec<FunctionEntry> {
        let entry = |(name, row): (&String, &RegisteredFunction)| {
            let (version, from, into) = match row {
                RegisteredFunction::Pull(function) => {
                    (function.version(), function.reads().to_string(), String::new())
                }
                RegisteredFunction::Push(function) => {
                    (function.version(), function.reads().to_string(), function.writes().to_string())
                }
                RegisteredFunction::RowFold(_) => (ROW_FUNCTION_VERSION, "all".to_owned(), String::new()),
                RegisteredFunction::RowChange(_) => {
                    (ROW_FUNCTION_VERSION, "all".to_owned(), "all".to_owned())
                }
                RegisteredFunction::ListRead(_) => (ROW_FUNCTION_VERSION, "lists".to_owned(), String::new()),
                RegisteredFunction::ListWrite(_) => (ROW_FUNCTION_VERSION, String::new(), "lists".to_owned()),
            };
            FunctionEntry { name: name.clone(), version, kind: row.kind(), from, into }
        };
        self.functions.iter().map(entry).collect()
    }

    /// Returns how many rows a function reads and writes; `None` written for a pull function.
    pub fn counts(&self, name: &str) -> Result<(Arity, Option<Arity>), FunctionFault> {
        Ok(match self.find(name)? {
            RegisteredFunction::Pull(function) => (function.reads(), None),
            RegisteredFunction::Push(function) => (function.reads(), Some(function.writes())),
            RegisteredFunction::RowFold(_) | RegisteredFunction::ListRead(_) => (Arity::Exactly(0), None),
            RegisteredFunction::RowChange(_) | RegisteredFunction::ListWrite(_) => {
                (Arity::Exactly(0), Some(Arity::Exactly(0)))
            }
        })
    }

    /// Creates a call whose argument is JSON, see [`crate::function::value`].
    pub fn call_from_json(
        &self,
        name: &str,
        from: &[u32],
        into: &[u32],
        argument: &Value,
    ) -> Result<FunctionCall, FunctionFault> {
        let (version, argument) = match self.find(name)? {
            RegisteredFunction::Pull(function) => {
                (function.version(), function.argument_from_json(argument)?)
            }
            RegisteredFunction::Push(function) => {
                (function.version(), function.argument_from_json(argument)?)
            }
            RegisteredFunction::RowFold(_) | RegisteredFunction::RowChange(_) => {
                (ROW_FUNCTION_VERSION, pack(&Vec::<f64>::from_json(argument)?))
            }
            RegisteredFunction::ListRead(_) | RegisteredFunction::ListWrite(_) => {
                return Err(FunctionFault::user("only a program calls a function of lists"));
            }
        };
        let (name, from, into) = (name.to_owned(), from.to_vec(), into.to_vec());
        Ok(FunctionCall { name, version, from, into, argument })
    }

    /// Returns the answer of a pull function as JSON.
    pub fn answer_as_json(&self, call: &FunctionCall, answer: &[u8]) -> Result<Value, FunctionFault> {
        match self.pull(call)? {
            AnyRead::Columns(function) => function.answer_to_json(answer),
            AnyRead::Rows(_) => unpack::<Vec<f64>>(answer).map(|sums| sums.to_json()),
            AnyRead::Lists(_) => Err(FunctionFault::user("only a program calls a function of lists")),
        }
    }

    /// Checks a call of a pull function on a matrix before any partition is visited.
    pub fn check_pull(&self, spec: &MatrixSpec, call: &FunctionCall) -> Result<(), Error> {
        BoundPull::new(self, spec, call).map(drop)
    }

    /// Checks calls of push functions on a matrix before any partition is visited. Returns whether they are tried on
    /// all partitions before the first is changed.
    pub fn check_push(&self, spec: &MatrixSpec, steps: &[FunctionCall]) -> Result<bool, Error> {
        PushProgram::new(self, spec, steps).map(|program| program.tries_first)
    }

    pub(crate) fn pull(&self, call: &FunctionCall) -> Result<AnyRead<'_>, FunctionFault> {
        match self.find(&call.name)? {
            RegisteredFunction::Pull(function) => {
                same_version(call, function.version()).map(|()| AnyRead::Columns(function))
            }
            RegisteredFunction::RowFold(fold) => {
                same_version(call, ROW_FUNCTION_VERSION).map(|()| AnyRead::Rows(fold))
            }
            RegisteredFunction::ListRead(read) => {
                same_version(call, ROW_FUNCTION_VERSION).map(|()| AnyRead::Lists(*read))
            }
            row => Err(FunctionFault::WrongKind { is: row.kind(), asked: "pull" }),
        }
    }

    pub(crate) fn push(&self, call: &FunctionCall) -> Result<AnyWrite<'_>, FunctionFault> {
        match self.find(&call.name)? {
            RegisteredFunction::Push(function) => {
                same_version(call, function.version()).map(|()| AnyWrite::Columns(function))
            }
            RegisteredFunction::RowChange(change) => {
                same_version(call, ROW_FUNCTION_VERSION).map(|()| AnyWrite::Rows(change))
            }
            RegisteredFunction::ListWrite(write) => {
                same_version(call, ROW_FUNCTION_VERSION).map(|()| AnyWrite::Lists(*write))
            }
            row => Err(FunctionFault::WrongKind { is: row.kind(), asked: "push" }),
        }
    }

    fn find(&self, name: &str) -> Result<&RegisteredFunction, FunctionFault> {
        self.functions.get(name).ok_or_else(|| {
            let slips = |known: &String| (strsim::osa_distance(name, known), known.clone());
            let nearest = self.functions.keys().map(slips).min();
            let limit = (name.chars().count() / CHARACTERS_PER_TYPO).max(1);
            FunctionFault::Unknown {
                nearest: nearest.filter(|(slips, _)| *slips <= limit).map(|near| near.1),
            }
        })
    }
}

fn same_version(call: &FunctionCall, known: u32) -> Result<(), FunctionFault> {
    if call.version == known {
        return Ok(());
    }
    Err(FunctionFault::Version { asked: call.version, known })
}
