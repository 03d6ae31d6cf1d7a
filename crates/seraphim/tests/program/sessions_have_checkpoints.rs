//! Promise: a session of the parameter service writes checkpoints under a name, and another session begins with the
//! newest whole one: with the same rows to the bit, on any number of servers, after any death. Real processes.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::common::cluster::signal;
use crate::common::service::{Service, pid_of};
use crate::common::{Folder, fail, succeed};
use matrix::{
    Axis, Consistency, ElementType, Initializer, Keys, MatrixId, MatrixSpec, Partitioner, PushRule,
    Selection, Storage, Values, ValuesMut,
};
use rpc::message::Durability;
use worker::{ParameterSession, SessionOptions};

const COUNT: u64 = 3000;
const USAGE: i32 = 2;

fn sparse(name: &str, columns: u64) -> MatrixSpec {
    let rule = PushRule::FtrlProximal { alpha: 0.1, beta: 1.0, l1: 0.0, l2: 0.0 };
    let spec = MatrixSpec::sparse(name, ElementType::F32, columns, rule, 6);
    MatrixSpec { consistency: Consistency::Asp, ..spec }
}

fn dense(name: &str) -> MatrixSpec {
    MatrixSpec {
        name: name.into(),
        element: ElementType::F64,
        rows: COUNT,
        columns: 2,
        axis: Axis::Row,
        storage: Storage::Dense,
        partitioner: Partitioner::Range { partition_count: 5 },
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency: Consistency::Asp,
        seed: 1,
    }
}

fn keys() -> Vec<u64> {
    (0..COUNT).collect()
}

/// Pushes `value` and its multiples to all rows of a matrix of `columns` columns.
fn push(session: &mut ParameterSession, matrix: MatrixId, columns: usize, value: f32) {
    let keys = keys();
    let all = Selection::Rows(Keys::Sorted(&keys));
    let values: Vec<f32> = (0..keys.len() * columns).map(|i| value * (i % 7) as f32).collect();
    session.push(matrix, all, Values::F32(&values)).unwrap();
}

fn pull_f32(session: &mut ParameterSession, matrix: MatrixId, columns: usize) -> Vec<u32> {
    let keys = keys();
    let mut values = vec![0.0; keys.len() * columns];
    session.pull(matrix, Selection::Rows(Keys::Sorted(&keys)), ValuesMut::F32(&mut values)).unwrap();
    values.into_iter().map(f32::to_bits).collect()
}

fn pull_f64(session: &mut ParameterSession, matrix: MatrixId) -> Vec<f64> {
    let keys = keys();
    let mut values = vec![0.0; keys.len() * 2];
    session.pull(matrix, Selection::Rows(Keys::Sorted(&keys)), ValuesMut::F64(&mut values)).unwrap();
    values
}

fn add_ones(session: &mut ParameterSession, matrix: MatrixId) {
    let (keys, ones) = (keys(), vec![1.0; 2 * COUNT as usize]);
    session.push(matrix, Selection::Rows(Keys::Sorted(&keys)), Values::F64(&ones)).unwrap();
}

fn from(name: &str) -> SessionOptions {
    SessionOptions { checkpoint: Some(name.into()), ..SessionOptions::default() }
}

fn open(service: &Service, options: &SessionOptions) -> ParameterSession {
    ParameterSession::open_with(&service.address, &[], "loop", options).unwrap()
}

fn refused(service: &Service, options: &SessionOptions) -> String {
    ParameterSession::open_with(&service.address, &[], "loop", options).err().expect("refused").to_string()
}

