//! Promise: servers accept modules with a job. A fault of a module is an error of its call, and the servers continue. A
//! server that was built without modules refuses the job.
#![cfg(feature = "wasm")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::mpsc::channel;
use std::time::Duration;

use engine::job::Modules;
use engine::runtime::cluster::servers::Servers;
use engine::runtime::modules::{OF_JOBS, extend_table, read_modules};
use matrix::function::pack;
use matrix::{
    Agent, Consistency, ElementType, FunctionCall, FunctionTable, Keys, MatrixId, MatrixSpec, Selection,
    Values, ValuesMut, VectorPool,
};
use rpc::layout::{JobLayout, LaneAddress, assign_partitions};
use worker::RemoteAgent;

const M: MatrixId = MatrixId(0);
const COLUMNS: u64 = 3_001;

/// Three push functions: one never ends, one writes the number of the column, and one writes and traps only in the last
/// columns.
const MODULE: &str = r#"(module
  (memory (export "memory") 1)
  (func (export "reads:spins") (result i32) (i32.const 0))
  (func (export "writes:spins") (result i32) (i32.const 1))
  (func (export "change:spins:f32") (param i32 i32 i32 i32 i32 i64 i32 i32) (result i32)
    (loop $for_ever (br $for_ever)) (i32.const 0))
  (func (export "reads:late") (result i32) (i32.const 0))
  (func (export "writes:late") (result i32) (i32.const 1))
  (func (export "change:late:f32")
    (param i32 i32) (param $into i32) (param i32) (param $length i32) (param $start i64) (param i32 i32) (result i32)
    (memory.fill (local.get $into) (i32.const 64) (i32.shl (local.get $length) (i32.const 2)))
    (if (i64.ge_u (local.get $start) (i64.const 2048)) (then unreachable))
    (i32.const 0))
  (func (export "reads:counts") (result i32) (i32.const 0))
  (func (export "writes:counts") (result i32) (i32.const 1))
  (func (export "change:counts:f32")
    (param i32 i32) (param $into i32) (param i32) (param $length i32) (param $start i64) (param i32 i32) (result i32)
    (local $i i32)
    (loop $next
      (f32.store (i32.add (local.get $into) (i32.shl (local.get $i) (i32.const 2)))
        (f32.convert_i64_s (i64.add (local.get $start) (i64.extend_i32_u (local.get $i)))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (local.get $length))))
    (i32.const 0)))"#;

/// Two servers of this process on sockets. They end when the value is dropped.
struct Served {
    layout: JobLayout,
    stop: rpc::Stop,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Served {
    fn start(spec: &MatrixSpec, modules: Option<server::ModuleLoader>) -> Self {
        let stop = rpc::Stop::new();
        let (ready, is_ready) = channel();
        let thread = |_| {
            let config = server::ServerConfig { modules, ..Default::default() };
            let (told, ready) = (stop.clone(), ready.clone());
            std::thread::spawn(move || {
                let listening = move |ports: &rpc::serve::Ports| {
                    ready.send(ports.frames[0].address().to_string()).unwrap();
                    Ok::<(), server::Error>(())
                };
                server::run(config, told, listening).unwrap();
            })
        };
        let threads = (0..2).map(thread).collect();
        let lane = |_| LaneAddress::new(vec![is_ready.recv().unwrap()], 0);
        let layout = JobLayout {
            job: 1,
            task_count: 1,
            wait_limit: Duration::from_mins(1),
            window_bytes: 1 << 20,
            matrices: vec![spec.clone()],
            lanes: (0..2).map(lane).collect(),
            owners: vec![assign_partitions(spec.partitioner.partition_count(), 2)],
            home: 0,
            wire: Vec::new(),
            prefetch: matrix::Prefetch::default(),
        };
        Self { layout, stop, threads }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.raise();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn spec() -> MatrixSpec {
    VectorPool::spec("vectors", ElementType::F32, 2, COLUMNS, 5, Consistency::Asp)
}

fn modules() -> Modules {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("some.wasm");
    std::fs::write(&file, wat::parse_str(MODULE).unwrap()).unwrap();
    read_modules(&[file.display().to_string()]).unwrap()
}

fn call(name: &str) -> FunctionCall {
    FunctionCall {
        name: name.into(),
        version: 1,
        from: Vec::new(),
        into: vec![0],
        argument: pack(&Vec::<f64>::new()),
    }
}

fn row(agent: &mut dyn Agent) -> Vec<f32> {
    let mut out = vec![f32::NAN; COLUMNS as usize];
    let part = Selection::Columns { row: 0, keys: Keys::Range(0, COLUMNS) };
    agent.pull(M, part, ValuesMut::F32(&mut out)).unwrap();
    out
}

#[test]
fn an_endless_loop_is_an_error_of_its_call_and_the_servers_go_on() {
    let (served, modules) = (Served::start(&spec(), OF_JOBS), modules());
    let mut servers = Servers::connect(&served.layout, &[]).unwrap();
    servers.open_job_with(modules.list()).unwrap();
    // Sends the same content again, as after a lost connection.
    servers.open_job_with(modules.list()).unwrap();
    let functions = extend_table(&modules, &FunctionTable::builtin()).unwrap();
    let mut agent = RemoteAgent::with_functions(served.layout.clone(), 0, &[], functions.clone()).unwrap();
    let ones = vec![1.0; COLUMNS as usize];
    let all = Selection::Columns { row: 0, keys: Keys::Range(0, COLUMNS) };
    agent.push(M, all, Values::F32(&ones)).unwrap();
    let error = agent.push_function(M, &[call("spins")]).unwrap_err().to_string();
    assert!(error.contains("\"spins\"") && error.contains("stopped after"), "{error}");
    assert_eq!(row(&mut agent), ones, "what it did is undone");
    let error = agent.push_function(M, &[call("late")]).unwrap_err().to_string();
    assert!(error.contains("lane 0") && error.contains("trapped"), "{error}");
    assert_eq!(row(&mut agent), ones, "nor has the server done anything that could have");
    agent.push_function(M, &[call("counts")]).unwrap();
    assert!(row(&mut agent).iter().zip(0..).all(|(value, column)| *value == column as f32));
    agent.finish().unwrap();
    servers.close_job("the end of a test").unwrap();
    // Another job without modules does not have their functions.
    let layout = JobLayout { job: 2, ..served.layout.clone() };
    let mut servers = Servers::connect(&layout, &[]).unwrap();
    servers.open_job().unwrap();
    let mut agent = RemoteAgent::with_functions(layout, 0, &[], functions).unwrap();
    let error = agent.push_function(M, &[call("counts")]).unwrap_err().to_string();
    assert!(error.contains("this function is not registered"), "{error}");
}

#[test]
fn servers_refuse_what_they_cannot_read() {
    let (served, modules) = (Served::start(&spec(), None), modules());
    let mut servers = Servers::connect(&served.layout, &[]).unwrap();
    let error = servers.open_job_with(modules.list()).unwrap_err().to_string();
    assert!(error.contains("this server was built without WebAssembly modules"), "{error}");
    let served = Served::start(&spec(), OF_JOBS);
    let mut servers = Servers::connect(&served.layout, &[]).unwrap();
    let mut broken = modules.list().to_vec();
    let middle = broken[0].0.len() / 2;
    broken[0].0[middle] ^= 1;
    let error = servers.open_job_with(&broken).unwrap_err().to_string();
    assert!(error.contains("a module of the job"), "{error}");
    // The servers still work.
    let mut servers = Servers::connect(&served.layout, &[]).unwrap();
    servers.open_job_with(modules.list()).unwrap();
}
