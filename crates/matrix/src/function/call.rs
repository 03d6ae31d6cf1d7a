//! A call: the name of a function, the rows, and the argument as bytes. Before any partition is visited, the call is
//! bound to a function of the table and to a matrix, and everything in it is checked.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;

use crate::agent::{Agent, MatrixId};
use crate::error::Error;
use crate::function::row_function::BoundRowFold;
use crate::function::table::{AnyRead, AnyWrite};
use crate::function::value::FunctionValue;
use crate::function::{
    Arity, Block, Columns, FunctionFault, FunctionTable, PullFunction, PushFunction, Shape, columns, pack,
    unpack,
};
use crate::lists::functions::{BoundListRead, split_append, split_request};
use crate::lists::store::ListStore;
use crate::matrix::PartialAnswer;
use crate::partitioner::Placement;
use crate::rule::RuleElement;
use crate::spec::{Axis, MatrixSpec, Storage};
use crate::storage::Table;

/// A call of one function. It is plain data that can be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    /// Name of the function.
    pub name: String,
    /// Version of the function that the caller uses.
    pub version: u32,
    /// Rows to read, in the order in which the function takes them.
    pub from: Vec<u32>,
    /// Rows to write, each at most once. Empty for a pull function.
    pub into: Vec<u32>,
    /// The packed argument.
    pub argument: Vec<u8>,
}

impl FunctionCall {
    /// Creates a call of a pull function on the rows `from`.
    pub fn pull<F: PullFunction>(function: &F, from: &[u32], argument: &F::Argument) -> Self {
        Self {
            name: function.name().to_owned(),
            version: function.version(),
            from: from.to_vec(),
            into: Vec::new(),
            argument: pack(argument),
        }
    }

    /// Creates a call of a push function that reads the rows `from` and writes the rows `into`.
    pub fn push<F: PushFunction>(function: &F, from: &[u32], into: &[u32], argument: &F::Argument) -> Self {
        Self {
            name: function.name().to_owned(),
            version: function.version(),
            from: from.to_vec(),
            into: into.to_vec(),
            argument: pack(argument),
        }
    }

    /// Returns what the columns of one partition need of this call: the same call, perhaps with a shorter argument.
    pub fn split(&self, table: &FunctionTable, columns: Range<u64>) -> Result<Self, FunctionFault> {
        let AnyWrite::Columns(function) = table.push(self)? else { return Ok(self.clone()) };
        let argument = catch_panic(|| function.split(&self.argument, columns))?;
        Ok(Self { argument: argument.unwrap_or_else(|| self.argument.clone()), ..self.clone() })
    }

    /// Returns what the given partitions, ascending, need of this read of lists; `None` for other functions.
    pub fn split_lists(
        &self,
        table: &FunctionTable,
        placement: &Placement,
        partitions: &[u32],
    ) -> Result<Option<Self>, FunctionFault> {
        if !table.is_list_read(&self.name) {
            return Ok(None);
        }
        let argument = split_request(&self.argument, placement, partitions)?;
        Ok(Some(Self { argument, ..self.clone() }))
    }

    /// Returns what each of so many lanes needs of this call, which appends to lists. `lane_of` gives the lane of a partition.
    pub fn split_append(
        &self,
        placement: &Placement,
        lane_count: usize,
        lane_of: impl Fn(usize) -> usize,
    ) -> Result<Vec<Self>, FunctionFault> {
        let arguments = split_append(&self.argument, placement, lane_count, lane_of)?;
        let call = |argument| Self {
            name: self.name.clone(),
            from: Vec::new(),
            into: Vec::new(),
            argument,
            ..*self
        };
        Ok(arguments.into_iter().map(call).collect())
    }
}

/// Calls a pull function and decodes its answer.
pub fn call_pull<F: PullFunction>(
    agent: &mut (impl Agent + ?Sized),
    matrix: MatrixId,
    function: &F,
    from: &[u32],
    argument: &F::Argument,
) -> Result<F::Answer, Error> {
    let bytes = agent.pull_function(matrix, &FunctionCall::pull(function, from, argument))?;
    let name = function.name();
    unpack(&bytes).map_err(|fault| Error::function(&format!("{}", matrix.0), name, fault))
}

/// A function behind a trait object that works on packed bytes.
pub(crate) struct Erased<F>(pub(crate) Arc<F>);

/// A function with its argument.
struct BoundFunction<F, A> {
    function: Arc<F>,
    argument: A,
}

pub(crate) trait AnyPull: Send + Sync {
    fn version(&self) -> u32;
    fn reads(&self) -> Arity;
    fn argument_from_json(&self, json: &Value) -> Result<Vec<u8>, FunctionFault>;
    fn answer_to_json(&self, bytes: &[u8]) -> Result<Value, FunctionFault>;
    fn bind(&self, argument: &[u8], shape: &Shape) -> Result<Box<dyn AnyBoundPull>, FunctionFault>;
}

