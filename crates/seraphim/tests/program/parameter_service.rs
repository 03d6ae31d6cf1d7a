//! Promise: `serve-parameters` gives an external program matrices to pull from and push to, and survives its end. The
//! test uses real processes, the client of `examples/` in plain Python, and plain frames for requests that the service
//! must refuse.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::common::cluster::signal;
use crate::common::service::{Service, pid_of, spec};
use crate::common::{Folder, fail, succeed};
use matrix::function::map::Set;
use matrix::function::reduce::Dot;
use matrix::{
    Axis, ElementType, FunctionCall, Keys, MatrixId, MatrixSpec, OwnedValues, Partitioner, PushRule,
    Selection, Storage, Values, ValuesMut,
};
use rpc::message::*;
use rpc::transport::{Receiver, Sender, open};
use rpc::{Address, Message};
use worker::{ParameterSession, PushIdentity, SessionOptions};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
const USAGE: i32 = 2;
const IO: i32 = 5;

impl Service {
    fn line(&self, address: &str, role: Role, lane: u16) -> Result<Line, rpc::Error> {
        let address: Address = if address.is_empty() { &self.address } else { address }.parse()?;
        let hello = Hello { request: 1, token: Vec::new(), role, lane };
        let (sender, receiver, _) = open(&address, PATIENCE, &hello)?;
        receiver.set_timeout(Some(PATIENCE))?;
        Ok(Line { sender, receiver })
    }
}

struct Line {
    sender: Sender,
    receiver: Receiver,
}

impl Line {
    fn ask(&mut self, message: &Message) -> Message {
        self.sender.send(message).expect("it is connected");
        self.receiver.receive().expect("it is answered")
    }

    fn map(&mut self, message: &Message) -> SessionMap {
        match self.ask(message) {
            Message::SessionMap(map) => map,
            other => panic!("{other:?}"),
        }
    }

    fn fault(&mut self, message: &Message) -> Fault {
        match self.ask(message) {
            Message::Fault(fault) => fault,
            other => panic!("{other:?}"),
        }
    }
}

fn open_session(name: &str) -> Message {
    Message::OpenSession(OpenSession {
        request: 2,
        name: name.into(),
        lease_ms: 0,
        servers: 0,
        durability: Durability::Checkpoint,
        checkpoint: String::new(),
    })
}

fn with(durability: Durability) -> SessionOptions {
    SessionOptions { durability, ..SessionOptions::default() }
}

fn create(job: u32, spec: MatrixSpec) -> Message {
    Message::CreateMatrix(CreateMatrix { request: 3, job, spec: Box::new(spec) })
}

fn python(arguments: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/foreign_client.py");
    Command::new("python3").arg(script).args(arguments).output().expect("python3 is there, as for the docs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_client_in_plain_python_has_every_value_right_with_a_token() {
    let folder = Folder::new();
    let (token, wrong) = (folder.write("token", "a shared secret\n"), folder.write("wrong", "another"));
    let service = Service::start(&["--servers", "2", "--lanes", "2", "--token-file", &token]);
    let output = python(&[&service.address, "--token-file", &token]);
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{error}");
    for line in [
        "on 4 lanes",
        "ok: a sparse matrix sums what needs no answer",
        "ok: each part counts once",
        "ok: one that was tried first has changed nothing anywhere",
        "ok: and has been carried out once",
        "ok: a closed session is over at the servers",
        "all is as it should be",
    ] {
        assert!(out.contains(line), "{line} in {out}");
    }
    for arguments in [&[&service.address[..]][..], &[&service.address, "--token-file", &wrong]] {
        let output = python(arguments);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("error: refused (bad_token)"), "{}", text(&output.stderr));
    }
    let status = succeed(&["status", "--master", &service.address, "--token-file", &token]);
    assert!(status.contains("session tour") && status.contains("done"), "{status}");
    service.end();
}

/// The values of some rows.
fn pulled(session: &mut ParameterSession, matrix: MatrixId, keys: &[u64], columns: usize) -> Vec<f64> {
    let mut values = vec![0.0; keys.len() * columns];
    session.pull(matrix, Selection::Rows(Keys::Sorted(keys)), ValuesMut::F64(&mut values)).unwrap();
    values
}

