//! Which of the two lanes of a replicated job a connection reaches.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::time::Duration;

use common::{FakeLane, ServingThread, fault};
use rpc::message::{FaultKind, Role, Standby};
use rpc::{Address, ConnectionId, Effect, Listener, Message, Service};
use worker::{LaneAddress, LaneClient};

const LIMIT: Duration = Duration::from_millis(200);

/// A lane that welcomes every connection, or refuses it.
struct LaneService {
    /// The incarnation in its welcomes: the number by which a test knows it.
    number: u64,
    refusal: Option<FaultKind>,
}

impl Service for LaneService {
    fn on_message(&mut self, _: Duration, connection: ConnectionId, message: Message, out: &mut Vec<Effect>) {
        let Message::Hello(hello) = message else { return };
        let message = if let Some(kind) = self.refusal {
            fault(hello.request, kind, 0)
        } else {
            let mut welcome = FakeLane::new(Vec::new()).hello();
            (welcome.request, welcome.incarnation) = (hello.request, self.number + u64::from(hello.lane));
            Message::Welcome(welcome)
        };
        out.push(Effect::Send { connection, message });
    }

    fn on_closed(&mut self, _: Duration, _: ConnectionId, _: &mut Vec<Effect>) {}
    fn on_time(&mut self, _: Duration, _: &mut Vec<Effect>) {}
    fn next_time(&self) -> Option<Duration> {
        None
    }
    fn metrics(&self, _: &mut rpc::Metrics) {}
}

/// Two lanes of a server.
fn start(number: u64, refusal: Option<FaultKind>) -> (Vec<String>, ServingThread) {
    let listener = Listener::bind(&Address::Tcp("127.0.0.1:0".into())).unwrap();
    let addresses = vec![listener.address().to_string()];
    let services = (0..2).map(|_| Box::new(LaneService { number, refusal }) as Box<dyn Service>).collect();
    (addresses, ServingThread::start(listener, services, &[]))
}

/// Connects to lane 0 of a primary, whose standby is lane 1 of another server. Returns what the lane said.
fn reached(
    primary: &[String],
    standby: &[String],
    role: Role,
    lost: &[&str],
) -> Result<u64, Option<FaultKind>> {
    let standby =
        Standby { primary: "primary".into(), server: "standby".into(), addresses: standby.to_vec(), lane: 1 };
    let place = LaneAddress {
        addresses: primary.to_vec(),
        lane: 0,
        server: "primary".into(),
        standby: Some(standby),
    };
    match LaneClient::new(place, role, &[]).connect_once(LIMIT, |server| lost.contains(&server)) {
        Ok(welcome) => Ok(welcome.incarnation),
        Err(rpc::Error::Refused(fault)) => Err(Some(fault.kind)),
        Err(_) => Err(None),
    }
}

#[test]
fn a_connection_goes_to_the_primary_unless_it_is_lost_or_does_not_know_the_job() {
    let task = Role::Task { job: 7, task: 0 };
    let (primary, _first) = start(10, None);
    let (standby, _second) = start(20, None);
    let (other, _third) = start(30, Some(FaultKind::NoSuchJob));
    let (closed, _fourth) = start(40, Some(FaultKind::BadVersion));
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
