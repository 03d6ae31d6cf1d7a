//! A session at a host that sends what it should not, or later than it should.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{ServingThread, fault, spec};
use matrix::function::map::Map;
use matrix::{
    Axis, Consistency, ElementType, FunctionCall, Keys, MatrixId, MatrixSpec, OwnedValues, Partitioner,
    Selection, ValuesMut,
};
use rpc::message::{Done, FaultKind, Pulled, PushPosition, SessionLane, SessionMap, SessionMatrix, Welcome};
use rpc::{Address, ConnectionId, Effect, Listener, Message, Service, WireValues};
use worker::{ParameterSession, SessionError};

const JOB: u32 = 7;
/// Time for which a lane is away: well below the time for which a client tries it.
const AWAY: Duration = Duration::from_millis(100);
/// A matrix by row.
const W: MatrixId = MatrixId(0);
/// A matrix by column, for functions.
const V: MatrixId = MatrixId(1);
/// A matrix of few rows: the same keys are on other lanes.
const X: MatrixId = MatrixId(2);

/// The master of a session, or one of its lanes.
#[derive(Clone)]
struct Host {
    address: String,
    incarnation: u64,
    /// Values of each answer to a pull.
    value_count: usize,
    lane_count: u16,
    lease_ms: u64,
    /// The number of this lane.
    lane: u16,
    /// What all lanes were asked for, with the number of the lane.
    asked: Arc<Mutex<Vec<(&'static str, u16)>>>,
}

impl Host {
    /// The answers to a message.
    fn answers(&self, message: Message) -> Vec<Message> {
        match message {
            Message::Hello(hello) => {
                let welcome = Welcome {
                    request: hello.request,
                    incarnation: self.incarnation,
                    lanes: 1,
                    window_bytes: 1 << 20,
                    applied: PushPosition::default(),
                    clock: 0,
                    minimum: u64::MAX,
                };
                vec![Message::Welcome(welcome)]
            }
            Message::OpenSession(open) => {
                let partition_count = u32::from(self.lane_count);
                let spec = spec("w", Consistency::Asp, 2, Partitioner::Range { partition_count });
                let lane = |lane| SessionLane { addresses: vec![self.address.clone()], lane, standby: None };
                let columns = MatrixSpec {
                    name: "v".into(),
                    element: ElementType::F64,
                    rows: 1,
                    columns: 100,
                    axis: Axis::Column,
                    storage: matrix::Storage::Dense,
                    ..spec.clone()
                };
                let few = MatrixSpec { name: "x".into(), rows: 100, ..spec.clone() };
                let owners: Vec<u16> = (0..self.lane_count).collect();
                let matrix = |(matrix, spec)| SessionMatrix { matrix, spec, owners: owners.clone() };
                vec![Message::SessionMap(SessionMap {
                    request: open.request,
                    job: JOB,
                    lease_ms: self.lease_ms,
                    lanes: (0..self.lane_count).map(lane).collect(),
                    matrices: [(0, spec), (1, columns), (2, few)].map(matrix).into(),
                })]
            }
            // Before its answer comes one to an earlier request.
            Message::CheckpointSession(checkpoint) => {
                let (request, applied) = (checkpoint.request, PushPosition::default());
                vec![
                    fault(request - 1, FaultKind::Busy, 0),
                    Message::Done(Done { request, minimum: 0, applied }),
                ]
            }
            Message::Pull(pull) => {
                self.asked.lock().unwrap().push(("pull", self.lane));
                let values = WireValues::Exact(OwnedValues::I64(vec![5; self.value_count]));
                let (request, applied) = (pull.request, PushPosition::default());
                vec![Message::Pulled(Pulled { request, minimum: 0, deferred_ns: 0, applied, values })]
            }
            Message::TryFunction(attempt) => self.done("try", attempt.request),
            Message::PushFunction(push) => self.done("push", push.request),
            Message::RenewSession(renewal) => self.done("renew", renewal.request),
            Message::CloseSession(close) => self.done("close", close.request),
            _ => Vec::new(),
        }
    }

    fn done(&self, what: &'static str, request: u64) -> Vec<Message> {
        self.asked.lock().unwrap().push((what, self.lane));
        vec![Message::Done(Done { request, minimum: 0, applied: PushPosition::default() })]
    }
}

impl Service for Host {
    fn on_message(&mut self, _: Duration, connection: ConnectionId, message: Message, out: &mut Vec<Effect>) {
        out.extend(self.answers(message).into_iter().map(|message| Effect::Send { connection, message }));
    }

