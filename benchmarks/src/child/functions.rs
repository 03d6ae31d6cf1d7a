//! What PS functions cost in one process on one thread. `dot` and `axpy` are compared with the speed at which the
//! machine reads memory, a program with its functions one by one, and a WebAssembly `axpy` with the built-in one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use matrix::function::map::{Clip, Map, Scalar};
use matrix::function::zip::Axpy;
use matrix::{
    Agent as _, Consistency, ElementType, FunctionCall, FunctionTable, LocalAgent, LocalConfig, LocalStore,
    MatrixId, ServerVector, VectorPool,
};
use serde_json::{Value, json};

use crate::comparison::median;

/// Number of columns of the long rows.
const COLUMNS: u64 = 10_000_000;
const PARTITIONS: u32 = 8;
const ROUNDS: usize = 15;
const WAIT_LIMIT: Duration = Duration::from_mins(1);

/// Two vectors and the agent that reaches them.
struct Vectors {
    agent: LocalAgent,
    matrix: MatrixId,
    x: ServerVector,
    y: ServerVector,
}

impl Vectors {
    fn new(functions: FunctionTable, columns: u64, partitions: u32) -> Result<Self> {
        let config = LocalConfig { task_count: 1, wait_limit: WAIT_LIMIT };
        let mut store = LocalStore::with_functions(config, functions);
        let spec = VectorPool::spec("v", ElementType::F32, 2, columns, partitions, Consistency::Asp);
        let matrix = store.create(spec.clone())?;
        let mut agent = Arc::new(store).agent(0);
        let pool = VectorPool::new(matrix, &spec)?;
        let (mut x, mut y) = (pool.create(&mut agent)?, pool.create(&mut agent)?);
        x.set(&mut agent, 0.25)?;
        y.set(&mut agent, 0.5)?;
        Ok(Self { agent, matrix, x, y })
    }

    fn push(&mut self, calls: &[FunctionCall]) -> Result<()> {
        Ok(self.agent.push_function(self.matrix, calls)?)
    }
}

/// Returns the seconds that `run` takes.
fn seconds(mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed().as_secs_f64())
}

/// Reads as many bytes as two rows have.
fn read(data: &[u64]) {
    let mut sums = [0u64; 32];
    for chunk in data.as_chunks::<32>().0 {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum ^= *x;
        }
    }
    std::hint::black_box(sums);
}

/// `dot` and `axpy`: bytes of their rows per second (`axpy` reads two and writes one), as a share of the speed of
/// reading alone. `fused`: seconds of one program of five functions and of five calls.
pub(super) fn run() -> Result<Value> {
    let mut v = Vectors::new(FunctionTable::builtin(), COLUMNS, PARTITIONS)?;
    let data = vec![1u64; COLUMNS as usize];
    let (from, into) = (v.x.row()?, v.y.row()?);
    let axpy = [FunctionCall::push(&Axpy, &[from, into], &[into], &1e-9)];
    let maps = [
        FunctionCall::push(&Scalar::Add, &[into], &[into], &1.5),
        FunctionCall::push(&Map::Abs, &[into], &[into], &()),
        FunctionCall::push(&Scalar::Mul, &[into], &[into], &0.5),
        FunctionCall::push(&Clip, &[into], &[into], &(-2.0, 2.0)),
        FunctionCall::push(&Map::Negate, &[into], &[into], &()),
    ];
    let (mut dots, mut axpys, mut together, mut apart) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let reading = seconds(|| {
            read(&data);
            Ok(())
        })?;
        dots.push(reading / seconds(|| Ok(v.y.dot(&mut v.agent, &v.x).map(drop)?))?);
        axpys.push(1.5 * reading / seconds(|| v.push(&axpy))?);
        together.push(seconds(|| v.push(&maps))?);
        apart.push(seconds(|| maps.iter().try_for_each(|map| v.push(std::slice::from_ref(map))))?);
    }
    let share = |values: &[f64]| median(values).context("there are rounds");
    Ok(json!({
        "dot": share(&dots)?,
        "axpy": share(&axpys)?,
        "fused": pair(&together, &apart)?,
    }))
}

/// Medians of our times and those of the peer, and of their ratios.
fn pair(ours: &[f64], peer: &[f64]) -> Result<[f64; 3]> {
    let ratios: Vec<f64> = ours.iter().zip(peer).map(|(ours, peer)| ours / peer).collect();
    let of = |values: &[f64]| median(values).context("there are rounds");
    Ok([of(ours)?, of(peer)?, of(&ratios)?])
}

/// Seconds of the WebAssembly axpys (`examples/axpy.wat`) and of the built-in one on short rows. One axpy gives the
/// same bytes as the built-in one; the other computes in f32.
#[cfg(feature = "wasm")]
pub(super) fn module() -> Result<Value> {
    const SHORT: u64 = 100_000;
    const CALLS: usize = 400;
    let text = include_str!("../../../examples/axpy.wat");
    let mut functions = FunctionTable::builtin();
    wasm::load(&wat::parse_str(text)?, &wasm::Limits::default())?.register(&mut functions)?;
    let mut v = Vectors::new(functions, SHORT, 1)?;
    let (from, into) = (v.x.row()?, v.y.row()?);
    let built_in = [FunctionCall::push(&Axpy, &[from, into], &[into], &1e-9)];
    let argument = matrix::function::pack(&vec![1e-9f64]);
    let call = |name: &str| {
        [FunctionCall { name: name.to_owned(), argument: argument.clone(), ..built_in[0].clone() }]
    };
    let (twin, singles) = (call("wat_axpy"), call("wat_axpy_singles"));
    let (mut of_twin, mut of_singles, mut of_built_in) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..CALLS {
        of_twin.push(seconds(|| v.push(&twin))?);
        of_built_in.push(seconds(|| v.push(&built_in))?);
        of_singles.push(seconds(|| v.push(&singles))?);
    }
    Ok(json!({"twin": pair(&of_twin, &of_built_in)?, "singles": pair(&of_singles, &of_built_in)?}))
}
