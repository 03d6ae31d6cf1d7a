//! A service answers over tcp and unix sockets. A refused connection gets the reason. A connection that breaks the
//! protocol is closed, and the others are not affected. The tests use real sockets and a service that answers
//! everything at once, or one that pauses connections.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use common::{Echo, LIMIT, Served, hello, pull_range, push_range, tick, welcome};
use rpc::limits::FrameLimits;
use rpc::message::{Done, FaultKind, Hello, Leave, PushPosition};
use rpc::{ConnectOptions, ConnectionId, Effect, Error, Limits, Message, Receiver, Service, open};

fn refusal(served: &Served, hello: &Hello) -> FaultKind {
    match open(&served.address, LIMIT, hello) {
        Err(Error::Refused(fault)) => fault.kind,
        other => panic!("{other:?}"),
    }
}

/// Sends bytes; returns what the other end sends until it closes the connection.
fn exchange(served: &Served, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(served.port()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    // A reset after the answer is an end too.
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn fault_in(bytes: &[u8]) -> rpc::message::Fault {
    let mut reader = rpc::reader::FrameReader::new(FrameLimits::default(), bytes.len());
    reader.space()[..bytes.len()].copy_from_slice(bytes);
    reader.advance(bytes.len());
    let frame = reader.frame().unwrap().unwrap();
    match Message::from_frame(frame).unwrap() {
        Message::Fault(fault) => fault,
        other => panic!("{other:?}"),
    }
}

fn hello_bytes() -> Vec<u8> {
    let mut bytes = Vec::new();
    let limits = FrameLimits::default();
    rpc::codec::put_frame(&Message::Hello(hello()), true, &limits, &mut bytes).unwrap();
    bytes
}

#[test]
fn requests_are_answered_in_order_over_tcp_and_unix_sockets() {
    let folder = tempfile::tempdir().unwrap();
    let unix = format!("unix:{}", folder.path().join("socket").display());
    for address in ["127.0.0.1:0", &unix] {
        let served = Served::new(address, vec![Box::new(Echo::default())], Limits::default());
        for checksum in [true, false] {
            let options = ConnectOptions { checksum, ..ConnectOptions::default() };
            let (mut sender, mut receiver, welcome) =
                rpc::transport::open_with(&served.address, LIMIT, &hello(), options).unwrap();
            assert_eq!(welcome.request, 1);
            receiver.set_timeout(Some(LIMIT)).unwrap();
            for request in 1..=20 {
                sender.send(&pull_range(request, 50_001 * (request % 3) as u32)).unwrap();
                sender.send(&tick(request)).unwrap();
            }
            for request in 1..=20 {
                let Message::Pulled(pulled) = receiver.receive().unwrap() else { panic!() };
                assert_eq!((pulled.request, pulled.values.len()), (request, 50_001 * (request as usize % 3)));
                let Message::Done(done) = receiver.receive().unwrap() else { panic!() };
                assert_eq!(done.request, request);
            }
        }
        served.end().unwrap();
    }
    assert!(!folder.path().join("socket").exists(), "the file goes with the listener");
}

#[test]
fn a_wrong_token_a_wrong_lane_and_a_wrong_version_are_refused() {
    let served = Served::echo();
    assert_eq!(refusal(&served, &Hello { token: b"guess".to_vec(), ..hello() }), FaultKind::BadToken);
    assert_eq!(refusal(&served, &Hello { token: Vec::new(), ..hello() }), FaultKind::BadToken);
    assert_eq!(refusal(&served, &Hello { lane: 1, ..hello() }), FaultKind::NotFound);
    let mut other_version = hello_bytes();
    other_version[4] = 9;
    let fault = fault_in(&exchange(&served, &other_version));
    assert_eq!(fault.kind, FaultKind::BadVersion);
    assert!(fault.text.contains("version 9"), "{}", fault.text);
}

#[test]
fn bytes_that_are_no_frame_are_answered_with_a_fault() {
    let served = Served::echo();
    assert_eq!(fault_in(&exchange(&served, b"\x16\x03\x01 these are no frames")).kind, FaultKind::BadFrame);
    // The header says 2^32 - 1 u64s of keys, with a right checksum.
    let mut huge = hello_bytes();
    huge[40..44].copy_from_slice(&u32::MAX.to_le_bytes());
    let sum = crc32c::crc32c(&huge[..60]);
    huge[60..64].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(fault_in(&exchange(&served, &huge)).kind, FaultKind::TooLarge);
    let mut first_is_no_hello = Vec::new();
    let limits = FrameLimits::default();
    rpc::codec::put_frame(&tick(5), true, &limits, &mut first_is_no_hello).unwrap();
    let fault = fault_in(&exchange(&served, &first_is_no_hello));
    assert_eq!((fault.kind, fault.request), (FaultKind::BadFrame, 5));
}

#[test]
fn damage_behind_the_hello_is_a_fault_and_an_end() {
    let served = Served::echo();
    let mut bytes = hello_bytes();
    let at = bytes.len();
    let limits = FrameLimits::default();
    rpc::codec::put_frame(&pull_range(3, 4), true, &limits, &mut bytes).unwrap();
    bytes[at + 70] ^= 1;
    let answer = exchange(&served, &bytes);
    let welcome_bytes = 64 + 40;
    let fault = fault_in(&answer[welcome_bytes..]);
    assert_eq!(fault.kind, FaultKind::BadFrame);
    assert!(fault.text.contains("CRC-32C"), "{}", fault.text);
}

#[test]
fn a_second_hello_is_a_fault_and_an_end() {
    let served = Served::echo();
    let (mut sender, mut receiver, _) = open(&served.address, LIMIT, &hello()).unwrap();
    receiver.set_timeout(Some(LIMIT)).unwrap();
    sender.send_all(&[Message::Hello(Hello { request: 5, ..hello() }), tick(6)]).unwrap();
    let Message::Fault(fault) = receiver.receive().unwrap() else { panic!() };
    assert_eq!((fault.kind, fault.request), (FaultKind::BadFrame, 5));
    assert!(fault.text.contains("one Hello"), "{}", fault.text);
    assert!(matches!(receiver.receive(), Err(Error::Closed)));
}

#[test]
fn one_who_says_nothing_is_closed_in_time() {
    let limits = Limits { hello_time: Duration::from_millis(50), ..Limits::default() };
    let served = Served::new("127.0.0.1:0", vec![Box::new(Echo::default())], limits);
    assert!(fault_in(&exchange(&served, b"SRPH")).text.contains("no Hello arrived"));
}

#[test]
fn http_is_told_where_its_port_is() {
    let served = Served::echo();
    for request in [
        &b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n"[..],
        b"HEAD /health HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let answer = String::from_utf8(exchange(&served, request)).unwrap();
        assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
        let text = "this port carries frames only; gRPC, /metrics and /health are at tcp:127.0.0.1:9\n";
        assert!(answer.ends_with(text), "{answer}");
    }
    assert_eq!(served.metric("seraphim_rpc_refused_hello_total"), 4);
}

/// A port of HTTP answers frames as bytes that are no request.
#[test]
fn who_sends_frames_to_a_port_of_http_is_told_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = rpc::Address::Tcp(listener.local_addr().unwrap().to_string());
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n").unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let error = open(&address, LIMIT, &hello()).unwrap_err();
    assert!(error.to_string().contains("this is an HTTP port"), "{error}");
    thread.join().unwrap();
}

#[test]
fn metrics_are_those_of_connections_and_lanes() {
    let served = Served::echo();
    assert_eq!((served.metric("echo_is_well"), served.metric("seraphim_rpc_connections")), (1, 0));
}

#[test]
fn a_service_that_closes_a_connection_is_told_of_its_end_once() {
    let served = Served::echo();
    let (mut sender, mut receiver, _) = open(&served.address, LIMIT, &hello()).unwrap();
    receiver.set_timeout(Some(LIMIT)).unwrap();
    sender.send_all(&[tick(2), Message::Leave(Leave { request: 0, job: 1, task: 0 }), tick(3)]).unwrap();
    assert!(matches!(receiver.receive().unwrap(), Message::Done(_)), "what came before the end is answered");
    assert!(matches!(receiver.receive(), Err(Error::Closed)));
    let (mut sender, mut receiver, _) = open(&served.address, LIMIT, &hello()).unwrap();
    receiver.set_timeout(Some(LIMIT)).unwrap();
    sender.send(&tick(4)).unwrap();
    let Message::Done(done) = receiver.receive().unwrap() else { panic!() };
    assert_eq!(done.minimum, 1, "on_closed was called once");
}

#[test]
fn a_service_is_called_at_its_time() {
    let echo = Echo::ticking(Duration::from_millis(5));
    let served = Served::new("127.0.0.1:0", vec![Box::new(echo)], Limits::default());
    let (_sender, mut receiver, _) = open(&served.address, LIMIT, &hello()).unwrap();
    receiver.set_timeout(Some(LIMIT)).unwrap();
    let Message::Done(done) = receiver.receive().unwrap() else { panic!() };
    assert_eq!(done.request, 7);
}

#[test]
fn a_service_that_panics_ends_the_serving_with_an_error() {
    let served = Served::echo();
    let (mut sender, mut receiver, _) = open(&served.address, LIMIT, &hello()).unwrap();
    receiver.set_timeout(Some(LIMIT)).unwrap();
    sender.send(&Message::Stats(rpc::message::Stats { request: 1, job: 1 })).unwrap();
    assert!(matches!(receiver.receive(), Err(Error::Closed)));
    assert!(matches!(served.ends_by_itself(), Err(Error::Lane { lane: 0 })));
}

/// Pauses a connection that has pushed until another one ticks, as a server does when a push waits for other tasks.
#[derive(Default)]
struct PauseOnPush(Option<ConnectionId>);

impl Service for PauseOnPush {
    fn on_message(&mut self, _: Duration, connection: ConnectionId, message: Message, out: &mut Vec<Effect>) {
        assert_ne!(self.0, Some(connection), "nothing comes over a paused connection");
        let done = |request| Message::Done(Done { request, minimum: 0, applied: PushPosition::default() });
        let message = match message {
            Message::Hello(hello) => Message::Welcome(welcome(hello.request)),
            Message::Push(push) => {
                self.0 = Some(connection);
                out.push(Effect::Pause { connection });
                done(push.request)
            }
            Message::Tick(tick) => {
                out.extend(self.0.take().map(|connection| Effect::Resume { connection }));
                done(tick.request)
            }
            other => panic!("not expected: {}", other.kind_name()),
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

fn next_done(receiver: &mut Receiver) -> u64 {
    let Message::Done(done) = receiver.receive().unwrap() else { panic!() };
    done.request
}

#[test]
fn a_paused_connection_is_not_read_until_it_is_resumed() {
    let served = Served::new("127.0.0.1:0", vec![Box::new(PauseOnPush::default())], Limits::default());
    let options =
        ConnectOptions { send_limit: Some(Duration::from_millis(200)), ..ConnectOptions::default() };
    let [(mut one, mut answers), (mut other, mut others)] = [(); 2].map(|()| {
        let (sender, receiver, _) =
            rpc::transport::open_with(&served.address, LIMIT, &hello(), options).unwrap();
        receiver.set_timeout(Some(LIMIT)).unwrap();
        (sender, receiver)
    });
    // The two pushes pause the connection; the ticks of the other connection resume it.
    one.send_all(&[push_range(1, 1), push_range(2, 100_000), tick(3)]).unwrap();
    assert_eq!(next_done(&mut answers), 1);
    for (request, answered) in [(11, 2), (12, 3)] {
        other.send(&tick(request)).unwrap();
        assert_eq!(next_done(&mut others), request);
        assert_eq!(next_done(&mut answers), answered, "in their order");
    }
    one.send(&push_range(4, 1)).unwrap();
    assert_eq!(next_done(&mut answers), 4);
    // 64 MiB are more than the sockets hold.
    let blocked = (0..16).find_map(|_| one.send(&push_range(0, 1 << 20)).err());
    assert!(matches!(blocked, Some(Error::TimedOut { .. })), "{blocked:?}");
}