#[test]
fn a_session_of_a_program_pulls_pushes_and_calls_functions() {
    let service = Service::start(&["--servers", "2", "--lanes", "2"]);
    let mut session = ParameterSession::open(&service.address, &[], "loop").unwrap();
    let sparse = MatrixSpec::sparse("factors", ElementType::F64, 3, PushRule::Add, 7);
    let factors = session.create_matrix(&sparse).unwrap();
    assert_eq!(session.create_matrix(&sparse).unwrap(), factors, "it is there already");
    let other = MatrixSpec { columns: 4, ..sparse.clone() };
    let error = session.create_matrix(&other).unwrap_err().to_string();
    assert!(error.contains("with another spec"), "{error}");
    // More than one frame for each lane.
    let keys: Vec<u64> = (0..200_000).map(|i| i * 7919).collect();
    let values: Vec<f64> = keys.iter().flat_map(|&key| [key as f64, 0.5, -1.0]).collect();
    for _ in 0..2 {
        session.push(factors, Selection::Rows(Keys::Sorted(&keys)), Values::F64(&values)).unwrap();
    }
    let twice: Vec<f64> = values.iter().map(|value| 2.0 * value).collect();
    assert!(pulled(&mut session, factors, &keys, 3) == twice);
    assert_eq!(pulled(&mut session, factors, &[1, 7919], 3), [0.0, 0.0, 0.0, 2.0 * 7919.0, 1.0, -2.0]);

    let mut second = ParameterSession::join(&service.address, &[], session.job()).unwrap();
    let also = second.matrix("factors").unwrap();
    assert_eq!(pulled(&mut second, also, &[0], 3), [0.0, 1.0, -2.0]);
    let error = second.matrix("factor").unwrap_err().to_string();
    assert!(error.contains("no matrix \"factor\"; it has: factors"), "{error}");

    // Two attempts at one part count once, whichever commits first; another part counts too.
    let once = |token, part, attempt| PushIdentity { token, part, attempt };
    let row = Selection::Rows(Keys::Sorted(&[5]));
    let ones = Values::F64(&[1.0; 3]);
    assert!(session.push_once(factors, row, ones, once(1, 0, 10)).unwrap());
    assert!(!second.push_once(also, row, ones, once(1, 0, 11)).unwrap());
    assert!(session.push_once(factors, row, ones, once(1, 0, 10)).unwrap(), "the same attempt again");
    assert!(second.push_once(also, row, ones, once(1, 1, 12)).unwrap());
    assert_eq!(pulled(&mut session, factors, &[5], 3), [2.0; 3]);
    session.close_token(factors, 1).unwrap();
    let error = second.push_once(also, row, ones, once(1, 2, 13)).unwrap_err();
    assert!(error.to_string().contains("token 1"), "{error}");
    assert_eq!(pulled(&mut second, also, &[5], 3), [2.0; 3], "the session goes on after a refusal");

    let vectors = MatrixSpec { axis: Axis::Column, rows: 2, columns: 1000, ..spec("vectors", 1) };
    let vectors = session.create_matrix(&vectors).unwrap();
    let all = Selection::Columns { row: 0, keys: Keys::Range(0, 1000) };
    session.push(vectors, all, Values::F64(&[3.0; 1000])).unwrap();
    session.push_function(vectors, &[FunctionCall::push(&Set, &[], &[1], &2.0)]).unwrap();
    let dot = session.pull_function(vectors, &Dot, &[0, 1], &()).unwrap();
    assert_eq!(dot.to_bits(), 6000f64.to_bits());
    session.drop_matrix(vectors).unwrap();
    assert!(session.pull_function(vectors, &Dot, &[0, 1], &()).is_err());
    session.close().unwrap();
    let error = second.pull(also, row, ValuesMut::F64(&mut [0.0; 3])).unwrap_err().to_string();
    assert!(error.contains("its host has closed it"), "{error}");
    service.end();
}

