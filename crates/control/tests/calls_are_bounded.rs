//! Every call at the port ends within its limit and with a text that says why. The tests use a master handle that
//! answers as they want, and raw HTTP/2 calls where the client would not make them.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::{LIMIT, Served, TOKEN, TestAction, hasty, impatient, request};
use control::request::Status;
use control::{Client, ClientRequest, ClientResponse, Error, JobState, JobStatus, ResponseSender};
use rpc::Address;
use rpc::Message;
use rpc::limits::Limits;
use rpc::message::{Fault, FaultKind, Hello, Role, Tick};
use serde_json::json;

const STATUS: &str = "/seraphim.v1.Jobs/Status";
const AUTHORIZED: (&str, &str) = ("authorization", "Bearer secret");
/// An empty message.
const EMPTY: [u8; 5] = [0; 5];
/// The first bytes of an HTTP/2 connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An empty SETTINGS frame.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
const OUT_OF_RANGE: u32 = 11;
const UNIMPLEMENTED: u32 = 12;
const DEADLINE_EXCEEDED: u32 = 4;
const UNAUTHENTICATED: u32 = 16;
const INVALID_ARGUMENT: u32 = 3;

fn empty() -> TestAction {
    TestAction::Respond(ClientResponse::Status(Status::default()))
}

fn refused(error: &Error) -> String {
    match error {
        Error::Refused { code, text } => format!("{code:?}: {text}"),
        other => panic!("{other}"),
    }
}

fn job(state: JobState) -> JobStatus {
    JobStatus { id: 1, title: "t".into(), state, progress: json!(null), error: None }
}

#[test]
fn only_the_right_token_is_let_in() {
    let served = Served::master(Limits::default(), |_| empty());
    assert_eq!(served.client().status(LIMIT).unwrap(), Status::default());
    for wrong in [&b"secreT"[..], b"secre", b"secrets", b"x"] {
        let error = Client::new(served.address.clone(), wrong).status(LIMIT).unwrap_err();
        let text = refused(&error);
        assert!(text.starts_with("Unauthenticated: the token is not the one of this cluster"), "{text}");
    }
    let error = Client::new(served.address.clone(), b"").status(LIMIT).unwrap_err();
    assert!(refused(&error).contains("a token is required"), "{error}");
    for headers in [&[][..], &[("authorization", "secret")], &[("authorization", "Basic secret")]] {
        assert_eq!(served.call(STATUS, headers, EMPTY.to_vec()).0, UNAUTHENTICATED, "{headers:?}");
    }
    let error = Client::new(served.address.clone(), b"a\nb").status(LIMIT).unwrap_err();
    assert!(matches!(error, Error::Token), "{error}");
}

#[test]
fn a_call_that_is_not_answered_ends_at_its_deadline() {
    let served = Served::master(Limits::default(), |_| TestAction::Defer);
    let start = Instant::now();
    let (code, text) = served.call(STATUS, &[AUTHORIZED, ("grpc-timeout", "100m")], EMPTY.to_vec());
    assert_eq!((code, text.as_str()), (DEADLINE_EXCEEDED, "the deadline of the call, 100 ms, has passed"));
    assert!(start.elapsed() >= Duration::from_millis(100));
    // A watch that waits for its first update ends in the same way.
    let watch = "/seraphim.v1.Jobs/Watch";
    let (code, _) = served.call(watch, &[AUTHORIZED, ("grpc-timeout", "100m")], EMPTY.to_vec());
    assert_eq!(code, DEADLINE_EXCEEDED);
}

#[test]
fn one_who_watches_hears_that_its_deadline_has_passed() {
    let served = Served::master(Limits::default(), |call| match call.request {
        ClientRequest::Watch { .. } => TestAction::Respond(ClientResponse::Job(job(JobState::Queued))),
        _ => TestAction::Defer,
    });
    let headers = [AUTHORIZED, ("grpc-timeout", "200m")];
    let (code, text) = served.call("/seraphim.v1.Jobs/Watch", &headers, EMPTY.to_vec());
    assert_eq!((code, text.as_str()), (DEADLINE_EXCEEDED, "the deadline of the call, 200 ms, has passed"));
}

#[test]
fn a_request_that_is_too_long_is_refused_before_it_has_come() {
    let served = Served::master(Limits::default(), |_| empty());
    let mut head = vec![0];
    head.extend(u32::try_from(control::limits::REQUEST_BYTES + 1).unwrap().to_be_bytes());
    let (code, text) = served.call("/seraphim.v1.Jobs/Submit", &[AUTHORIZED], head);
    assert_eq!(code, OUT_OF_RANGE, "{text}");
    assert!(text.contains("4194304"), "{text}");
    let (code, text) = served.call("/seraphim.v1.Jobs/Submit", &[AUTHORIZED], EMPTY.to_vec());
    assert_eq!(code, INVALID_ARGUMENT, "{text}");
    assert!(text.contains("submission_id has 0 bytes"), "{text}");
}

