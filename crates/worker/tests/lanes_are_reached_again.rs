//! Which of the two lanes of a replicated job a connection reaches, and when a request is sent again over another connection.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::time::{Duration, Instant};

use common::{FakeLane, ServingThread, fault};
use rpc::layout::LaneAddress;
use rpc::message::{Done, DropRows, FaultKind, PushPosition, Role, Standby};
use rpc::{Address, ConnectionId, Effect, Listener, Message, Service};
use worker::{LaneClient, RetryPolicy};

const TOOL: Role = Role::JobTool { job: 7 };
const NEW: &str = "tcp:127.0.0.1:0";
const LIMIT: Duration = Duration::from_millis(200);
/// Longest wait for an answer, which the tests need not reach.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Time for which a lane is away: several attempts to connect fail meanwhile.
const AWAY: Duration = Duration::from_millis(200);

#[derive(Clone, Copy)]
enum Behavior {
    /// Welcomes every connection, and answers requests after late answers to earlier ones.
    Answers,
    /// Welcomes every connection, and stands still then.
    StandsStill,
    Refuses(FaultKind),
    /// Refuses as a standby does until this time, and answers then.
    TakesOver(Instant),
}

struct LaneService {
    /// The incarnation in its welcomes: the number by which a test knows it.
    number: u64,
    behavior: Behavior,
}