#[test]
fn what_a_program_asks_of_a_session_wrongly_is_an_error_before_anything_is_sent() {
    let service = Service::start(&[]);
    let error = ParameterSession::open(&service.address, b"wrong", "loop").err().unwrap().to_string();
    assert!(error.contains("token"), "{error}");
    let error = ParameterSession::open("127.0.0.1:1", &[], "loop").err().unwrap().to_string();
    assert!(error.starts_with("127.0.0.1:1: "), "{error}");
    let error = ParameterSession::join(&service.address, &[], 77).err().unwrap().to_string();
    assert!(error.contains("refused the request") && error.contains("77"), "{error}");
    let mut session = ParameterSession::open(&service.address, &[], "loop").unwrap();
    let matrix = session.create_matrix(&spec("w", 10)).unwrap();
    let rows = Selection::Rows(Keys::Sorted(&[3, 4]));
    let mut told = |values| session.push(matrix, rows, values).unwrap_err().to_string();
    assert!(told(Values::F64(&[1.0])).contains("1 values, expected 2"));
    assert!(told(Values::F32(&[1.0, 2.0])).contains("F64"));
    assert!(told(Values::F64(&[1.0, f64::NAN])).contains("NaN"));
    let beyond = Selection::Rows(Keys::Sorted(&[10]));
    let error = session.pull(matrix, beyond, ValuesMut::F64(&mut [0.0])).unwrap_err().to_string();
    assert!(error.contains("key 10 is out of range"), "{error}");
    let unknown = Partitioner::Own { name: "metis".into(), partition_count: 2 };
    let strange = MatrixSpec { partitioner: unknown, storage: Storage::Sparse, ..spec("strange", 10) };
    let error = session.create_matrix(&strange).unwrap_err().to_string();
    assert!(error.contains("\"metis\"") && error.contains("with_partitioner"), "{error}");
    assert_eq!(pulled(&mut session, matrix, &[3, 4], 1), [0.0, 0.0], "nothing was pushed");
    service.end();
}

#[test]
fn the_service_outlives_its_clients_and_ends_at_ctrl_c_with_sessions_open() {
    let service = Service::start(&["--servers", "2"]);
    let mut host = service.line("", Role::Tool, 0).expect("it is welcome");
    let map = host.map(&open_session("first"));
    let map = host.map(&create(map.job, spec("w", 100)));
    drop(host);
    let mut host = service.line("", Role::Tool, 0).expect("it is welcome again");
    let again = host.map(&Message::AskMap(AskMap { request: 4, job: map.job }));
    assert_eq!(again.matrices, map.matrices, "another connection goes on with the session");
    let owner = usize::from(again.matrices[0].owners[0]);
    let lane = &again.lanes[owner];
    let mut line =
        service.line(&lane.addresses[0], Role::Session { job: map.job }, lane.lane).expect("it is welcome");
    let (runs, keys) = (vec![PartitionRun { partition: 0, count: 1 }], KeyList::Listed(vec![3]));
    let push = Push {
        request: 5,
        job: map.job,
        task: 0,
        clock: 0,
        index: 0,
        matrix: 0,
        table: 0,
        runs,
        keys,
        values: OwnedValues::F64(vec![2.5]).into(),
    };
    assert!(matches!(line.ask(&Message::Push(push)), Message::Done(_)));
    drop((host, line));
    let status = succeed(&["status", "--master", &service.address]);
    assert!(status.contains("running    session first"), "{status}");
    service.end();
}