#[test]
fn what_is_not_here_is_said() {
    let served = Served::master(Limits::default(), |_| empty());
    for path in ["/seraphim.v1.Jobs/Explode", "/other.Service/Do", "/"] {
        assert_eq!(served.call(path, &[AUTHORIZED], EMPTY.to_vec()).0, UNIMPLEMENTED, "{path}");
    }
    let (code, text) = served.call("/grpc.health.v1.Health/Watch", &[], EMPTY.to_vec());
    assert_eq!(code, UNIMPLEMENTED, "{text}");
    let member = Served::member();
    let error = member.client().status(LIMIT).unwrap_err();
    assert!(refused(&error).contains("this process is not a master"), "{error}");
}

#[test]
fn health_is_answered_to_everybody_by_masters_and_members() {
    for served in [Served::master(Limits::default(), |_| TestAction::Defer), Served::member()] {
        assert!(Client::new(served.address.clone(), b"").is_well(LIMIT).unwrap());
        // Field 1, a string of one byte.
        let (code, text) = served.call("/grpc.health.v1.Health/Check", &[], vec![0, 0, 0, 0, 3, 10, 1, b'x']);
        assert_eq!(code, 5, "{text}");
    }
}

#[test]
fn whoever_begins_to_call_and_shows_no_token_is_closed_in_time_and_counted() {
    let served = Served::master(impatient(), |_| empty());
    let begun = [PREFACE, &SETTINGS].concat();
    for (number, bytes) in [&b"PRI "[..], b"PRI * HTTP/2.0", PREFACE, &begun].into_iter().enumerate() {
        let (_, took) = served.say(bytes);
        assert!(took >= impatient().hello_time && took < LIMIT, "{took:?} {number}");
        assert_eq!(served.count("refused_hello_total"), number as u64 + 1);
    }
    let (answer, took) =
        served.say(b"PRI whatever comes to mind, as long as it is more than a header of frames");
    assert!(took < impatient().hello_time, "it is no HTTP/2: no need to wait");
    assert!(answer.starts_with(b"SRPH"));
    assert_eq!(served.count("refused_hello_total"), 5);
    assert_eq!(served.count("connections"), 1, "their places are free again");
}

#[test]
fn one_who_has_shown_the_token_may_be_silent_longer() {
    let served = Served::master(impatient(), |call| match call.request {
        ClientRequest::Watch { .. } => TestAction::Respond(ClientResponse::Job(job(JobState::Running))),
        _ => TestAction::Defer,
    });
    let client = served.client();
    let end = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut seen = Vec::new();
            client.watch(1, |status| {
                seen.push(status.state);
                true
            })?;
            Ok::<_, Error>(seen)
        });
        let reply = loop {
            match served.master.deferred.lock().unwrap().pop() {
                Some(reply) => break reply,
                None => std::thread::yield_now(),
            }
        };
        // When a later silent connection is closed, the time of the first one is over too.
        served.say(PREFACE);
        assert!(reply.send(Ok(ClientResponse::Job(job(JobState::Done)))).is_none());
        watching.join().unwrap()
    });
    assert_eq!(end.unwrap().last(), Some(&JobState::Done));
}

/// Reads the headers of an answer, answers pings, and reads no more. Ends when the connection is closed.
async fn leave_unread(served: &Served, path: &str) {
    let (mut sender, connection) = served.hand(1).await;
    let carried = tokio::spawn(connection);
    let _unread = sender.send_request(request(path, &[AUTHORIZED], EMPTY.to_vec())).await.unwrap();
    let _ = tokio::time::timeout(LIMIT, carried).await.expect("it is closed in time").unwrap();
}

#[test]
fn one_who_leaves_its_news_unread_is_closed_and_counted_and_one_who_has_none_is_not() {
    let long = JobStatus { title: "t".repeat(1 << 20), ..job(JobState::Running) };
    let served = Served::master(hasty(), move |call| match call.request {
        ClientRequest::Watch { job: 0 } => TestAction::Respond(ClientResponse::Job(long.clone())),
        ClientRequest::Watch { .. } => TestAction::Respond(ClientResponse::Job(job(JobState::Running))),
        _ => TestAction::Defer,
    });
    let (client, (seen, news)) = (served.client(), mpsc::channel());
    let watching = std::thread::spawn(move || {
        client.watch(1, |status| {
            let _ = seen.send(status.state);
            true
        })
    });
    assert_eq!(news.recv_timeout(LIMIT).unwrap(), JobState::Running);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let start = Instant::now();
    runtime.block_on(leave_unread(&served, "/seraphim.v1.Jobs/Watch"));
    assert!(start.elapsed() >= hasty().outbound_stall);
    assert_eq!(served.count("closed_outbound_total"), 1);
    // The first watcher is gone; the other one has read all updates and still waits.
    let other = loop {
        assert!(start.elapsed() < LIMIT, "it is known that the one has left");
        let mut kept = served.master.deferred.lock().unwrap();
        kept.retain(|reply| matches!(reply, ResponseSender::Latest(sender) if !sender.is_closed()));
        if kept.len() == 1 {
            break kept.remove(0);
        }
    };
    assert!(other.send(Ok(ClientResponse::Job(job(JobState::Done)))).is_none());
    assert_eq!(news.recv_timeout(LIMIT).unwrap(), JobState::Done);
    watching.join().unwrap().unwrap();
}

