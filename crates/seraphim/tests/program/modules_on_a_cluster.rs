//! Promise: `submit --functions FILE.wasm` works on a running cluster whose processes do not have the file. While such
//! a job trains, tasks of another job on the same servers call the functions of the modules that their own job brought.
#![cfg(feature = "wasm")]

use engine::job::Modules;
use engine::runtime::cluster::servers::Servers;
use engine::runtime::modules::{extend_table, read_modules};
use matrix::{Agent, Consistency, ElementType, FunctionTable, MatrixId, MatrixSpec, VectorPool};
use rpc::layout::{JobLayout, LaneAddress, assign_partitions};
use rpc::message::{Member, MemberKind};
use serde_json::{Value, json};
use worker::RemoteAgent;

use crate::common::cluster::Cluster;
use crate::common::{Folder, bytes_of, clicks, succeed};

const M: MatrixId = MatrixId(0);
const COLUMNS: u64 = 5_000;

fn axpy(folder: &Folder) -> String {
    folder
        .write("axpy.wasm", wat::parse_str(include_str!("../../../../examples/axpy.wat")).expect("good text"))
}

/// The layout of a job of vectors on the servers of a cluster.
fn vectors(cluster: &Cluster) -> JobLayout {
    let status = cluster.wait_until(|_| true);
    let members = status["members"].as_array().expect("a list").iter();
    let members = members.map(|one| serde_json::from_value(one["member"].clone()).expect("a member"));
    let servers = members.filter_map(|member: Member| match member.kind {
        MemberKind::Server { addresses, .. } => Some(LaneAddress::new(addresses, 0)),
        MemberKind::Worker { .. } => None,
    });
    let lanes: Vec<LaneAddress> = servers.collect();
    let spec: MatrixSpec = VectorPool::spec("vectors", ElementType::F32, 2, COLUMNS, 4, Consistency::Asp);
    JobLayout {
        job: 1_000,
        task_count: 1,
        wait_limit: crate::common::cluster::PATIENCE,
        window_bytes: 1 << 20,
        owners: vec![assign_partitions(spec.partitioner.partition_count(), lanes.len() as u16)],
        matrices: vec![spec],
        lanes,
        home: 0,
        wire: Vec::new(),
        prefetch: matrix::Prefetch::default(),
    }
}

/// Computes x = 2, y = 3, then y = 0.5 x + y by the function of the module. Returns the sum of y.
fn call(layout: &JobLayout, modules: &Modules) -> f64 {
    let functions = extend_table(modules, &FunctionTable::builtin()).expect("good modules");
    let agent = RemoteAgent::with_functions(layout.clone(), 0, &[], functions.clone());
    let mut agent = agent.expect("a good layout");
    let call = |name: &str, from: &[u32], into: &[u32], argument: Value| {
        functions.call_from_json(name, from, into, &argument).expect("a good call")
    };
    let program = [
        call("set", &[], &[0], json!(2.0)),
        call("set", &[], &[1], json!(3.0)),
        call("wat_axpy", &[0, 1], &[1], json!([0.5])),
    ];
    agent.push_function(M, &program).expect("the servers have it");
    let sum = matrix::function::reduce::Reduce::Sum;
    let sum = matrix::function::call::call_pull(&mut agent, M, &sum, &[1], &()).expect("it is answered");
    agent.finish().expect("it leaves");
    sum
}

#[test]
fn modules_are_submitted_to_a_running_cluster_and_called_there() {
    let folder = Folder::new();
    let (data, file) = (folder.write("train.libsvm", clicks(2000, 1)), axpy(&folder));
    let (alone, there, long) = (folder.path("alone"), folder.path("there"), folder.path("long"));
    let cluster = Cluster::start(2, 2, 1);
    let with = |model: &str, more: &[&str]| {
        let fixed = ["lr", "--data", &data, "--model", model, "--tasks", "2", "--functions", &file];
        let on = ["--servers", "2", "--workers", "2"];
        cluster.submit(&[&fixed[..], &on, more].concat())
    };
    // A job that does not end by itself during this test.
    let training = with(&long, &["--set", "epochs=10000", "--wait-limit", "20"]);
    cluster.wait_until(|status| status["jobs"][0]["progress"]["records"].as_u64().is_some_and(|n| n > 0));
    let (layout, modules) =
        (vectors(&cluster), read_modules(std::slice::from_ref(&file)).expect("a good file"));
    let mut servers = Servers::connect(&layout, &[]).expect("they listen");
    servers.open_job_with(modules.list()).expect("they take modules");
    assert_eq!(call(&layout, &modules), 4.0 * COLUMNS as f64);
    servers.close_job("the end of a test").expect("it is open");
    assert!(succeed(&["cancel", "1", "--master", &cluster.address]).contains("asked to stop"));
    training.end();
    // The next job runs to its end: the modules change nothing in it.
    let (code, out, error) = with(&there, &[]).end();
    assert_eq!(code, Some(0), "{error}");
    assert!(out.contains("model saved in"), "{out}");
    succeed(&["train", "lr", "--data", &data, "--model", &alone, "--tasks", "2"]);
    assert_eq!(bytes_of(&there), bytes_of(&alone));
}
