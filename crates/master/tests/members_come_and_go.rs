//! Members over real sockets: they join, stay alive, reconnect after a reset, are notified when others leave, and give
//! up a master that is lost.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::time::{Duration, Instant};

use common::{Cluster, FnRunner, Proxy, config, next, quick, server, worker};
use master::JobLink;
use member::{MemberEvent, join};
use rpc::Error;
use rpc::message::{Base64Bytes, ControlBody, FaultKind};
use rpc::transport::Address;
use serde_json::{Value, json};

fn no_jobs() -> FnRunner<fn(JobLink) -> Result<Value, String>> {
    FnRunner(|_| Ok(Value::Null))
}

#[test]
fn a_member_joins_and_its_report_is_seen() {
    let cluster = Cluster::start(quick(), b"", no_jobs());
    let (membership, _events) = cluster.join("s", server());
    membership.set_report(json!({ "bytes": 7 }));
    let id = membership.id();
    cluster
        .until(|members, _| members.iter().any(|(m, report)| m.id == id && *report == json!({ "bytes": 7 })));
    let (other, _other_events) = cluster.join("w", worker());
    assert_ne!(other.id(), id);
    assert_eq!(cluster.status().0.len(), 2);
}

#[test]
fn heartbeats_keep_a_member_alive_longer_than_its_lease() {
    let cluster = Cluster::start(quick(), b"", no_jobs());
    let (membership, events) = cluster.join("w", worker());
    assert!(events.recv_timeout(quick().lease * 2).is_err(), "nothing happens");
    assert_eq!(cluster.status().0[0].0.id, membership.id());
}

#[test]
fn a_member_that_leaves_frees_its_name_and_the_others_hear_of_it() {
    let cluster = Cluster::start(quick(), b"", no_jobs());
    let (stays, events) = cluster.join("stays", server());
    let (leaves, _) = cluster.join("leaves", worker());
    let id = leaves.id();
    leaves.leave();
    let MemberEvent::Message(ControlBody::Gone { member, reason }) = next(&events) else { panic!() };
    assert_eq!((member.id, reason.as_str()), (id, "it has left"));
    let (again, _) = cluster.join("leaves", worker());
    assert!(again.id() > id && stays.id() < id);
}

#[test]
fn a_member_whose_connection_is_cut_comes_back_with_its_number() {
    let cluster = Cluster::start(quick(), b"", no_jobs());
    let proxy = Proxy::to(&cluster.address);
    let (membership, events) = join(config(&proxy.address, "w", worker())).unwrap();
    let id = membership.id();
    for round in 0..3 {
        proxy.cut();
        assert_eq!(next(&events), MemberEvent::Reconnected, "round {round}");
    }
    assert_eq!(membership.id(), id);
    assert_eq!(cluster.status().0.len(), 1);
}

#[test]
fn a_second_member_of_one_name_is_refused() {
    let cluster = Cluster::start(quick(), b"", no_jobs());
    let (_first, _events) = cluster.join("w", worker());
    let mut second = config(&cluster.address, "w", worker());
    second.incarnation = 2;
    match join(second) {
        Err(Error::Refused(fault)) => {
            assert_eq!(fault.kind, FaultKind::Invalid);
            assert!(fault.text.contains("two members have the name \"w\""), "{}", fault.text);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_wrong_token_is_refused_at_once() {
    let cluster = Cluster::start(quick(), b"right", no_jobs());
    let mut wrong = config(&cluster.address, "w", worker());
    wrong.token = b"wrong".to_vec();
    match join(wrong) {
        Err(Error::Refused(fault)) => assert_eq!(fault.kind, FaultKind::BadToken),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_master_that_is_not_there_is_said_within_the_limit() {
    // A port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut nobody = config(&Address::Tcp(free.to_string()), "w", worker());
    nobody.connect_limit = Duration::from_millis(300);
    let start = Instant::now();
    let text = join(nobody).unwrap_err().to_string();
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    for part in [&*format!("no master answers at tcp:{free}"), "attempts", "seraphim master", "--master"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn one_who_takes_the_call_and_says_nothing_is_no_master() {
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut nobody = config(&Address::Tcp(mute.local_addr().unwrap().to_string()), "w", worker());
    nobody.connect_limit = Duration::from_millis(300);
    let text = join(nobody).unwrap_err().to_string();
    assert!(text.contains("no master answers") && text.contains("timed out"), "{text}");
}

#[test]
fn a_master_that_is_gone_is_given_up_after_the_limit() {
    let mut cluster = Cluster::start(quick(), b"", no_jobs());
    let mut impatient = config(&cluster.address, "w", worker());
    impatient.lost_limit = Duration::from_millis(400);
    let (membership, events) = join(impatient).unwrap();
    cluster.end();
    let MemberEvent::MasterLost { reason } = next(&events) else { panic!() };
    assert!(reason.contains("0.4 s, the limit") && reason.contains("attempts"), "{reason}");
    assert!(events.recv().is_err(), "nothing more will come");
    membership.send(ControlBody::FromTask { job: 1, body: Base64Bytes::default() });
    membership.leave();
}

#[test]
fn a_member_hears_that_its_master_was_started_anew_and_is_unknown_until_it_joins_again() {
    let socket = std::env::temp_dir().join(format!("seraphim-master-{}", std::process::id()));
    let place = Address::Unix(socket).to_string();
    let mut cluster = Cluster::at(&place, quick(), b"", no_jobs());
    let (_membership, events) = cluster.join("w", worker());
    cluster.end();
    let again = Cluster::at(&place, quick(), b"", no_jobs());
    assert_eq!(next(&events), MemberEvent::MasterRestarted { continued: Vec::new() });
    assert!(events.recv().is_err(), "nothing more will come");
    assert_eq!(again.status().0.len(), 0, "what it did for the earlier one comes first");
    let (membership, _events) = again.join("w", worker());
    assert_eq!(again.status().0[0].0.id, membership.id());
}
