//! Applies a PS function to a table of a saved model, in this process or on servers that are started for it.
//!
//! A model has one row per key and one column per output; PS functions work on rows over all columns. Therefore the
//! matrix is transposed: output o becomes row o, and its columns are the keys from 0. Where keys are hashes, or too far
//! apart for that, the columns are the stored keys in their order.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use driver::Error;
use job::Modules;
use matrix::function::Arity;
use matrix::{
    Agent, Consistency, Element, FunctionCall, FunctionFault, FunctionTable, Keys, LocalConfig, LocalStore,
    MatrixId, MatrixSpec, OwnedValues, PushRule, RowBlock, Selection, VectorPool, with_values,
};
use model::manifest::AppliedFunction;
use model::{MatrixSource, Model, ModelReader, RowsInMemory};
use runtime::cluster::launch::LocalServers;
use runtime::cluster::servers::Servers;
use runtime::modules::{extend_table, read_modules};
use runtime::outputs::Outputs;
use runtime::{Environment, load_model};
use serde_json::{Value, json};

/// Maximum number of columns of a row over all keys.
const KEY_LIMIT: u64 = 1 << 26;
/// Number of partitions of the rows; further servers would have no partition.
const PARTITIONS: u32 = 8;
/// Maximum wait for the answer of a server: a function may compute for minutes.
const WAIT_LIMIT: Duration = Duration::from_mins(5);

/// The function to apply, and to which model.
#[derive(Clone, Debug)]
pub struct ApplyJob {
    /// The model directory.
    pub model: PathBuf,
    /// Name of the matrix; the first one by default.
    pub table: Option<String>,
    /// Name of the PS function.
    pub function: String,
    /// Argument of the function.
    pub argument: Value,
    /// Rows to read. If neither `from` nor `into` is given, a function of one row is applied to each row separately.
    pub from: Option<Vec<u32>>,
    /// Rows to write.
    pub into: Option<Vec<u32>>,
    /// Directory of the changed model.
    pub output: Option<PathBuf>,
    /// Whether an existing model may be replaced.
    pub overwrite: bool,
    /// Number of servers to start; 0: the function runs in this process.
    pub servers: u32,
    /// Files of WebAssembly modules with further functions.
    pub modules: Vec<String>,
}

/// The result of [`apply`].
#[derive(Clone, Debug, Default)]
pub struct ApplyResult {
    /// Name of the matrix.
    pub table: String,
    /// The answers of a pull function; with a row number if it was applied to each row separately.
    pub answers: Vec<(Option<u32>, Value)>,
    /// Number of values that a push function changed.
    pub changed_count: u64,
    /// Number of values in the rows that a push function wrote.
    pub value_count: u64,
    /// Whether column i stands for the i-th stored key and not for key i.
    pub columns_are_positions: bool,
}

impl ApplyResult {
    /// Returns the result as JSON.
    pub fn to_json(&self) -> Value {
        let answers: Vec<Value> =
            self.answers.iter().map(|(row, answer)| json!({"row": row, "answer": answer})).collect();
        let Self { table, changed_count, value_count, columns_are_positions: packed, .. } = self;
        json!({"table": table, "answers": answers, "changed_weights": changed_count, "weights": value_count, "packed": packed})
    }
}

/// A matrix of a model, with one row per output.
struct TransposedMatrix {
    spec: MatrixSpec,
    rows: Vec<OwnedValues>,
    /// The stored keys, if the columns stand for them.
    keys: Option<Vec<u64>>,
}

/// Applies the function, and writes the model if the function changes it.
pub fn apply(asked: &ApplyJob, environment: Environment<'_>) -> Result<ApplyResult, Error> {
    let modules = read_modules(&asked.modules)?;
    let functions = &extend_table(&modules, environment.functions)?;
    let (at, table) = find(&ModelReader::open(&asked.model, false)?, asked.table.as_deref())?;
    let fault = |fault| matrix::Error::function(&table, &asked.function, fault);
    let (reads, writes) = functions.counts(&asked.function).map_err(fault)?;
    check_output(asked, writes)?;
    let mut model = Model::read(&asked.model, false)?;
    let bound = load_model(&asked.model, &model.manifest, environment.families)?.bound_tables();
    if let (Some(_), Some(reason)) = (writes, bound) {
        let what = format!(
            "{} would change one table of a {} model: {reason}",
            asked.function, model.manifest.algorithm
        );
        return Err(Error::request(what, "train anew, or use a function that only reads"));
    }
    let turned = TransposedMatrix::of(&model.manifest.matrices[at].spec, &model.matrices[at])?;
    let calls = function_calls(asked, functions, reads, writes, turned.rows.len() as u32).map_err(fault)?;
    let mut applied = ApplyResult {
        table: table.clone(),
        columns_are_positions: turned.keys.is_some(),
        ..ApplyResult::default()
    };
    let rows = if asked.servers == 0 {
        let config = LocalConfig { task_count: 1, wait_limit: WAIT_LIMIT };
        let mut store = LocalStore::with_functions(config, functions.clone());
        store.create(turned.spec.clone())?;
        turned.run(&mut Arc::new(store).agent(0), functions, &calls, writes.is_some(), &mut applied)?
    } else {
        with_servers(asked.servers, &turned, &modules, Environment { functions, ..environment }, |agent| {
            turned.run(agent, functions, &calls, writes.is_some(), &mut applied)
        })?
    };
    if let Some(output) = &asked.output {
        applied.changed_count = turned.changed_count(&rows);
        applied.value_count = turned.rows.iter().map(|row| row.len() as u64).sum();
        model.matrices[at] = turned.to_exported(&rows);
        write(asked, table, output, model, environment)?;
    }
    Ok(applied)
}