#[test]
fn another_session_begins_with_the_rows_on_other_servers() {
    let folder = Folder::new();
    let place = folder.path("saved");
    let service = Service::start(&["--servers", "2", "--lanes", "2", "--session-checkpoints", &place]);
    let mut session = ParameterSession::open(&service.address, &[], "loop").unwrap();
    let dropped = session.create_matrix(&sparse("dropped", 1)).unwrap();
    let weights = session.create_matrix(&sparse("weights", 2)).unwrap();
    let sums = session.create_matrix(&dense("sums")).unwrap();
    push(&mut session, dropped, 1, 9.0);
    session.drop_matrix(dropped).unwrap();
    push(&mut session, weights, 2, 0.25);
    add_ones(&mut session, sums);
    session.checkpoint("fit").unwrap();
    let saved = pull_f32(&mut session, weights, 2);
    assert!(saved.iter().any(|bits| *bits != 0));
    push(&mut session, weights, 2, -0.5);
    let after = pull_f32(&mut session, weights, 2);
    session.close().unwrap();
    service.end();

    let service = Service::start(&["--servers", "3", "--session-checkpoints", &place]);
    let mut session = open(&service, &from("fit"));
    let (weights, sums) = (session.matrix("weights").unwrap(), session.matrix("sums").unwrap());
    assert!(session.matrix("dropped").is_err());
    assert_eq!(pull_f32(&mut session, weights, 2), saved);
    assert_eq!(pull_f64(&mut session, sums), vec![1.0; 2 * COUNT as usize]);
    // The slots of the rule are there too: the same push has the same result.
    push(&mut session, weights, 2, -0.5);
    assert_eq!(pull_f32(&mut session, weights, 2), after);
    // Matrices can be made and dropped as in any other session, and the last two checkpoints are kept.
    let more = session.create_matrix(&sparse("more", 1)).unwrap();
    push(&mut session, more, 1, 1.0);
    for _ in 0..3 {
        session.checkpoint("fit").unwrap();
    }
    session.drop_matrix(more).unwrap();
    session.checkpoint("other").unwrap();
    session.close().unwrap();
    let listed = succeed(&["checkpoints", "list", &folder.path("saved/fit")]);
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 3, "{listed}");
    assert_eq!(lines[0], "session loop");
    assert!(lines[1].starts_with("00000003  3 matrices, 9000 rows, "), "{listed}");
    let verified = succeed(&["checkpoints", "verify", &folder.path("saved/fit")]);
    assert_eq!(
        verified.matches("9,000 rows").count() + verified.matches("9000 rows").count(),
        2,
        "{verified}"
    );
    let other = succeed(&["checkpoints", "list", &folder.path("saved/other")]);
    assert!(other.contains("2 matrices"), "{other}");
    let mut session = open(&service, &from("other"));
    let weights = session.matrix("weights").unwrap();
    assert_eq!(pull_f32(&mut session, weights, 2), after);
    service.end();
}

#[test]
fn a_name_belongs_to_one_session_at_a_time_and_bad_requests_are_refused() {
    let folder = Folder::new();
    let without = Service::start(&[]);
    let mut session = ParameterSession::open(&without.address, &[], "loop").unwrap();
    let text = session.checkpoint("fit").err().unwrap().to_string();
    assert!(text.contains("--session-checkpoints"), "{text}");
    let text = refused(&without, &from("fit"));
    assert!(text.contains("--session-checkpoints"), "{text}");

    let place = folder.path("saved");
    let service = Service::start(&["--session-checkpoints", &place]);
    let text = refused(&service, &from("fit"));
    assert!(text.contains("there is no checkpoint \"fit\"") && text.contains("saved/fit"), "{text}");
    let mut first = ParameterSession::open(&service.address, &[], "first").unwrap();
    let matrix = first.create_matrix(&dense("sums")).unwrap();
    for name in ["", "../fit", "a/b", ".hidden", "fünf"] {
        let text = first.checkpoint(name).err().unwrap().to_string();
        assert!(text.contains("the name of a checkpoint"), "{text}");
    }
    assert!(refused(&service, &from("../fit")).contains("it is the name of a folder"));
    first.checkpoint("fit").unwrap();

    // A stranger does not write there; one that has begun with it does, and then the first one does not.
    let mut stranger = ParameterSession::open(&service.address, &[], "stranger").unwrap();
    let text = stranger.checkpoint("fit").err().unwrap().to_string();
    assert!(text.contains("(session first)") && text.contains("open a session with it"), "{text}");
    let mut late = open(&service, &from("fit"));
    add_ones(&mut first, matrix);
    first.checkpoint("fit").unwrap();
    let text = late.checkpoint("fit").err().unwrap().to_string();
    assert!(text.contains("has not begun with the newest"), "it would replace what it has not read: {text}");
    let mut heir = open(&service, &from("fit"));
    heir.checkpoint("fit").unwrap();
    heir.checkpoint("fit").unwrap();
    let text = first.checkpoint("fit").err().unwrap().to_string();
    assert!(text.contains("(session loop)"), "{text}");

    // Training does not take it for one of its own.
    let text = fail(USAGE, &["train", "--resume", &folder.path("saved/fit")]);
    assert!(text.contains("has the checkpoints of a session (session loop)"), "{text}");
    service.end();
}

