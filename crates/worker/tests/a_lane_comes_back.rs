//! Promise: a request that may be repeated is answered although its lane dies and comes back, or its standby takes over.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::time::{Duration, Instant};

use common::{FakeLane, ServingThread, fault};
use rpc::message::{Done, DropRows, FaultKind, PushPosition, Role, Standby};
use rpc::{Address, ConnectionId, Effect, Listener, Message, Service};
use worker::{LaneAddress, LaneClient, RetryPolicy};

const ROLE: Role = Role::JobTool { job: 7 };
const LIMIT: Duration = Duration::from_secs(30);
/// Time for which a lane is away. Several attempts to connect fail meanwhile.
const AWAY: Duration = Duration::from_millis(200);

/// What a lane does with requests.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// It answers, after a late answer to an earlier request.
    Answers,
    /// It stands still.
    Silent,
    /// It is a standby that has not taken over.
    Waits,
}

struct LaneService {
    incarnation: u64,
    manner: Manner,
    /// When it takes over.
    takeover: Option<Instant>,
}

impl Service for LaneService {
    fn on_message(&mut self, _: Duration, connection: ConnectionId, message: Message, out: &mut Vec<Effect>) {
        if self.takeover.is_some_and(|time| Instant::now() >= time) {
            self.manner = Manner::Answers;
        }
        let done = |request| Message::Done(Done { request, minimum: 0, applied: PushPosition::default() });
        let messages = match (message, self.manner) {
            (Message::Hello(hello), Manner::Waits) => vec![fault(hello.request, FaultKind::Busy, 1)],
            (Message::Hello(_), Manner::Answers | Manner::Silent) => {
                let welcome = FakeLane::new(Vec::new()).hello();
                vec![Message::Welcome(rpc::message::Welcome { incarnation: self.incarnation, ..welcome })]
            }
            (Message::DropRows(drop), Manner::Answers) => vec![done(drop.request - 1), done(drop.request)],
            _ => Vec::new(),
        };
        out.extend(messages.into_iter().map(|message| Effect::Send { connection, message }));
    }

    fn on_closed(&mut self, _: Duration, _: ConnectionId, _: &mut Vec<Effect>) {}
    fn on_time(&mut self, _: Duration, _: &mut Vec<Effect>) {}
    fn next_time(&self) -> Option<Duration> {
        None
    }
    fn metrics(&self, _: &mut rpc::Metrics) {}
}

fn start(address: &str, service: LaneService) -> (LaneAddress, ServingThread) {
    let listener = Listener::bind(&address.parse::<Address>().unwrap()).unwrap();
    let addresses = vec![listener.address().to_string()];
    let place = LaneAddress { addresses, lane: 0, server: "primary".into(), standby: None };
    (place, ServingThread::start(listener, vec![Box::new(service)], &[]))
}

fn request(lane: &mut LaneClient, policy: &RetryPolicy) -> Result<Message, rpc::Error> {
    lane.request(Message::DropRows(DropRows { request: 5, job: 7, snapshot: 0 }), policy)?;
    lane.receive_answer(5, Instant::now() + LIMIT, policy)
}

fn is_done(answer: &Result<Message, rpc::Error>) -> bool {
    matches!(answer, Ok(Message::Done(done)) if done.request == 5)
}

#[test]
fn a_request_is_repeated_to_a_lane_that_comes_back_and_not_to_another_process() {
    let lost_at = Instant::now() + LIMIT;
    let repeating = || RetryPolicy::until(move || Instant::now() >= lost_at, |_| false);
    let lost = || RetryPolicy::until(|| true, |_| false);
    for (incarnation, policy, is_answered) in [
        (1, repeating(), true),
        (2, repeating(), false),
        (1, lost(), false),
        (1, RetryPolicy::default(), false),
    ] {
        let silent = LaneService { incarnation: 1, manner: Manner::Silent, takeover: None };
        let (place, thread) = start("tcp:127.0.0.1:0", silent);
        let mut lane = LaneClient::new(place.clone(), ROLE, &[]);
        lane.connect(&policy).unwrap();
        let returning = std::thread::spawn(move || {
            std::thread::sleep(AWAY);
            drop(thread);
            std::thread::sleep(AWAY);
            start(&place.addresses[0], LaneService { incarnation, manner: Manner::Answers, takeover: None })
        });
        let answer = request(&mut lane, &policy);
        assert_eq!(is_done(&answer), is_answered, "{answer:?}");
        if let Err(error) = answer {
            // That with which the connection ended.
            assert!(matches!(error, rpc::Error::Closed | rpc::Error::TimedOut { .. }), "{error}");
        }
        drop(returning.join());
    }
}

#[test]
fn a_request_is_repeated_to_a_standby_that_takes_over_from_a_lane_that_stands_still() {
    let takeover = Some(Instant::now() + AWAY);
    let (mut place, _first) =
        start("tcp:127.0.0.1:0", LaneService { incarnation: 1, manner: Manner::Silent, takeover: None });
    let (standby, _second) =
        start("tcp:127.0.0.1:0", LaneService { incarnation: 1, manner: Manner::Waits, takeover });
    place.standby = Some(Standby {
        primary: "primary".into(),
        server: "standby".into(),
        addresses: standby.addresses,
        lane: 0,
    });
    for (policy, is_answered) in
        [(RetryPolicy::until(|| false, |_| false), true), (RetryPolicy::default(), false)]
    {
        let mut lane = LaneClient::new(place.clone(), ROLE, &[]);
        lane.connect(&policy).unwrap();
        let answer = request(&mut lane, &policy);
        assert_eq!(is_done(&answer), is_answered, "{answer:?}");
        // Later requests go to the standby, although the primary would take the connection.
        lane.connect(&policy).unwrap();
        assert!(is_done(&request(&mut lane, &policy)));
    }
}