    fn on_closed(&mut self, _: Duration, _: ConnectionId, _: &mut Vec<Effect>) {}
    fn on_time(&mut self, _: Duration, _: &mut Vec<Effect>) {}
    fn next_time(&self) -> Option<Duration> {
        None
    }
    fn metrics(&self, _: &mut rpc::Metrics) {}
}

/// Starts a host with a lane; returns its address and what serves it.
fn start(value_count: usize) -> (String, ServingThread) {
    let (host, thread) = start_with(value_count, 1, 60_000);
    (host.address, thread)
}

fn start_with(value_count: usize, lane_count: u16, lease_ms: u64) -> (Host, ServingThread) {
    let listener = Listener::bind(&Address::Tcp("127.0.0.1:0".into())).unwrap();
    let (address, asked) = (listener.address().to_string(), Arc::default());
    let host = Host { address, incarnation: 1, value_count, lane_count, lease_ms, lane: 0, asked };
    let thread = serve(&host, listener);
    (host, thread)
}

fn serve(host: &Host, listener: Listener) -> ServingThread {
    let lane = |lane| Box::new(Host { lane, ..host.clone() }) as Box<dyn Service>;
    ServingThread::start(listener, (0..host.lane_count).map(lane).collect(), &[])
}

#[test]
fn an_answer_to_an_earlier_request_is_dropped() {
    let (address, _host) = start(4);
    let mut session = ParameterSession::open(&address, &[], "loop").unwrap();
    assert_eq!(session.job(), JOB);
    session.checkpoint("name").unwrap();
}

#[test]
fn values_that_do_not_fit_the_keys_are_an_error_and_the_next_pull_is_answered() {
    for (value_count, fits) in [(4, true), (3, false), (5, false)] {
        let (address, _host) = start(value_count);
        let mut session = ParameterSession::open(&address, &[], "loop").unwrap();
        for _ in 0..2 {
            let mut out = [0i64; 4];
            let pulled = session.pull(W, Selection::Rows(Keys::Sorted(&[3, 8])), ValuesMut::I64(&mut out));
            match pulled {
                Ok(()) => assert!(fits && out == [5; 4], "{value_count} values: {out:?}"),
                Err(error) => {
                    assert!(!fits && matches!(error, SessionError::UnexpectedAnswer { .. }), "{error}");
                }
            }
        }
    }
}

#[test]
fn functions_that_may_fail_are_tried_first_if_several_lanes_run_them() {
    let log = FunctionCall::push(&Map::Log, &[0], &[0], &());
    let abs = FunctionCall::push(&Map::Abs, &[0], &[0], &());
    for (lane_count, call, expected) in [
        (1, &log, &[("push", 0)][..]),
        (2, &log, &[("try", 0), ("try", 1), ("push", 0), ("push", 1)]),
        (2, &abs, &[("push", 0), ("push", 1)]),
    ] {
        let (host, _thread) = start_with(4, lane_count, 60_000);
        let mut session = ParameterSession::open(&host.address, &[], "loop").unwrap();
        session.push_function(V, std::slice::from_ref(call)).unwrap();
        let mut asked = host.asked.lock().unwrap().clone();
        // The lanes are asked at the same time.
        asked.sort_by_key(|(what, lane)| (*what == "push", *lane));
        assert_eq!(asked, expected, "{} on {lane_count} lanes", call.name);
    }
}

#[test]
fn a_session_renews_its_lease_several_times_before_it_ends() {
    const LEASE_MS: u64 = 800;
    let (host, _thread) = start_with(4, 1, LEASE_MS);
    let start = Instant::now();
    let _session = ParameterSession::open(&host.address, &[], "loop").unwrap();
    while host.asked.lock().unwrap().len() < 2 {
        // Twice as long, in case that the machine is busy: two renewals are due after half of it.
        assert!(start.elapsed() < Duration::from_millis(2 * LEASE_MS), "{:?}", host.asked.lock().unwrap());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(start.elapsed() >= Duration::from_millis(LEASE_MS / 4), "and not all the time");
}

#[test]
fn the_same_keys_of_another_matrix_are_on_other_lanes() {
    let (host, _thread) = start_with(2, 2, 60_000);
    let mut session = ParameterSession::open(&host.address, &[], "loop").unwrap();
    for matrix in [W, X, X, W] {
        let mut out = [0i64; 2];
        session.pull(matrix, Selection::Rows(Keys::Sorted(&[60])), ValuesMut::I64(&mut out)).unwrap();
    }
    let asked = host.asked.lock().unwrap().clone();
    assert_eq!(asked, [("pull", 0), ("pull", 1), ("pull", 1), ("pull", 0)]);
}

#[test]
fn a_session_is_closed_at_its_master() {
    let (host, _thread) = start_with(2, 1, 60_000);
    let session = ParameterSession::open(&host.address, &[], "loop").unwrap();
    session.close().unwrap();
    assert_eq!(*host.asked.lock().unwrap(), [("close", 0)]);
}

#[test]
fn a_session_goes_on_with_a_lane_that_comes_back_and_not_with_another_process_at_its_address() {
    for (incarnation, goes_on) in [(1, true), (2, false)] {
        let (host, thread) = start_with(2, 1, 60_000);
        let mut session = ParameterSession::open(&host.address, &[], "loop").unwrap();
        let mut pull = || {
            let mut out = [0i64; 2];
            session.pull(W, Selection::Rows(Keys::Sorted(&[3])), ValuesMut::I64(&mut out))
        };
        pull().unwrap();
        drop(thread);
        // Its request is not repeated, because the session does not know whether it has been executed.
        assert!(matches!(pull(), Err(SessionError::Connection { .. })));
        let again = Host { incarnation, ..host.clone() };
        let returning = std::thread::spawn(move || {
            std::thread::sleep(AWAY);
            let address: Address = again.address.parse().unwrap();
            serve(&again, Listener::bind(&address).unwrap())
        });
        match pull() {
            Ok(()) => assert!(goes_on),
            Err(error) => assert!(!goes_on && error.to_string().contains("it was restarted"), "{error}"),
        }
        drop(returning.join());
    }
}
