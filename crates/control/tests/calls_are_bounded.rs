//! Every call at the port ends within its limit and with a text that says why. The tests use a master handle that
//! answers as they want, and raw HTTP/2 calls where the client would not make them.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::{LIMIT, Served, TestAction, hasty, impatient, request};
use control::request::Status;
use control::{Client, ClientRequest, ClientResponse, Error, JobState, JobStatus, ResponseSender};
use rpc::Address;
use rpc::limits::Limits;
use rpc::message::{Fault, FaultKind};
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
        assert_eq!(served.count("closed_unauthenticated_total"), number as u64 + 1);
    }
    for no_http in [&b"PRI whatever comes to mind\r\n\r\n"[..], b"SRPH\x01\x00 a frame"] {
        let (answer, took) = served.say(no_http);
        assert!(took < impatient().hello_time, "it is no HTTP: no need to wait");
        assert!(answer.starts_with(b"HTTP/1.1 400 "));
    }
    assert_eq!(served.count("closed_unauthenticated_total"), 4);
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
    assert_eq!(served.count("closed_unread_total"), 1);
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
    assert_eq!(served.count("closed_unread_total"), 1);
}

#[test]
fn connections_beyond_the_limit_are_refused_and_places_come_back() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let served = Served::master(limits, |_| empty());
    let held: Vec<_> = (0..2).map(|_| TcpStream::connect(served.place()).unwrap()).collect();
    let full = "the limit of 2 connections is reached: close some, or retry later";
    let refusal = served.client().status(LIMIT).unwrap_err();
    assert_eq!(refused(&refusal), format!("Unavailable: {full}"));
    let plain = served.get("/health");
    assert!(plain.starts_with("HTTP/1.1 503 ") && plain.ends_with(&format!("{full}\n")), "{plain}");
    drop(held);
    let start = Instant::now();
    while served.client().status(LIMIT).is_err() {
        assert!(start.elapsed() < LIMIT, "the places are free again");
    }
    assert!(served.count("refused_full_total") >= 2);
}

#[test]
fn ten_thousand_connections_that_say_nothing_do_not_stop_the_calls() {
    let limits = Limits { connections: 100, hello_time: Duration::from_secs(1), ..Limits::default() };
    let served = Served::master(limits, |_| empty());
    let mut held = std::collections::VecDeque::new();
    for _ in 0..10_000 {
        held.push_back(TcpStream::connect(served.place()).unwrap());
        // The test process may open no more files than usual.
        if held.len() > 200 {
            held.pop_front();
        }
    }
    let start = Instant::now();
    while served.client().status(LIMIT).is_err() {
        assert!(start.elapsed() < LIMIT, "those that say nothing leave their places in time");
    }
    drop(held);
    assert!(served.count("refused_full_total") > 0);
}

#[test]
fn one_who_sends_a_request_byte_by_byte_is_closed_in_time() {
    let served = Served::master(impatient(), |_| empty());
    let start = Instant::now();
    let mut slow = TcpStream::connect(served.place()).unwrap();
    slow.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    for byte in b"GET /metrics HTTP/1.1\r\nx: ".iter().chain(std::iter::repeat(&b'y')) {
        assert!(start.elapsed() < LIMIT, "it is still open");
        if slow.write_all(&[*byte]).is_err() || matches!(slow.read(&mut [0; 64]), Ok(0)) {
            break;
        }
    }
    assert!(start.elapsed() >= impatient().hello_time);
}

#[test]
fn one_who_does_not_read_an_answer_of_http_1_is_closed_and_counted() {
    // The answer is longer than what the buffers of two sockets hold.
    let served = Served::start(hasty(), None, 400_000);
    let mut deaf = TcpStream::connect(served.place()).unwrap();
    deaf.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let (quiet, start) = (Served::member(), Instant::now());
    assert!(quiet.get("/health").ends_with("ok\n"));
    while served.count("closed_unread_total") == 0 {
        assert!(start.elapsed() < LIMIT, "it is closed in time");
    }
}

#[test]
fn plain_http_has_metrics_and_health_and_bounds_its_requests() {
    for served in [Served::master(Limits::default(), |_| empty()), Served::member()] {
        let metrics = served.get("/metrics");
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/openmetrics-text; version=1.0.0";
        assert!(metrics.starts_with(head) && metrics.ends_with("\n# EOF\n"), "{metrics}");
        assert!(metrics.contains("\nseraphim_http_connections 1\n"), "{metrics}");
        assert!(served.get("/health").ends_with("\r\n\r\nok\n"));
        let absent = served.get("/secrets");
        assert!(absent.starts_with("HTTP/1.1 404 ") && absent.ends_with("there are /metrics and /health\n"));
        assert!(served.get(&format!("/{}", "x".repeat(20_000))).starts_with("HTTP/1.1 4"));
        let long = format!("GET /health HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(20_000));
        assert!(served.say(long.as_bytes()).0.starts_with(b"HTTP/1.1 431 "));
    }
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