/// Returns the place and the name of the matrix of this name; the first one if none is named.
fn find(model: &ModelReader, name: Option<&str>) -> Result<(usize, String), Error> {
    let names: Vec<&str> = model.manifest.matrices.iter().map(|entry| entry.name.as_str()).collect();
    let name = name.unwrap_or(names[0]);
    let place = names.iter().position(|known| *known == name).ok_or_else(|| {
        Error::request(
            format!("--table: the model has no such table ({name:?})"),
            format!("give one of {}", names.join(", ")),
        )
    })?;
    Ok((place, name.to_owned()))
}

fn check_output(asked: &ApplyJob, writes: Option<Arity>) -> Result<(), Error> {
    let advice = |what: &str, advice: &str| Err(Error::request(format!("{} {what}", asked.function), advice));
    match (writes, &asked.output) {
        (Some(_), None) => advice("changes the model", "give --output MODEL for the changed model"),
        (None, Some(_)) => advice("only reads, so that there is no model to write", "leave --output out"),
        (Some(_), Some(output)) => Outputs::new(asked.overwrite)
            .with_inputs(&asked.modules)
            .with_model(&asked.model)
            .check_model("--output", output),
        (None, None) => Ok(()),
    }
}

/// Returns the function calls: one call with the given rows, or one call per row.
fn function_calls(
    asked: &ApplyJob,
    functions: &FunctionTable,
    reads: Arity,
    writes: Option<Arity>,
    row_count: u32,
) -> Result<Vec<(Option<u32>, FunctionCall)>, FunctionFault> {
    let call =
        |from: &[u32], into: &[u32]| functions.call_from_json(&asked.function, from, into, &asked.argument);
    if asked.from.is_some() || asked.into.is_some() {
        let rows = |rows: &Option<Vec<u32>>| rows.clone().unwrap_or_default();
        return Ok(vec![(None, call(&rows(&asked.from), &rows(&asked.into))?)]);
    }
    // The rows that a function of one row reads or writes when it is applied to row `row`.
    let own = |count: Arity, row: u32| match count {
        Arity::Exactly(0) => Some(Vec::new()),
        Arity::Exactly(1) | Arity::AtLeast(1) => Some(vec![row]),
        Arity::Exactly(_) | Arity::AtLeast(_) => None,
    };
    let of_row = |row: u32| {
        let rows = own(reads, row).zip(writes.map_or(Some(Vec::new()), |writes| own(writes, row)));
        let (from, into) = rows.ok_or_else(|| {
            let expected = "rows, as in --from 0,1 --into 1: it works on more than one row";
            FunctionFault::argument("rows", "none given", expected)
        })?;
        Ok((Some(row), call(&from, &into)?))
    };
    (0..row_count).map(of_row).collect()
}

impl TransposedMatrix {
    fn of(spec: &MatrixSpec, stored: &RowBlock) -> Result<Self, Error> {
        let width = spec.columns as usize;
        let last = stored.keys.last().copied().unwrap_or(0);
        let is_packed = last >= KEY_LIMIT;
        let columns = if is_packed { stored.keys.len() as u64 } else { last + 1 };
        let place = |i: usize| if is_packed { i } else { stored.keys[i] as usize };
        let rows = (0..width).map(|output| {
            with_values!(stored.values.as_values(), values => {
                Element::owned(transposed_row(values, width, output, columns, place))
            })
        });
        let rows: Vec<OwnedValues> = rows.collect();
        let mut spec =
            VectorPool::spec(&spec.name, spec.element, width as u32, columns, PARTITIONS, Consistency::Asp);
        spec.rule = PushRule::Assign;
        spec.check(&FunctionTable::builtin())?;
        Ok(Self { spec, rows, keys: is_packed.then(|| stored.keys.clone()) })
    }