impl Service for LaneService {
    fn on_message(&mut self, _: Duration, connection: ConnectionId, message: Message, out: &mut Vec<Effect>) {
        let refusal = match self.behavior {
            Behavior::Refuses(kind) => Some(kind),
            Behavior::TakesOver(time) if Instant::now() < time => Some(FaultKind::Busy),
            Behavior::TakesOver(_) | Behavior::Answers | Behavior::StandsStill => None,
        };
        let messages = match message {
            Message::Hello(hello) if refusal.is_none() => {
                let mut welcome = FakeLane::new(Vec::new()).hello();
                (welcome.request, welcome.incarnation) = (hello.request, self.number + u64::from(hello.lane));
                vec![Message::Welcome(welcome)]
            }
            Message::Hello(hello) => refusal.map(|kind| fault(hello.request, kind, 0)).into_iter().collect(),
            Message::DropRows(drop) if !matches!(self.behavior, Behavior::StandsStill) => {
                [drop.request - 1, drop.request].map(done).into()
            }
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

fn done(request: u64) -> Message {
    Message::Done(Done { request, minimum: 0, applied: PushPosition::default() })
}

/// Two lanes of a server.
fn start(address: &str, number: u64, behavior: Behavior) -> (Vec<String>, ServingThread) {
    let listener = Listener::bind(&address.parse::<Address>().unwrap()).unwrap();
    let addresses = vec![listener.address().to_string()];
    let services = (0..2).map(|_| Box::new(LaneService { number, behavior }) as Box<dyn Service>).collect();
    (addresses, ServingThread::start(listener, services, &[]))
}

/// A client of lane 0 of a primary, whose standby is lane 1 of another server.
fn client(primary: &[String], standby: &[String], role: Role) -> LaneClient {
    let standby =
        Standby { primary: "primary".into(), server: "standby".into(), addresses: standby.to_vec(), lane: 1 };
    let place = LaneAddress {
        server: "primary".into(),
        standby: Some(standby),
        ..LaneAddress::new(primary.to_vec(), 0)
    };
    LaneClient::new(place, role, &[])
}

/// Connects to a lane or its standby. Returns what the lane said.
fn reached(
    primary: &[String],
    standby: &[String],
    role: Role,
    lost: &[&str],
) -> Result<u64, Option<FaultKind>> {
    match client(primary, standby, role).connect_once(LIMIT, |server| lost.contains(&server)) {
        Ok(welcome) => Ok(welcome.incarnation),
        Err(rpc::Error::Refused(fault)) => Err(Some(fault.kind)),
        Err(_) => Err(None),
    }
}

/// Sends a request. Returns whether it was answered, or the error.
fn request(lane: &mut LaneClient, policy: &RetryPolicy) -> Result<bool, rpc::Error> {
    lane.request(Message::DropRows(DropRows { request: 5, job: 7, snapshot: 0 }), policy)?;
    Ok(lane.receive_answer(5, Instant::now() + ANSWER_LIMIT, policy)? == done(5))
}

#[test]
fn a_connection_goes_to_the_primary_unless_it_is_lost_or_does_not_know_the_job() {
    let task = Role::Task { job: 7, task: 0 };
    let (primary, _first) = start(NEW, 10, Behavior::Answers);
    let (standby, _second) = start(NEW, 20, Behavior::Answers);
    let (other, _third) = start(NEW, 30, Behavior::Refuses(FaultKind::NoSuchJob));
    let (closed, _fourth) = start(NEW, 40, Behavior::Refuses(FaultKind::BadVersion));
    // Nobody listens there.
    let nowhere = ["unix:/nowhere/at.all".to_owned()];
    assert_eq!(reached(&primary, &standby, task, &[]), Ok(10));
    assert_eq!(reached(&other, &standby, task, &[]), Ok(21), "another process is at its addresses");
    assert_eq!(reached(&nowhere, &standby, task, &[]), Ok(21));
    assert_eq!(reached(&primary, &standby, task, &["primary"]), Ok(21));
    assert_eq!(reached(&closed, &standby, task, &[]), Err(Some(FaultKind::BadVersion)));
    assert_eq!(reached(&other, &standby, task, &["standby"]), Err(Some(FaultKind::NoSuchJob)));
    assert_eq!(reached(&primary, &standby, task, &["primary", "standby"]), Err(None));
    // Who names no job would reach a standby that has not taken the job over.
    assert_eq!(reached(&nowhere, &standby, Role::Tool, &[]), Err(None));
    assert_eq!(reached(&other, &standby, Role::Tool, &[]), Err(Some(FaultKind::NoSuchJob)));
    assert_eq!(reached(&primary, &standby, Role::Tool, &[]), Ok(10));
}

#[test]
fn a_request_is_repeated_to_a_lane_that_comes_back_and_not_to_another_process() {
    let repeats = |is_lost: bool| RetryPolicy::until(move || is_lost, |_| false);
    for (number, policy, is_answered) in [
        (10, repeats(false), true),
        (11, repeats(false), false),
        (10, repeats(true), false),
        (10, RetryPolicy::default(), false),
    ] {
        let (addresses, thread) = start(NEW, 10, Behavior::StandsStill);
        let mut lane = LaneClient::new(LaneAddress::new(addresses.clone(), 0), TOOL, &[]);
        lane.connect(&policy).unwrap();
        let returning = std::thread::spawn(move || {
            std::thread::sleep(AWAY);
            drop(thread);
            std::thread::sleep(AWAY);
            start(&addresses[0], number, Behavior::Answers)
        });
        match request(&mut lane, &policy) {
            Ok(is_done) => assert!(is_done && is_answered),
            // That with which the connection ended, or the wait of a policy that is over.
            Err(rpc::Error::Closed | rpc::Error::TimedOut { .. }) => assert!(!is_answered),
            Err(error) => panic!("{error}"),
        }
        drop(returning.join());
    }
}

#[test]
fn a_request_is_repeated_to_a_standby_that_takes_over_from_a_lane_that_stands_still() {
    let (primary, _first) = start(NEW, 10, Behavior::StandsStill);
    // It has the incarnation of the primary for those who connect to its lane 1.
    let (standby, _second) = start(NEW, 9, Behavior::TakesOver(Instant::now() + AWAY));
    for (policy, is_answered) in
        [(RetryPolicy::until(|| false, |_| false), true), (RetryPolicy::default(), false)]
    {
        let mut lane = client(&primary, &standby, TOOL);
        lane.connect(&policy).unwrap();
        assert_eq!(request(&mut lane, &policy).unwrap_or(false), is_answered);
        // Later requests go to the standby, although the primary would welcome them.
        lane.connect(&policy).unwrap();
        assert!(request(&mut lane, &policy).unwrap());
    }
}