pub(crate) trait AnyPush: Send + Sync {
    fn version(&self) -> u32;
    fn reads(&self) -> Arity;
    fn writes(&self) -> Arity;
    fn argument_from_json(&self, json: &Value) -> Result<Vec<u8>, FunctionFault>;
    fn bind(&self, argument: &[u8], shape: &Shape) -> Result<Box<dyn AnyBoundPush>, FunctionFault>;
    fn split(&self, argument: &[u8], columns: Range<u64>) -> Result<Option<Vec<u8>>, FunctionFault>;
}

/// A pull function with its argument.
pub(crate) trait AnyBoundPull: Send + Sync {
    fn read(&self, columns: &Columns<'_>) -> Result<Vec<u8>, FunctionFault>;
    fn merge(&self, shape: &Shape, parts: &[Vec<u8>]) -> Result<Vec<u8>, FunctionFault>;
}

/// A push function with its argument.
pub(crate) trait AnyBoundPush: Send + Sync {
    fn tries_first(&self) -> bool;
    fn overwrites(&self) -> bool;
    fn keeps_finite(&self) -> bool;
    fn change(&self, block: &mut Block<'_>) -> Result<(), FunctionFault>;
}

impl<F: PullFunction> AnyPull for Erased<F> {
    fn version(&self) -> u32 {
        self.0.version()
    }

    fn reads(&self) -> Arity {
        self.0.reads()
    }

    fn argument_from_json(&self, json: &Value) -> Result<Vec<u8>, FunctionFault> {
        F::Argument::from_json(json).map(|argument| pack(&argument))
    }

    fn answer_to_json(&self, bytes: &[u8]) -> Result<Value, FunctionFault> {
        unpack::<F::Answer>(bytes).map(|answer| answer.to_json())
    }

    fn bind(&self, argument: &[u8], shape: &Shape) -> Result<Box<dyn AnyBoundPull>, FunctionFault> {
        let argument = unpack::<F::Argument>(argument)?;
        self.0.check(&argument, shape)?;
        Ok(Box::new(BoundFunction { function: Arc::clone(&self.0), argument }))
    }
}

impl<F: PushFunction> AnyPush for Erased<F> {
    fn version(&self) -> u32 {
        self.0.version()
    }

    fn reads(&self) -> Arity {
        self.0.reads()
    }

    fn writes(&self) -> Arity {
        self.0.writes()
    }

    fn argument_from_json(&self, json: &Value) -> Result<Vec<u8>, FunctionFault> {
        F::Argument::from_json(json).map(|argument| pack(&argument))
    }

    fn bind(&self, argument: &[u8], shape: &Shape) -> Result<Box<dyn AnyBoundPush>, FunctionFault> {
        let argument = unpack::<F::Argument>(argument)?;
        self.0.check(&argument, shape)?;
        Ok(Box::new(BoundFunction { function: Arc::clone(&self.0), argument }))
    }

    fn split(&self, argument: &[u8], columns: Range<u64>) -> Result<Option<Vec<u8>>, FunctionFault> {
        let argument = unpack::<F::Argument>(argument)?;
        Ok(self.0.split(&argument, columns).map(|argument| pack(&argument)))
    }
}

impl<F: PullFunction> AnyBoundPull for BoundFunction<F, F::Argument> {
    fn read(&self, columns: &Columns<'_>) -> Result<Vec<u8>, FunctionFault> {
        self.function.read(&self.argument, columns).map(|part| pack(&part))
    }

    fn merge(&self, shape: &Shape, parts: &[Vec<u8>]) -> Result<Vec<u8>, FunctionFault> {
        let parts = parts.iter().map(|part| unpack(part)).collect::<Result<Vec<_>, _>>()?;
        let answer = self.function.merge(&self.argument, shape, parts)?;
        if answer.is_finite() { Ok(pack(&answer)) } else { Err(FunctionFault::NonFiniteAnswer) }
    }
}

impl<F: PushFunction> AnyBoundPush for BoundFunction<F, F::Argument> {
    fn tries_first(&self) -> bool {
        self.function.tries_first()
    }

    fn overwrites(&self) -> bool {
        self.function.overwrites()
    }

    fn keeps_finite(&self) -> bool {
        self.function.keeps_finite(&self.argument)
    }

