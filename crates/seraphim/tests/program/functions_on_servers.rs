//! Functions on real servers return the same bytes as in one process, for any number of servers. A failure in a
//! function is an error of that call, and servers and agents continue. The same random steps run on a store of this
//! process and on 1, 2 and 3 servers that listen on sockets.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use engine::runtime::cluster::servers::Servers;
use math::random::{Purpose, RandomStream, stream};
use matrix::function::extreme::{Extreme, FirstDifference, TopK};
use matrix::function::fill::Random;
use matrix::function::map::{Clip, Map, Scalar};
use matrix::function::reduce::{CountNonZero, Dot, Gram, Reduce};
use matrix::function::sketch::Quantiles;
use matrix::function::vector_op::VectorOp;
use matrix::function::zip::{Axpy, Combine, Zip};
use matrix::function::{Arity, Block, Columns, Shape};
use matrix::{
    Agent, Consistency, ElementType, Error, FunctionCall, FunctionFault, FunctionTable, Keys, LocalConfig,
    LocalStore, MatrixId, MatrixSpec, OwnedValues, PullFunction, PullTicket, PushFunction, Selection, Values,
    ValuesMut, VectorPool,
};
use rpc::layout::{JobLayout, LaneAddress, assign_partitions};
use worker::RemoteAgent;

const M: MatrixId = MatrixId(0);
const ROWS: u32 = 4;
const COLUMNS: u64 = 3_001;
const WAIT_LIMIT: Duration = Duration::from_mins(1);

fn spec(consistency: Consistency) -> MatrixSpec {
    VectorPool::spec("vectors", ElementType::F32, ROWS, COLUMNS, 5, consistency)
}

/// Servers of this process on sockets. They end when the value is dropped.
struct Served {
    layout: JobLayout,
    stop: rpc::Stop,
    threads: Vec<std::thread::JoinHandle<()>>,
    servers: Option<Servers>,
}

impl Served {
    fn start(count: u16, spec: &MatrixSpec, task_count: u32, functions: &FunctionTable) -> Self {
        let stop = rpc::Stop::new();
        let (ready, is_ready) = channel();
        let thread = |_| {
            let config = server::ServerConfig { functions: functions.clone(), ..Default::default() };
            let (told, ready) = (stop.clone(), ready.clone());
            std::thread::spawn(move || {
                let listening = move |ports: &rpc::serve::Ports| {
                    ready.send(ports.frames[0].address().to_string()).unwrap();
                    Ok::<(), server::Error>(())
                };
                server::run(config, told, listening).unwrap();
            })
        };
        let threads = (0..count).map(thread).collect();
        // A server that does not start ends the wait for it.
        drop(ready);
        let lane = |_| LaneAddress::new(vec![is_ready.recv().unwrap()], 0);
        let layout = JobLayout {
            job: 1,
            task_count,
            wait_limit: WAIT_LIMIT,
            window_bytes: 1 << 20,
            matrices: vec![spec.clone()],
            lanes: (0..count).map(lane).collect(),
            owners: vec![assign_partitions(spec.partitioner.partition_count(), count)],
            home: 0,
            wire: Vec::new(),
            prefetch: matrix::Prefetch::default(),
        };
        let mut servers = Servers::connect(&layout, &[]).unwrap();
        servers.open_job().unwrap();
        Self { layout, stop, threads, servers: Some(servers) }
    }

    fn agent(&self, task: u32) -> RemoteAgent {
        self.agent_with(task, FunctionTable::builtin())
    }