    /// Pushes the rows to the agent, runs the calls, and pulls the rows again if the calls changed them.
    fn run(
        &self,
        agent: &mut dyn Agent,
        functions: &FunctionTable,
        calls: &[(Option<u32>, FunctionCall)],
        changes: bool,
        applied: &mut ApplyResult,
    ) -> Result<Vec<OwnedValues>, Error> {
        let all = |row: u32| Selection::Columns { row, keys: Keys::Range(0, self.spec.columns) };
        let matrix = MatrixId(0);
        for (row, values) in (0u32..).zip(&self.rows) {
            agent.push(matrix, all(row), values.as_values())?;
        }
        if changes {
            let steps: Vec<FunctionCall> = calls.iter().map(|(_, call)| call.clone()).collect();
            agent.push_function(matrix, &steps)?;
        } else {
            for (row, call) in calls {
                let answer = agent.pull_function(matrix, call)?;
                let answer = functions.answer_as_json(call, &answer);
                let fault = |fault| matrix::Error::function(&self.spec.name, &call.name, fault);
                applied.answers.push((row.filter(|_| calls.len() > 1), answer.map_err(fault)?));
            }
        }
        let mut rows = Vec::new();
        for row in (0..self.rows.len() as u32).filter(|_| changes) {
            let mut values = OwnedValues::zeros(self.spec.element, self.spec.columns as usize);
            let len = values.len();
            agent.pull(matrix, all(row), values.slice_mut(0..len))?;
            rows.push(values);
        }
        agent.finish()?;
        Ok(rows)
    }

    fn changed_count(&self, rows: &[OwnedValues]) -> u64 {
        fn differing<E: Element>(old: &[E], new: Option<&[E]>) -> usize {
            old.iter().zip(new.unwrap_or_default()).filter(|(old, new)| old != new).count()
        }
        let count = |(old, new): (&OwnedValues, &OwnedValues)| with_values!(old.as_values(), old => differing(old, Element::slice(new.as_values())));
        self.rows.iter().zip(rows).map(count).sum::<usize>() as u64
    }

    /// Transposes the rows to the layout of a model.
    fn to_exported(&self, rows: &[OwnedValues]) -> RowBlock {
        let columns = self.spec.columns;
        let keys = self.keys.clone().unwrap_or_else(|| (0..columns).collect());
        let mut values = OwnedValues::zeros(self.spec.element, 0);
        for column in 0..columns as usize {
            for row in rows {
                values.extend(row.as_values().slice(column..column + 1));
            }
        }
        RowBlock::of_values(keys, values)
    }
}

/// Returns the values of one output, each in the column of its key.
fn transposed_row<T: Element>(
    values: &[T],
    width: usize,
    output: usize,
    columns: u64,
    place: impl Fn(usize) -> usize,
) -> Vec<T> {
    let mut row = vec![T::ZERO; columns as usize];
    for (i, values) in values.chunks_exact(width).enumerate() {
        row[place(i)] = values[output];
    }
    row
}

/// Runs a closure with the agent of a job on servers, which are stopped afterwards.
fn with_servers<T>(
    count: u32,
    turned: &TransposedMatrix,
    modules: &Modules,
    environment: Environment<'_>,
    run: impl FnOnce(&mut dyn Agent) -> Result<T, Error>,
) -> Result<T, Error> {
    let own = LocalServers::start(count, environment.program, environment.interrupt)?;
    let layout = own.layout(vec![turned.spec.clone()], 1, WAIT_LIMIT);
    let mut servers = Servers::connect(&layout, &[])?;
    servers.open_job_with(modules.list())?;
    let result = run(&mut own.agent(&layout, 0, environment.functions)?);
    servers.close_job("the function was applied")?;
    result
}

/// Writes the changed model, without the metrics of the old values and without the slots of the push rules, since
/// neither fit the new ones.
fn write(
    asked: &ApplyJob,
    table: String,
    output: &std::path::Path,
    model: Model,
    environment: Environment<'_>,
) -> Result<(), Error> {
    let Model { mut manifest, matrices, dictionary, .. } = model;
    let specs: Vec<MatrixSpec> = manifest.matrices.drain(..).map(|entry| entry.spec).collect();
    manifest.files.clear();
    manifest.trained.metrics.clear();
    manifest.trained.validation_metrics.clear();
    manifest.trained.applied.push(AppliedFunction {
        function: asked.function.clone(),
        matrix: table,
        argument: asked.argument.clone(),
        from: asked.from.clone(),
        into: asked.into.clone(),
    });
    let outputs = environment.interrupt.temp_outputs();
    let mut source = RowsInMemory(&matrices);
    let matrices: (&[MatrixSpec], &mut dyn MatrixSource<Error>) = (&specs, &mut source);
    model::write(output, asked.overwrite, manifest, matrices, false, &dictionary, outputs)?;
    Ok(())
}
