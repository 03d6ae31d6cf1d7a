//! Push functions that are bound to a matrix: all functions of one visit, checked before any partition is visited.

use crate::error::Error;
use crate::function::call::{AnyBoundPush, catch_panic, check_matrix, check_rows, shape};
use crate::function::row_function::BoundRowChange;
use crate::function::table::AnyWrite;
use crate::function::{FunctionCall, FunctionFault, FunctionTable};
use crate::lists::functions::BoundListWrite;
use crate::spec::MatrixSpec;

/// Push functions bound to a matrix: all functions of one visit.
pub(crate) struct PushProgram {
    pub(crate) functions: Vec<BoundPush>,
    /// The change of rows that is the only function of the program.
    pub(crate) row_change: Option<BoundRowChange>,
    /// The write of lists that is the only function of the program.
    pub(crate) list_write: Option<BoundListWrite>,
    /// All rows of all functions, ascending.
    pub(crate) rows: Vec<u32>,
    /// Indices in `rows` of those that are written, ascending.
    pub(crate) written_rows: Vec<usize>,
    /// Those of them whose old values are not read: the first function with the row overwrites it.
    pub(crate) overwritten_rows: Vec<usize>,
    /// The other written rows.
    pub(crate) changed_rows: Vec<usize>,
    pub(crate) tries_first: bool,
    /// Size of the arguments in bytes.
    pub(crate) argument_bytes: usize,
    pub(crate) matrix: String,
}

/// One function of a program.
pub(crate) struct BoundPush {
    pub(crate) function: Box<dyn AnyBoundPush>,
    /// Whether the function writes all values of its rows without reading the old ones.
    pub(crate) overwrites: bool,
    /// Whether finite values always give finite results.
    pub(crate) keeps_finite: bool,
    pub(crate) name: String,
    /// Indices in [`PushProgram::rows`] of the rows to read.
    pub(crate) from: Vec<usize>,
    /// Indices in [`PushProgram::rows`] of the rows to write.
    pub(crate) into: Vec<usize>,
    pub(crate) into_rows: Vec<u32>,
}

impl std::fmt::Debug for PushProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.functions.iter().map(|step| &step.name)).finish()
    }
}

impl PushProgram {
    pub(crate) fn new(
        table: &FunctionTable,
        spec: &MatrixSpec,
        calls: &[FunctionCall],
    ) -> Result<Self, Error> {
        let row_change = Self::row_change(table, spec, calls)
            .map_err(|fault| Error::function(&spec.name, &calls[0].name, fault))?;
        let list_write = Self::list_write(table, spec, calls)
            .map_err(|fault| Error::function(&spec.name, &calls[0].name, fault))?;
        let columns_calls = if row_change.is_some() || list_write.is_some() { &[] } else { calls };
        let mut rows: Vec<u32> =
            calls.iter().flat_map(|call| call.from.iter().chain(&call.into)).copied().collect();
        rows.sort_unstable();
        rows.dedup();
        let step = |call| {
            BoundPush::new(table, spec, call, &rows)
                .map_err(|fault| Error::function(&spec.name, &call.name, fault))
        };
        let steps = columns_calls.iter().map(step).collect::<Result<Vec<_>, _>>()?;
        let mut written: Vec<usize> = steps.iter().flat_map(|step| &step.into).copied().collect();
        written.sort_unstable();
        written.dedup();
        let is_overwritten = |row: &usize| {
            let first = steps.iter().find(|step| step.from.contains(row) || step.into.contains(row));
            first.is_some_and(|step| step.overwrites && !step.from.contains(row))
        };
        let (overwritten, changed) = written.iter().partition(|row| is_overwritten(row));
        let tries_first = steps.iter().any(|step| step.function.tries_first());
        let bytes = calls.iter().map(|call| call.argument.len()).sum();
        Ok(Self {
            functions: steps,
            row_change,
            list_write,
            rows,
            overwritten_rows: overwritten,
            changed_rows: changed,
            written_rows: written,
            tries_first,
            argument_bytes: bytes,
            matrix: spec.name.clone(),
        })
    }

    /// The change of rows that the calls are.
    fn row_change(
        table: &FunctionTable,
        spec: &MatrixSpec,
        calls: &[FunctionCall],
    ) -> Result<Option<BoundRowChange>, FunctionFault> {
        match calls {
            [call] => match table.push(call)? {
                AnyWrite::Rows(change) => BoundRowChange::new(change, spec, call).map(Some),
                AnyWrite::Columns(_) | AnyWrite::Lists(_) => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// The write of lists that the calls are.
    fn list_write(
        table: &FunctionTable,
        spec: &MatrixSpec,
        calls: &[FunctionCall],
    ) -> Result<Option<BoundListWrite>, FunctionFault> {
        match calls {
            [call] => match table.push(call)? {
                AnyWrite::Lists(write) => BoundListWrite::new(write, table, spec, call).map(Some),
                AnyWrite::Columns(_) | AnyWrite::Rows(_) => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Creates the error of the change of rows.
    pub(crate) fn row_error(&self, fault: FunctionFault) -> Error {
        let name = self.row_change.as_ref().map_or("", BoundRowChange::name);
        Error::function(&self.matrix, name, fault)
    }

    /// Creates the error of one function of the program.
    pub(crate) fn error(&self, step: usize, fault: FunctionFault) -> Error {
        Error::function(&self.matrix, &self.functions[step].name, fault)
    }
}

impl BoundPush {
    fn new(
        table: &FunctionTable,
        spec: &MatrixSpec,
        call: &FunctionCall,
        rows: &[u32],
    ) -> Result<Self, FunctionFault> {
        let AnyWrite::Columns(function) = table.push(call)? else {
            return Err(FunctionFault::user(
                "a change of rows or lists is a call of its own: it is in no program",
            ));
        };
        check_matrix(spec)?;
        check_rows(spec, call, function.reads(), function.writes())?;
        let shape = shape(spec, call);
        let pushing = catch_panic(|| function.bind(&call.argument, &shape))?;
        let places = |named: &[u32]| named.iter().map(|row| rows.partition_point(|r| r < row)).collect();
        Ok(Self {
            overwrites: pushing.overwrites(),
            keeps_finite: pushing.overwrites() && pushing.keeps_finite(),
            function: pushing,
            name: call.name.clone(),
            from: places(&call.from),
            into: places(&call.into),
            into_rows: call.into.clone(),
        })
    }
}