    fn agent_with(&self, task: u32, functions: FunctionTable) -> RemoteAgent {
        RemoteAgent::with_functions(self.layout.clone(), task, &[], functions).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.servers = None;
        self.stop.raise();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn local(spec: &MatrixSpec, task_count: u32) -> Arc<LocalStore> {
    let mut store = LocalStore::new(LocalConfig { task_count, wait_limit: WAIT_LIMIT });
    store.create(spec.clone()).unwrap();
    Arc::new(store)
}

/// Returns the bytes of all rows.
/// Selects a whole row.
fn whole(row: u32) -> Selection<'static> {
    Selection::Columns { row, keys: Keys::Range(0, COLUMNS) }
}

/// Reads all rows, by their tickets if there are any.
fn rows(agent: &mut dyn Agent, tickets: &[PullTicket]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in 0..ROWS {
        let mut out = vec![0.0f32; COLUMNS as usize];
        match tickets.get(row as usize) {
            Some(ticket) => agent.wait(ticket, ValuesMut::F32(&mut out)).unwrap(),
            None => agent.pull(M, whole(row), ValuesMut::F32(&mut out)).unwrap(),
        }
        bytes.extend(out.iter().flat_map(|x| x.to_le_bytes()));
    }
    bytes
}

fn reals(random: &mut RandomStream, count: usize) -> Vec<f32> {
    (0..count).map(|_| random.normal() as f32).collect()
}

/// Returns a random push function with finite results.
fn a_push(random: &mut RandomStream) -> FunctionCall {
    let mut row = || random.below(u64::from(ROWS)) as u32;
    let (x, y, z) = (row(), row(), row());
    match random.below(10) {
        0 => FunctionCall::push(&Axpy, &[x, y], &[z], &-0.3),
        1 => FunctionCall::push(&Combine, &[x, y, z], &[z], &vec![0.5, -0.25, 0.1]),
        2 => FunctionCall::push(&Map::ALL[random.below(4) as usize], &[x], &[y], &()),
        3 => FunctionCall::push(&Scalar::Add, &[x], &[y], &0.1),
        4 => FunctionCall::push(&Scalar::SoftThreshold, &[x], &[y], &0.2),
        5 => FunctionCall::push(&Zip::Sub, &[x, y], &[z], &()),
        6 => FunctionCall::push(&Clip, &[x], &[x], &(-3.0, 3.0)),
        7 => FunctionCall::push(&Random::Uniform, &[], &[x], &(9, -1.0, 1.0)),
        _ => {
            let start = random.below(COLUMNS);
            let count = random.below(COLUMNS - start + 1) as usize;
            let vector = (start, OwnedValues::F32(reals(random, count)), 0.7);
            FunctionCall::push(&VectorOp::ALL[random.below(6) as usize], &[], &[x], &vector)
        }
    }
}

fn a_pull(random: &mut RandomStream) -> FunctionCall {
    let mut row = || random.below(u64::from(ROWS)) as u32;
    let (x, y) = (row(), row());
    match random.below(8) {
        0 => FunctionCall::pull(&Dot, &[x, y], &()),
        1 => FunctionCall::pull(&Gram, &[x, y, 0], &()),
        2 => FunctionCall::pull(&Reduce::ALL[random.below(4) as usize], &[x], &()),
        3 => FunctionCall::pull(&Extreme::ALL[random.below(3) as usize], &[x], &()),
        4 => FunctionCall::pull(&TopK::Magnitude, &[x], &7),
        5 => FunctionCall::pull(&CountNonZero, &[x], &()),
        6 => FunctionCall::pull(&FirstDifference, &[x, y], &()),
        _ => FunctionCall::pull(&Quantiles, &[x], &(0.01, vec![0.1, 0.5])),
    }
}

fn push_values(agent: &mut dyn Agent, random: &mut RandomStream) {
    let keys: Vec<u64> = (0..COLUMNS).filter(|_| random.below(9) == 0).collect();
    let row = random.below(u64::from(ROWS)) as u32;
    let values = reals(random, keys.len());
    agent.push(M, Selection::Columns { row, keys: Keys::Sorted(&keys) }, Values::F32(&values)).unwrap();
}

/// Runs random steps of a single task and returns all that it reads. If it prefetches, it does so right after it has
/// read the rows, before other calls.
fn play(agent: &mut dyn Agent, seed: u64, prefetches: bool) -> Vec<Vec<u8>> {
    let mut random = stream(seed, Purpose::Test, 0, 0);
    let (mut seen, mut tickets) = (Vec::new(), Vec::new());
    for _ in 0..25 {
        match random.below(8) {
            0 => push_values(agent, &mut random),
            1 => agent.tick().unwrap(),
            2 => agent.push_function(M, &[a_push(&mut random), a_push(&mut random)]).unwrap(),
            3 | 4 => agent.push_function(M, &[a_push(&mut random)]).unwrap(),
            5 => {
                seen.push(rows(agent, &tickets));
                if prefetches {
                    let next = agent.clock() + 1;
                    tickets = (0..ROWS).map(|row| agent.prefetch(M, whole(row), next)).collect();
                }
            }
            _ => seen.push(agent.pull_function(M, &a_pull(&mut random)).unwrap()),
        }
    }
    seen.push(rows(agent, &tickets));
    agent.finish().unwrap();
    seen
}

#[test]
fn any_functions_do_on_servers_what_they_do_in_one_process() {
    for seed in 0..6 {
        let consistency = [Consistency::Asp, Consistency::Ssp { staleness: 1 }, Consistency::Bsp][seed % 3];
        let spec = spec(consistency);
        let expected = play(&mut local(&spec, 1).agent(0), seed as u64, false);
        for count in 1..=3 {
            let served = Served::start(count, &spec, 1, &FunctionTable::builtin());
            let seen = play(&mut served.agent(0), seed as u64, false);
            assert!(seen == expected, "seed {seed}, {consistency:?}, {count} servers");
        }
        let served = Served::start(2, &spec, 1, &FunctionTable::builtin());
        let seen = play(&mut served.agent(0), seed as u64, true);
        assert!(seen == expected, "seed {seed}, an agent that prefetches");
    }
}

/// Runs random steps of one of several tasks under BSP and returns all that it reads.
fn play_with_others(agent: &mut dyn Agent, seed: u64) -> Vec<Vec<u8>> {
    let mut random = stream(seed, Purpose::Test, u64::from(agent.task()), 1);
    let mut seen = Vec::new();
    for _ in 0..8 {
        for _ in 0..random.below(4) {
            if random.below(3) == 0 {
                push_values(agent, &mut random);
            } else {
                agent.push_function(M, &[a_push(&mut random)]).unwrap();
            }
        }
        agent.tick().unwrap();
        seen.push(agent.pull_function(M, &a_pull(&mut random)).unwrap());
    }
    agent.barrier().unwrap();
    seen.push(rows(agent, &[]));
    agent.finish().unwrap();
    seen
}

#[test]
fn under_bsp_tasks_see_the_same_whatever_the_number_of_servers() {
    const TASKS: u32 = 3;
    let spec = spec(Consistency::Bsp);
    for seed in 0..3 {
        let run = |agents: Vec<Box<dyn Agent>>| -> Vec<Vec<Vec<u8>>> {
            std::thread::scope(|scope| {
                let play =
                    |mut agent: Box<dyn Agent>| scope.spawn(move || play_with_others(&mut *agent, seed));
                let threads: Vec<_> = agents.into_iter().map(play).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            })
        };
        let store = local(&spec, TASKS);
        let expected = run((0..TASKS).map(|task| Box::new(store.agent(task)) as Box<dyn Agent>).collect());
        for count in 1..=3 {
            let served = Served::start(count, &spec, TASKS, &FunctionTable::builtin());
            let agents = (0..TASKS).map(|task| Box::new(served.agent(task)) as Box<dyn Agent>);
            assert!(run(agents.collect()) == expected, "seed {seed}, {count} servers");
        }
    }
}

#[test]
fn a_call_is_one_round_trip_whatever_the_number_of_servers() {
    for count in 1..=3 {
        let served = Served::start(count, &spec(Consistency::Asp), 1, &FunctionTable::builtin());
        let mut agent = served.agent(0);
        // The first call also connects.
        agent.pull_function(M, &FunctionCall::pull(&Dot, &[0, 1], &())).unwrap();
        let before = agent.stats();
        agent.pull_function(M, &FunctionCall::pull(&Gram, &[0, 1, 2], &())).unwrap();
        let program = vec![FunctionCall::push(&Scalar::Add, &[0], &[1], &0.5); 5];
        agent.push_function(M, &program).unwrap();
        let after = agent.stats();
        assert_eq!(after.round_trip_count - before.round_trip_count, 2, "{count} servers");
        assert_eq!(after.request_count() - before.request_count(), 2 * u64::from(count));
    }
}

#[test]
fn vectors_live_on_servers() {
    let spec = spec(Consistency::Asp);
    let figures = |agent: &mut dyn Agent| {
        let pool = VectorPool::new(M, &spec).unwrap();
        let (mut x, mut y) = (pool.create(agent).unwrap(), pool.create(agent).unwrap());
        let values: Vec<f32> = (0..COLUMNS).map(|i| (i as f32).sin()).collect();
        x.put(agent, Values::F32(&values)).unwrap();
        y.push(agent, Values::F32(&values)).unwrap();
        y.push_at(agent, &[3, 2_000], Values::F32(&[1.0, -1.0])).unwrap();
        x.axpy(agent, 0.5, &y).unwrap();
        let (a, b) = (x.dot(agent, &y).unwrap(), pool.gram(agent, &[&x, &y]).unwrap());
        let mut z = pool.create(agent).unwrap();
        z.combine(agent, &[(2.0, &x), (-1.0, &y)]).unwrap();
        let picked = z.pull_at(agent, &[0, 3, 2_000]).unwrap();
        let top = z.top_k(agent, 3).unwrap();
        drop(z);
        assert_eq!(pool.free_count(), 2);
        (a, b, x.norm_2(agent).unwrap(), picked, top)
    };
    let expected = figures(&mut local(&spec, 1).agent(0));
    for count in 1..=3 {
        let served = Served::start(count, &spec, 1, &FunctionTable::builtin());
        assert_eq!(figures(&mut served.agent(0)), expected);
    }
}

/// Panics when its argument is true; otherwise adds.
struct Own {
    version: u32,
}

impl PushFunction for Own {
    type Argument = bool;

