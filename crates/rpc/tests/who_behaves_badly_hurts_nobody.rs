//! A client that stops reading, and clients that open very many connections, are closed or refused and counted, and
//! other clients are not affected. The tests use small limits and real sockets.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::net::TcpStream;
use std::time::{Duration, Instant};

use common::{Echo, LIMIT, Served, hello, pull_range, tick};
use rpc::{Error, Limits, Message, open};

/// Waits until the metric of the service has the value.
fn until_metric_is(served: &Served, name: &str, value: u64) {
    let deadline = Instant::now() + LIMIT;
    while served.metric(name) != value {
        assert!(Instant::now() < deadline, "{name} is not {value}");
        std::thread::yield_now();
    }
}

fn assert_answers(served: &Served) {
    let (mut sender, mut receiver, _) = open(&served.address, LIMIT, &hello()).unwrap();
    receiver.set_timeout(Some(LIMIT)).unwrap();
    sender.send(&tick(9)).unwrap();
    assert!(matches!(receiver.receive().unwrap(), Message::Done(_)));
}

#[test]
fn one_who_stops_reading_is_closed_after_the_stall_time() {
    let limits = Limits { outbound_stall: Duration::from_millis(100), ..Limits::default() };
    let served = Served::new("127.0.0.1:0", vec![Box::new(Echo::default())], limits);
    let (mut sender, mut receiver, _) = open(&served.address, LIMIT, &hello()).unwrap();
    // 16 MiB is more than the socket buffers hold.
    for request in 1..=4 {
        sender.send(&pull_range(request, 1 << 20)).unwrap();
    }
    until_metric_is(&served, "seraphim_rpc_closed_outbound_total", 1);
    assert_answers(&served);
    receiver.set_timeout(Some(LIMIT)).unwrap();
    let end = (0..5).map(|_| receiver.receive()).find(Result::is_err);
    assert!(matches!(end, Some(Err(Error::Closed))), "{end:?}");
}

#[test]
fn more_waiting_bytes_than_the_limit_close_a_connection() {
    let limits = Limits { outbound_bytes: 20 << 20, outbound_pause_bytes: usize::MAX, ..Limits::default() };
    let served = Served::new("127.0.0.1:0", vec![Box::new(Echo::default())], limits);
    let (mut sender, _receiver, _) = open(&served.address, LIMIT, &hello()).unwrap();
    for request in 1..=10 {
        // The connection may be closed before the last one is sent.
        let _ = sender.send(&pull_range(request, 1 << 20));
    }
    until_metric_is(&served, "seraphim_rpc_closed_outbound_total", 1);
    assert_answers(&served);
}

#[test]
fn requests_are_not_read_while_their_answers_are_not() {
    let limits = Limits { outbound_pause_bytes: 1 << 20, outbound_bytes: 12 << 20, ..Limits::default() };
    let served = Served::new("127.0.0.1:0", vec![Box::new(Echo::default())], limits);
    let (mut sender, mut receiver, _) = open(&served.address, LIMIT, &hello()).unwrap();
    receiver.set_timeout(Some(LIMIT)).unwrap();
    for request in 1..=20 {
        sender.send(&pull_range(request, 1 << 20)).unwrap();
    }
    assert_answers(&served);
    for request in 1..=20 {
        let Message::Pulled(pulled) = receiver.receive().unwrap() else { panic!() };
        assert_eq!(pulled.request, request, "80 MiB of answers pass a queue of 12 MiB");
    }
}

#[test]
fn connections_beyond_the_limit_are_refused_and_places_come_back() {
    let limits = Limits { connections: 20, ..Limits::default() };
    let served = Served::new("127.0.0.1:0", vec![Box::new(Echo::default())], limits);
    let open_one = || open(&served.address, LIMIT, &hello());
    let held: Vec<_> = (0..20).map(|_| open_one().unwrap()).collect();
    for _ in 0..50 {
        match open_one() {
            Err(Error::Refused(fault)) => {
                assert!(fault.text.contains("the limit of 20 connections"), "{}", fault.text);
            }
            // The refusal may be lost with the reset of a connection whose `Hello` was not read.
            Err(Error::Closed) => {}
            other => panic!("{other:?}"),
        }
    }
    drop(held);
    until_metric_is(&served, "seraphim_rpc_connections", 0);
    assert_answers(&served);
}

#[test]
fn ten_thousand_connections_that_say_nothing_do_not_stop_the_service() {
    let limits = Limits { connections: 100, hello_time: Duration::from_secs(1), ..Limits::default() };
    let served = Served::new("127.0.0.1:0", vec![Box::new(Echo::default())], limits);
    let mut held = std::collections::VecDeque::new();
    for _ in 0..10_000 {
        held.push_back(TcpStream::connect(served.port()).unwrap());
        // The test process may open no more files than usual.
        if held.len() > 200 {
            held.pop_front();
        }
    }
    drop(held);
    // The system may still give the service connections that have ended meanwhile, so it may refuse others for a moment.
    let deadline = Instant::now() + LIMIT;
    while let Err(error) = open(&served.address, LIMIT, &hello()) {
        assert!(matches!(error, Error::Refused(_) | Error::Closed), "{error}");
        assert!(Instant::now() < deadline, "{error}");
        std::thread::sleep(Duration::from_millis(10));
    }
    until_metric_is(&served, "seraphim_rpc_connections", 0);
    assert_answers(&served);
}