#[test]
fn what_a_session_may_not_do_is_refused_with_what_to_do() {
    let service = Service::start(&["--max-sessions", "1"]);
    let mut host = service.line("", Role::Tool, 0).expect("it is welcome");
    let job = host.map(&open_session("only")).job;
    let fault = host.fault(&open_session("one more"));
    assert!(fault.kind == FaultKind::Busy && fault.text.contains("session_limit"), "{fault:?}");
    host.map(&create(job, spec("w", 100)));
    let fault = host.fault(&create(job, spec("w", 200)));
    assert!(fault.kind == FaultKind::Invalid && fault.text.contains("with another spec"), "{fault:?}");
    let fault = host.fault(&create(job, spec("large", 1 << 24)));
    assert_eq!(fault.kind, FaultKind::TooLarge);
    let sum = "large 134217728 = 134217728 bytes on lane 0";
    assert!(fault.text.contains(sum) && fault.text.contains("the limit is 67108864"), "{fault:?}");
    let map = host.map(&create(job, spec("small", 100)));
    assert_eq!(map.matrices.len(), 2, "what was refused left nothing behind");

    let lane = &map.lanes[0];
    let refused = service.line(&lane.addresses[0], Role::Session { job: 99 }, 0).err().map(|e| e.to_string());
    assert!(refused.is_some_and(|text| text.contains("job 99 is not open here")));
    let refused = service.line("", Role::Session { job }, 0).err().map(|e| e.to_string());
    assert!(refused.is_some_and(|text| text.contains("a master, which has no parameters")));

    let mut line = service.line(&lane.addresses[0], Role::Session { job }, 0).expect("it is welcome");
    assert!(matches!(host.ask(&Message::CloseSession(CloseSession { request: 9, job })), Message::Done(_)));
    let stats = line.fault(&Message::Stats(Stats { request: 6, job }));
    assert!(stats.kind == FaultKind::Stopped && stats.text.contains("its host has closed it"), "{stats:?}");
    let fault = host.fault(&Message::RenewSession(RenewSession { request: 10, job }));
    assert!(fault.kind == FaultKind::Stopped && fault.text.contains("it was closed"), "{fault:?}");
    assert!(host.map(&open_session("the next")).job > job, "its place is free");
    service.end();
}

#[test]
fn a_session_can_be_cancelled_and_ends_with_its_server_and_the_service_goes_on() {
    let mut service = Service::start(&["--log", "info"]);
    let mut host = service.line("", Role::Tool, 0).expect("it is welcome");
    let ended = |host: &mut Line, job| loop {
        match host.ask(&Message::RenewSession(RenewSession { request: 10, job })) {
            // The master notifies the runner at once, and the runner releases the session a moment later.
            Message::Done(_) => std::thread::sleep(Duration::from_millis(1)),
            Message::Fault(fault) => return fault,
            other => panic!("{other:?}"),
        }
    };
    let job = host.map(&open_session("first")).job;
    succeed(&["cancel", &job.to_string(), "--master", &service.address]);
    let fault = ended(&mut host, job);
    assert!(fault.kind == FaultKind::Stopped && fault.text.contains("cancelled"), "{fault:?}");
    let second = host.map(&open_session("second")).job;
    let status: serde_json::Value =
        serde_json::from_str(&succeed(&["status", "--json", "--master", &service.address])).expect("JSON");
    let place = status["members"][0]["member"]["host"].as_str().expect("a host with its process");
    let id = place.rsplit_once(':').expect("host and process").1;
    assert!(Command::new("kill").args(["-KILL", id]).status().expect("kill is everywhere").success());
    service.process.wait_for("It is started again");
    let fault = ended(&mut host, second);
    assert!(fault.kind == FaultKind::Stopped && fault.text.contains("server server-0 is lost"), "{fault:?}");
    let start = Instant::now();
    let mut session = loop {
        match ParameterSession::open(&service.address, &[], "third") {
            Ok(session) => break session,
            Err(error) => assert!(start.elapsed() < PATIENCE, "{error}"),
        }
    };
    let matrix = session.create_matrix(&spec("w", 10)).expect("it fits");
    assert_eq!(pulled(&mut session, matrix, &[1, 2], 1), [0.0; 2]);
    session.close().expect("the master is there");
    service.end();
}

