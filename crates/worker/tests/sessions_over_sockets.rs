//! A session at a host that sends what it should not, or later than it should.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::time::Duration;

use common::{ServingThread, fault, spec};
use matrix::{Consistency, Keys, MatrixId, OwnedValues, Partitioner, Selection, ValuesMut};
use rpc::message::{Done, FaultKind, Pulled, PushPosition, SessionLane, SessionMap, SessionMatrix, Welcome};
use rpc::{Address, ConnectionId, Effect, Listener, Message, Service, WireValues};
use worker::{ParameterSession, SessionError};

const JOB: u32 = 7;
const W: MatrixId = MatrixId(0);

/// The master of a session, and its only lane.
struct Host {
    address: String,
    /// Values of each answer to a pull.
    value_count: usize,
}

impl Host {
    /// The answers to a message.
    fn answers(&self, message: Message) -> Vec<Message> {
        match message {
            Message::Hello(hello) => {
                let welcome = Welcome {
                    request: hello.request,
                    incarnation: 1,
                    lanes: 1,
                    window_bytes: 1 << 20,
                    applied: PushPosition::default(),
                    clock: 0,
                    minimum: u64::MAX,
                };
                vec![Message::Welcome(welcome)]
            }
            Message::OpenSession(open) => {
                let spec = spec("w", Consistency::Asp, 2, Partitioner::Range { partition_count: 1 });
                let lane = SessionLane { addresses: vec![self.address.clone()], lane: 0, standby: None };
                let matrix = SessionMatrix { matrix: 0, spec, owners: vec![0] };
                vec![Message::SessionMap(SessionMap {
                    request: open.request,
                    job: JOB,
                    lease_ms: 60_000,
                    lanes: vec![lane],
                    matrices: vec![matrix],
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
                let values = WireValues::Exact(OwnedValues::I64(vec![5; self.value_count]));
                let (request, applied) = (pull.request, PushPosition::default());
                vec![Message::Pulled(Pulled { request, minimum: 0, held_ns: 0, applied, values })]
            }
            _ => Vec::new(),
        }
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

/// Starts a host; returns its address and what serves it.
fn start(value_count: usize) -> (String, ServingThread) {
    let listener = Listener::bind(&Address::Tcp("127.0.0.1:0".into())).unwrap();
    let address = listener.address().to_string();
    let host = Host { address: address.clone(), value_count };
    (address, ServingThread::start(listener, vec![Box::new(host)], &[]))
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