    fn name(&self) -> &'static str {
        "own"
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(0)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn change(&self, panics: &bool, block: &mut Block<'_>) -> Result<(), FunctionFault> {
        block.f32()?.into[0].iter_mut().for_each(|x| *x += 1.0);
        assert!(!panics, "at the parameters");
        Ok(())
    }
}

struct OwnPull;

impl PullFunction for OwnPull {
    type Argument = bool;
    type Partial = u64;
    type Answer = u64;

    fn name(&self) -> &'static str {
        "own_pull"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn read(&self, panics: &bool, columns: &Columns<'_>) -> Result<u64, FunctionFault> {
        assert!(!panics, "when it reads");
        Ok(columns.len() as u64)
    }

    fn merge(&self, _: &bool, _: &Shape, parts: Vec<u64>) -> Result<u64, FunctionFault> {
        Ok(parts.iter().sum())
    }
}

fn table(version: u32) -> FunctionTable {
    let mut table = FunctionTable::builtin();
    table.add_push(Own { version }).unwrap().add_pull(OwnPull).unwrap();
    table
}

#[test]
fn a_function_that_fails_on_one_server_changes_no_row_on_any() {
    let spec = spec(Consistency::Asp);
    let served = Served::start(2, &spec, 1, &FunctionTable::builtin());
    let mut agent = served.agent(0);
    let fill = FunctionCall::push(&Random::Uniform, &[], &[0], &(3, 1.0, 2.0));
    let below_zero = (COLUMNS - 2, OwnedValues::F32(vec![-0.5]), 1.0);
    let put = FunctionCall::push(&VectorOp::Set, &[], &[0], &below_zero);
    agent.push_function(M, &[fill, put]).unwrap();
    let before = rows(&mut agent, &[]);
    // A program, so that the server whose values are all valid has to undo changes in two rows.
    let double = FunctionCall::push(&Scalar::Mul, &[0], &[1], &2.0);
    let log = FunctionCall::push(&Map::Log, &[0], &[0], &());
    let program = [double, log];
    let error = agent.push_function(M, &program).unwrap_err();
    assert!(matches!(error, Error::FunctionAtServer { .. }), "{error:?}");
    let expected = format!("row 0, column {} is NaN, from -0.5", COLUMNS - 2);
    assert!(error.to_string().contains(&expected), "{error}");
    assert!(rows(&mut agent, &[]) == before, "no row anywhere has changed");
    // When no server fails, the program changes the rows on all servers as in one process.
    let abs = FunctionCall::push(&Map::Abs, &[0], &[0], &());
    agent.push_function(M, std::slice::from_ref(&abs)).unwrap();
    agent.push_function(M, &program).unwrap();
    let mut one = local(&spec, 1).agent(0);
    for row in 0..ROWS {
        let start = row as usize * COLUMNS as usize * 4;
        let bytes = &before[start..start + COLUMNS as usize * 4];
        let values: Vec<f32> =
            bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let part = Selection::Columns { row, keys: Keys::Range(0, COLUMNS) };
        one.push(M, part, Values::F32(&values)).unwrap();
    }
    one.push_function(M, &[abs]).unwrap();
    one.push_function(M, &program).unwrap();
    assert!(rows(&mut agent, &[]) == rows(&mut one, &[]));
}

#[test]
fn what_fails_in_a_function_is_told_to_its_caller_and_servers_go_on() {
    let spec = spec(Consistency::Asp);
    let served = Served::start(2, &spec, 2, &table(1));
    let mut agent = served.agent_with(0, table(1));
    let own = |panics: bool| [FunctionCall::push(&Own { version: 1 }, &[], &[1], &panics)];
    agent.push_function(M, &own(false)).unwrap();
    let text = |result: Result<(), Error>| match result {
        Err(error @ Error::FunctionAtServer { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let said = text(agent.push_function(M, &own(true)));
    assert!(said.contains("it panicked: at the parameters"), "{said}");
    let said = text(agent.pull_function(M, &FunctionCall::pull(&OwnPull, &[0], &true)).map(drop));
    assert!(said.contains("it panicked: when it reads"), "{said}");
    let log = FunctionCall::push(&Map::Log, &[0], &[0], &());
    let said = text(agent.push_function(M, &[log]));
    assert!(said.contains("row 0, column 0 is -inf, from 0"), "{said}");

    // Another build of the same program, and one without the function.
    let mut newer = served.agent_with(1, table(2));
    let said = text(newer.push_function(M, &[FunctionCall::push(&Own { version: 2 }, &[], &[1], &false)]));
    assert!(said.contains("version 2 was requested, but version 1 is registered"), "{said}");
    let plain = Served::start(1, &spec, 1, &FunctionTable::builtin());
    let mut stranger = plain.agent_with(0, table(1));
    let said = text(stranger.pull_function(M, &FunctionCall::pull(&OwnPull, &[0], &false)).map(drop));
    assert!(said.contains("this function is not registered"), "{said}");
    let unknown = FunctionCall { name: "summ".into(), ..FunctionCall::pull(&Reduce::Sum, &[0], &()) };
    let error = stranger.pull_function(M, &unknown).unwrap_err().to_string();
    assert!(error.contains("did you mean \"sum\"?"), "{error}");

    // All of them continue: one call has counted.
    for agent in [&mut agent, &mut newer] {
        let sum = matrix::function::call::call_pull(agent, M, &Reduce::Sum, &[1], &()).unwrap();
        assert_eq!(sum, COLUMNS as f64);
        let all = matrix::function::call::call_pull(agent, M, &OwnPull, &[1], &false).unwrap();
        assert_eq!(all, COLUMNS);
        agent.finish().unwrap();
    }
    let stats = Servers::connect(&served.layout, &[]).unwrap().stats().unwrap();
    let counts: Vec<(u64, u64)> =
        stats.iter().map(|stats| (stats.pull_function_count, stats.push_function_count)).collect();
    assert_eq!(counts, [(4, 4), (4, 4)], "failed pulls are not counted, failed pushes are");
}