#[test]
fn an_answer_that_nobody_reads_does_not_wait_for_ever() {
    let long = Status {
        jobs: vec![JobStatus { title: "t".repeat(1 << 20), ..job(JobState::Done) }],
        ..Status::default()
    };
    let served = Served::master(hasty(), move |_| TestAction::Respond(ClientResponse::Status(long.clone())));
    // A client that reads gets the whole answer, in chunks.
    assert_eq!(served.client().status(LIMIT).unwrap().jobs[0].title.len(), 1 << 20);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(leave_unread(&served, STATUS));
    assert_eq!(served.count("closed_outbound_total"), 1);
}

#[test]
fn frames_and_calls_come_to_one_port_at_once_and_share_its_places() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let served = Served::master(limits, |_| empty());
    let hello = Hello { request: 1, token: TOKEN.to_vec(), role: Role::Tool, lane: 0 };
    let (mut sender, mut receiver, _) = rpc::open(&served.address, LIMIT, &hello).unwrap();
    receiver.set_timeout(Some(LIMIT)).unwrap();
    for request in 2..5 {
        assert_eq!(served.client().status(LIMIT).unwrap(), Status::default());
        sender.send(&Message::Tick(Tick { request, job: 1, task: 0, clock: 1 })).unwrap();
        assert!(matches!(receiver.receive().unwrap(), Message::Done(done) if done.request == request));
    }
    // The slot of the last call is free as soon as its end is noticed.
    let _second = loop {
        if let Ok(second) = rpc::open(&served.address, LIMIT, &hello) {
            break second;
        }
    };
    // The refusal may be lost with the reset of a connection whose bytes were not read. How often depends on the
    // machine.
    let refusal = loop {
        match served.client().status(LIMIT).unwrap_err() {
            Error::Lost { .. } => {}
            error => break error,
        }
    };
    assert_eq!(
        refused(&refusal),
        "Unavailable: the limit of 2 connections is reached: close some, or retry later"
    );
}

#[test]
fn too_many_calls_are_sent_away_with_the_code_that_says_come_again() {
    let served = Served::master(Limits::default(), |_| {
        let text = "come later".to_owned();
        TestAction::Refuse(Fault { request: 0, kind: FaultKind::Busy, text, retry_after_ms: 9 })
    });
    let error = served.client().status(LIMIT).unwrap_err();
    assert_eq!(refused(&error), "Unavailable: come later");
}

#[test]
fn calls_that_a_master_cannot_answer_any_more_are_told_that_it_has_ended() {
    let mut served = Served::master(Limits::default(), |call| match call.request {
        ClientRequest::Watch { .. } => TestAction::Respond(ClientResponse::Job(job(JobState::Running))),
        _ => TestAction::Defer,
    });
    let (asking, watching) = (served.client(), served.client());
    let asking = std::thread::spawn(move || asking.status(LIMIT).unwrap_err());
    let watching = std::thread::spawn(move || watching.watch(1, |_| true).unwrap_err());
    let deadline = Instant::now() + LIMIT;
    while served.master.deferred.lock().unwrap().len() < 2 {
        assert!(Instant::now() < deadline, "both are heard");
        std::thread::yield_now();
    }
    served.master.deferred.lock().unwrap().clear();
    for error in [asking.join().unwrap(), watching.join().unwrap()] {
        assert_eq!(refused(&error), "Unavailable: the master has ended");
    }
    served.end();
}

#[test]
fn what_is_no_master_is_told_apart() {
    // A port that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let start = Instant::now();
    let error = Client::new(Address::Tcp(free.to_string()), b"").status(LIMIT).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(2));
    assert!(error.to_string().contains("refused"), "{error}");
    for says in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"SRPH\x01\x00\x16\x00 and so on"] {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(other.local_addr().unwrap().to_string());
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = other.accept().unwrap();
            stream.write_all(says).unwrap();
            // Reads until the client closes the connection.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let error = Client::new(address, b"").status(LIMIT).unwrap_err();
        assert!(matches!(error, Error::NotGrpc), "{error}");
        thread.join().unwrap();
    }
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(mute.local_addr().unwrap().to_string());
    let error = Client::new(address, b"").status(Duration::from_millis(200)).unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
}