#[test]
fn a_damaged_checkpoint_is_not_used_and_one_that_fails_changes_nothing() {
    let folder = Folder::new();
    let place = folder.path("saved");
    let service = Service::start(&["--servers", "2", "--session-checkpoints", &place]);
    let mut session = ParameterSession::open(&service.address, &[], "loop").unwrap();
    let sums = session.create_matrix(&dense("sums")).unwrap();
    for _ in 0..2 {
        add_ones(&mut session, sums);
        session.checkpoint("fit").unwrap();
    }
    let rows = |number: u32| PathBuf::from(folder.path(&format!("saved/fit/{number:08}/rows")));
    let mut bytes = std::fs::read(rows(2)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(rows(2), &bytes).unwrap();
    let mut heir = open(&service, &from("fit"));
    let again = heir.matrix("sums").unwrap();
    assert_eq!(pull_f64(&mut heir, again), vec![1.0; 2 * COUNT as usize]);
    std::fs::remove_file(rows(1)).unwrap();
    let text = refused(&service, &from("fit"));
    assert!(text.contains("is damaged at byte"), "{text}");

    // A folder that cannot be written is told, and the session goes on.
    std::fs::write(folder.path("saved/taken"), "a file").unwrap();
    let text = session.checkpoint("taken").err().unwrap().to_string();
    assert!(text.contains("saved/taken"), "{text}");
    add_ones(&mut session, sums);
    assert_eq!(pull_f64(&mut session, sums), vec![3.0; 2 * COUNT as usize]);
    session.checkpoint("good").unwrap();
    service.end();
}

#[test]
fn after_a_kill_at_any_moment_the_newest_checkpoint_is_whole() {
    let folder = Folder::new();
    let place = folder.path("saved");
    let flags = ["--servers", "2", "--session-checkpoints", &place];
    let mut written = 0.0;
    for round in 0..6 {
        let mut service = Service::start(&flags);
        let mut session = match written {
            0.0 => ParameterSession::open(&service.address, &[], "loop").unwrap(),
            _ => open(&service, &from("fit")),
        };
        let sums = session.create_matrix(&dense("sums")).unwrap();
        let found = pull_f64(&mut session, sums);
        assert!(found.iter().all(|value| *value == found[0]), "round {round}");
        assert!(found[0] >= written, "round {round}: {} after {written}", found[0]);
        let address = service.address.clone();
        let job = session.job();
        let writer = std::thread::spawn(move || {
            let mut session = ParameterSession::join(&address, &[], job).unwrap();
            let mut last = found[0];
            loop {
                let (keys, ones) = (keys(), vec![1.0; 2 * COUNT as usize]);
                let pushed = session.push(sums, Selection::Rows(Keys::Sorted(&keys)), Values::F64(&ones));
                if pushed.is_err() || session.checkpoint("fit").is_err() {
                    return last;
                }
                last += 1.0;
            }
        });
        std::thread::sleep(Duration::from_millis(60 + 53 * round));
        service.process.kill();
        written = writer.join().unwrap();
    }
    assert!(written > 0.0);
}

#[test]
fn a_checkpoint_is_taken_after_a_replica_has_taken_over() {
    let folder = Folder::new();
    let place = folder.path("saved");
    let service = Service::start(&["--servers", "3", "--session-checkpoints", &place]);
    let replica = SessionOptions { durability: Durability::Replica, ..SessionOptions::default() };
    let mut session = open(&service, &replica);
    let sums = session.create_matrix(&dense("sums")).unwrap();
    add_ones(&mut session, sums);
    session.checkpoint("fit").unwrap();
    add_ones(&mut session, sums);
    signal(pid_of(&service, "server-1"), "-KILL");
    let start = Instant::now();
    while let Err(error) = session.checkpoint("fit") {
        assert!(start.elapsed() < Duration::from_secs(30), "{error}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let both = SessionOptions { checkpoint: Some("fit".into()), ..replica };
    let mut heir = open(&service, &both);
    let again = heir.matrix("sums").unwrap();
    assert_eq!(pull_f64(&mut heir, again), vec![2.0; 2 * COUNT as usize]);
    service.end();
}

#[test]
fn what_was_restored_is_in_the_log_and_in_the_replica() {
    let folder = Folder::new();
    let (place, logs) = (folder.path("saved"), folder.path("logs"));
    let service = Service::start(&["--session-checkpoints", &place]);
    let mut session = ParameterSession::open(&service.address, &[], "loop").unwrap();
    let sums = session.create_matrix(&dense("sums")).unwrap();
    add_ones(&mut session, sums);
    session.checkpoint("fit").unwrap();
    service.end();
    let log = ["--servers", "2", "--session-checkpoints", &place, "--write-ahead-log", &logs];
    let replica = ["--servers", "2", "--session-checkpoints", &place];
    for (durability, flags) in [(Durability::Log, &log[..]), (Durability::Replica, &replica[..])] {
        let service = Service::start(flags);
        let mut session = open(&service, &SessionOptions { durability, ..from("fit") });
        let sums = session.matrix("sums").unwrap();
        signal(pid_of(&service, "server-0"), "-KILL");
        let (keys, start) = (keys(), Instant::now());
        let mut values = vec![0.0; keys.len() * 2];
        let all = Selection::Rows(Keys::Sorted(&keys));
        while let Err(error) = session.pull(sums, all, ValuesMut::F64(&mut values)) {
            assert!(start.elapsed() < Duration::from_secs(30), "{error}");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(values, vec![1.0; 2 * COUNT as usize], "{durability:?}");
        service.end();
    }
}

#[test]
fn without_memory_for_a_snapshot_a_checkpoint_is_refused_and_the_session_goes_on() {
    let folder = Folder::new();
    let place = folder.path("saved");
    let service = Service::start(&["--session-checkpoints", &place]);
    let mut session = ParameterSession::open(&service.address, &[], "loop").unwrap();
    // 48 of 64 MB.
    let large = MatrixSpec { rows: 3_000_000, ..dense("large") };
    let large = session.create_matrix(&large).unwrap();
    let text = session.checkpoint("fit").err().unwrap().to_string();
    assert!(text.contains("not enough memory for a snapshot"), "{text}");
    add_ones(&mut session, large);
    assert_eq!(pull_f64(&mut session, large), vec![1.0; 2 * COUNT as usize]);
    session.drop_matrix(large).unwrap();
    session.checkpoint("fit").unwrap();
    service.end();
}

#[test]
fn a_checkpoint_that_fails_while_it_is_written_leaves_no_snapshot_in_memory() {
    let folder = Folder::new();
    let place = folder.path("saved");
    let service = Service::start(&["--session-checkpoints", &place]);
    let mut session = ParameterSession::open(&service.address, &[], "loop").unwrap();
    // 22 of 64 MB.
    let rows = 1_400_000;
    let large = session.create_matrix(&MatrixSpec { rows, ..dense("large") }).unwrap();
    session.checkpoint("fit").unwrap();
    std::fs::write(folder.path("saved/fit/00000002"), "no folder").unwrap();
    let text = session.checkpoint("fit").err().unwrap().to_string();
    assert!(text.contains("00000002/rows"), "{text}");
    // A snapshot that is still there would now take as much as the matrix.
    let ones = vec![1.0; 2 * rows as usize];
    session.push(large, Selection::Rows(Keys::Range(0, rows)), Values::F64(&ones)).unwrap();
    session.create_matrix(&MatrixSpec { rows, ..dense("more") }).unwrap();
    service.end();
}