#[test]
fn an_address_that_clients_cannot_use_is_refused_before_anything_starts() {
    let folder = Folder::new();
    let token = folder.write("token", "a shared secret");
    let serve = |more: &[&'static str]| -> Vec<String> {
        [&["serve-parameters"][..], more].concat().into_iter().map(str::to_owned).collect()
    };
    let told = |code: i32, arguments: Vec<String>| {
        fail(code, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let text = told(USAGE, serve(&["--listen", "10.1.2.3:7070"]));
    assert!(text.contains("there is no token") && text.contains("--token-file"), "{text}");
    let mut open = serve(&["--listen", "0.0.0.0:0", "--token-file"]);
    open.push(token);
    let text = told(USAGE, open);
    assert!(text.contains("an address that clients can reach"), "{text}");
    let text = told(USAGE, serve(&["--listen", "unix:/tmp/none"]));
    assert!(text.contains("clients connect over TCP"), "{text}");
    let text = told(USAGE, serve(&["--memory-limit", "much"]));
    assert!(text.contains("a number of bytes"), "{text}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let place = taken.local_addr().expect("it is bound").to_string();
    let text = fail(IO, &["serve-parameters", "--listen", &place]);
    assert!(text.contains(&place), "{text}");
}

#[test]
fn a_session_outlives_a_killed_server_with_a_log() {
    let folder = Folder::new();
    let plain = Service::start(&[]);
    let asked = ParameterSession::open_with(&plain.address, &[], "loop", &with(Durability::Log));
    let error = asked.err().expect("the service has no log").to_string();
    assert!(error.contains("--write-ahead-log"), "{error}");
    let logs = folder.path("logs");
    let service = Service::start(&["--servers", "2", "--write-ahead-log", &logs]);
    let mut session = ParameterSession::open_with(&service.address, &[], "loop", &with(Durability::Log))
        .expect("it has logs");
    let matrix = session.create_matrix(&spec("w", 1000)).expect("it fits");
    let keys: Vec<u64> = (0..1000).collect();
    let (all, ones) = (Selection::Rows(Keys::Sorted(&keys)), vec![1.0; 1000]);
    for token in 1..=10 {
        let victim = format!("server-{}", token % 2);
        for part in 0..3 {
            if part == 1 {
                signal(pid_of(&service, &victim), "-KILL");
            }
            let identity = PushIdentity { token, part, attempt: token };
            // Calls fail while the server is away; what counts once may be repeated.
            let start = Instant::now();
            while let Err(error) = session.push_once(matrix, all, Values::F64(&ones), identity) {
                assert!(start.elapsed() < PATIENCE, "{error}");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        session.close_token(matrix, token).expect("the servers are there");
    }
    assert_eq!(pulled(&mut session, matrix, &keys, 1), vec![30.0; 1000]);
    session.close().expect("the master is there");
    let said = service.end();
    assert_eq!(said.matches("It is started again").count(), 10, "{said}");
}

#[test]
fn a_session_with_replicas_goes_on_when_a_server_is_killed_or_stands_still() {
    let alone = Service::start(&[]);
    let asked = ParameterSession::open_with(&alone.address, &[], "loop", &with(Durability::Replica));
    let error = asked.err().expect("there is one server").to_string();
    assert!(error.contains("replicas need at least two servers"), "{error}");
    for (victim, how) in [("server-1", "-KILL"), ("server-0", "-STOP")] {
        let service = Service::start(&["--servers", "3", "--lanes", "2"]);
        let mut session =
            ParameterSession::open_with(&service.address, &[], "loop", &with(Durability::Replica))
                .expect("there are three servers");
        let matrix = session.create_matrix(&spec("w", 1000)).expect("it fits");
        let keys: Vec<u64> = (0..1000).collect();
        let (all, ones) = (Selection::Rows(Keys::Sorted(&keys)), vec![1.0; 1000]);
        for part in 0..20 {
            if part == 10 {
                signal(pid_of(&service, victim), how);
            }
            let identity = PushIdentity { token: 1, part, attempt: 7 };
            let start = Instant::now();
            while let Err(error) = session.push_once(matrix, all, Values::F64(&ones), identity) {
                assert!(start.elapsed() < PATIENCE, "{victim} {how}: {error}");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        assert_eq!(pulled(&mut session, matrix, &keys, 1), vec![20.0; 1000], "{victim} {how}");
        // Others find the standby too, and matrices can be made and dropped there.
        let mut other = ParameterSession::join(&service.address, &[], session.job()).expect("it goes on");
        let second = other.create_matrix(&spec("v", 100)).expect("it fits");
        other
            .push(second, Selection::Rows(Keys::Sorted(&keys[..100])), Values::F64(&ones[..100]))
            .expect("it is there");
        assert_eq!(pulled(&mut other, second, &keys[..100], 1), vec![1.0; 100]);
        assert_eq!(pulled(&mut other, matrix, &keys, 1), vec![20.0; 1000]);
        other.drop_matrix(second).expect("it is there");
        session.close().expect("the master is there");
        if how == "-STOP" {
            signal(pid_of(&service, victim), "-CONT");
        }
    }
}