    fn change(&self, block: &mut Block<'_>) -> Result<(), FunctionFault> {
        self.function.change(&self.argument, block)
    }
}

/// A pull function with its argument, of either kind.
enum BoundRead {
    Columns(Box<dyn AnyBoundPull>),
    Rows(BoundRowFold),
    Lists(BoundListRead),
}

/// A pull function bound to a matrix.
pub(crate) struct BoundPull {
    pub(crate) from: Vec<u32>,
    function: BoundRead,
    shape: Shape,
    matrix: String,
    name: String,
}

impl BoundPull {
    pub(crate) fn new(table: &FunctionTable, spec: &MatrixSpec, call: &FunctionCall) -> Result<Self, Error> {
        let bind = || {
            let shape = shape(spec, call);
            let function = match table.pull(call)? {
                AnyRead::Rows(fold) => BoundRead::Rows(BoundRowFold::new(fold, spec, call)?),
                AnyRead::Lists(read) => BoundRead::Lists(BoundListRead::new(read, table, spec, call)?),
                AnyRead::Columns(function) => {
                    check_matrix(spec)?;
                    check_rows(spec, call, function.reads(), Arity::Exactly(0))?;
                    BoundRead::Columns(catch_panic(|| function.bind(&call.argument, &shape))?)
                }
            };
            Ok((function, shape))
        };
        let (pulling, shape) = bind().map_err(|fault| Error::function(&spec.name, &call.name, fault))?;
        let (matrix, name) = (spec.name.clone(), call.name.clone());
        Ok(Self { from: call.from.clone(), function: pulling, shape, matrix, name })
    }

    /// Number of values that the function reads.
    pub(crate) fn value_count(&self) -> usize {
        self.from.len().saturating_mul(self.shape.columns as usize)
    }

    /// Runs the server half on a partition. `None` if it has no columns, or is not asked.
    pub(crate) fn read<E: RuleElement>(
        &self,
        partition: u32,
        tables: &[Table<E>],
        lists: Option<&ListStore<E>>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let part = match &self.function {
            BoundRead::Lists(read) => return read.answer(partition, lists.expect("the call was checked")),
            BoundRead::Rows(fold) => fold.read(&tables[0]),
            BoundRead::Columns(function) => match columns(tables, &self.from) {
                Some(columns) => catch_panic(|| function.read(&columns)),
                None => return Ok(None),
            },
        };
        part.map(Some).map_err(|fault| self.error(fault))
    }

    /// Runs the agent half on the partial answers of all partitions, in any order.
    pub(crate) fn merge(&self, mut parts: Vec<PartialAnswer>) -> Result<Vec<u8>, Error> {
        parts.sort_by_key(|part| part.partition);
        if let BoundRead::Lists(read) = &self.function {
            let parts = parts.into_iter().map(|part| (part.partition, part.bytes));
            return read.merge(parts.collect()).map_err(|fault| self.error(fault));
        }
        let parts: Vec<Vec<u8>> = parts.into_iter().map(|part| part.bytes).collect();
        match &self.function {
            BoundRead::Rows(fold) => fold.merge(&parts),
            BoundRead::Lists(_) => unreachable!("handled above"),
            BoundRead::Columns(function) => catch_panic(|| function.merge(&self.shape, &parts)),
        }
        .map_err(|fault| self.error(fault))
    }

    fn error(&self, fault: FunctionFault) -> Error {
        Error::function(&self.matrix, &self.name, fault)
    }
}

/// Runs code that may be a user's, and turns a panic into a fault.
pub(crate) fn catch_panic<T>(run: impl FnOnce() -> Result<T, FunctionFault>) -> Result<T, FunctionFault> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|panic| Err(FunctionFault::Panicked { message: panic_message(&*panic) }))
}

/// Returns the message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".into())
}

pub(super) fn shape(spec: &MatrixSpec, call: &FunctionCall) -> Shape {
    let (from, into) = (call.from.len(), call.into.len());
    Shape { element: spec.element, columns: spec.columns, from, into }
}

pub(super) fn check_matrix(spec: &MatrixSpec) -> Result<(), FunctionFault> {
    let (actual, expected) = if spec.axis == Axis::Row {
        ("partitions by row".to_owned(), "partitions by column")
    } else if spec.storage == Storage::Sparse {
        ("sparse storage".to_owned(), "dense storage")
    } else if !spec.rule.slots().is_empty() {
        (format!("the push rule {}, which keeps slots", spec.rule.name()), "a push rule without slots")
    } else {
        return Ok(());
    };
    Err(FunctionFault::Matrix { actual, expected })
}

pub(super) fn check_rows(
    spec: &MatrixSpec,
    call: &FunctionCall,
    from: Arity,
    into: Arity,
) -> Result<(), FunctionFault> {
    for (what, rows, count) in [("rows to read", &call.from, from), ("rows to write", &call.into, into)] {
        if !count.accepts(rows.len()) {
            return Err(FunctionFault::argument(what, rows.len().to_string(), count.to_string()));
        }
        if let Some(row) = rows.iter().find(|row| u64::from(**row) >= spec.rows) {
            let expected = format!("below the {} rows of the matrix", spec.rows);
            return Err(FunctionFault::argument(what, format!("row {row}"), expected));
        }
    }
    let mut sorted = call.into.clone();
    sorted.sort_unstable();
    if let Some([row, _]) = sorted.array_windows().find(|[a, b]| a == b) {
        return Err(FunctionFault::argument("rows to write", format!("row {row} twice"), "each row once"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
