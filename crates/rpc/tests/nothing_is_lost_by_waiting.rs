//! A receive that times out in the middle of a frame continues there. A connection that is shut down gives errors.
//! An open without an answer ends in time, and so does a send that is blocked. The tests use sockets that write frames in
//! pieces or are not read.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::io::Write;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use common::{Echo, LIMIT, Served, hello, pull_range, push_range};
use matrix::OwnedValues;
use rpc::limits::FrameLimits;
use rpc::message::{Pulled, PushPosition};
use rpc::transport::connect_with;
use rpc::{Address, ConnectOptions, Error, Limits, Message, connect, open};

const SHORT: Duration = Duration::from_millis(5);

fn pulled(count: usize) -> Message {
    let values = OwnedValues::F32(vec![0.5; count]).into();
    Message::Pulled(Pulled {
        request: 4,
        minimum: 1,
        deferred_ns: 0,
        applied: PushPosition::default(),
        values,
    })
}

/// 64 MiB are more than sockets hold.
fn many_messages() -> Vec<Message> {
    vec![pulled(1 << 20); 16]
}

/// A listener at which connections open and nothing is read.
fn nobody_reads() -> (TcpListener, Address) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap().to_string());
    (listener, address)
}

#[test]
fn a_frame_in_pieces_survives_timeouts() {
    let (listener, address) = nobody_reads();
    let (_sender, mut receiver) = connect(&address, LIMIT).unwrap();
    let (mut other, _) = listener.accept().unwrap();
    let mut bytes = Vec::new();
    let message = pulled(40_000);
    rpc::codec::put_frame(&message, true, &FrameLimits::default(), &mut bytes).unwrap();
    for cut in [0, 1, 63, 64, 70, 100_000, bytes.len() - 1] {
        receiver.set_timeout(Some(SHORT)).unwrap();
        other.write_all(&bytes[..cut]).unwrap();
        for _ in 0..3 {
            assert!(matches!(receiver.receive(), Err(Error::TimedOut { .. })), "cut at {cut}");
        }
        receiver.set_timeout(Some(LIMIT)).unwrap();
        other.write_all(&bytes[cut..]).unwrap();
        assert_eq!(receiver.receive().unwrap(), message, "cut at {cut}");
    }
}

#[test]
fn a_byte_now_and_then_does_not_prolong_a_wait_without_end() {
    let (listener, address) = nobody_reads();
    let (_sender, mut receiver) = connect(&address, LIMIT).unwrap();
    let (mut other, _) = listener.accept().unwrap();
    let mut bytes = Vec::new();
    rpc::codec::put_frame(&pulled(100_000), true, &FrameLimits::default(), &mut bytes).unwrap();
    let stop = rpc::Stop::new();
    let raised = stop.clone();
    let writer = std::thread::spawn(move || {
        for byte in bytes {
            if raised.wait(Duration::from_millis(2)) || other.write_all(&[byte]).is_err() {
                return;
            }
        }
    });
    receiver.set_timeout(Some(Duration::from_millis(50))).unwrap();
    let started = Instant::now();
    assert!(matches!(receiver.receive(), Err(Error::TimedOut { .. })));
    assert!(started.elapsed() < LIMIT, "all of it would take minutes");
    stop.raise();
    writer.join().unwrap();
}

#[test]
fn a_connection_that_is_shut_down_takes_and_gives_nothing() {
    let (_listener, address) = nobody_reads();
    let (mut sender, mut receiver) = connect(&address, LIMIT).unwrap();
    receiver.set_timeout(Some(SHORT)).unwrap();
    assert!(matches!(receiver.receive(), Err(Error::TimedOut { .. })));
    sender.shutdown();
    assert!(matches!(receiver.receive(), Err(Error::Closed)));
    assert!(sender.send(&pull_range(1, 3)).is_err());
    assert!(matches!(sender.send(&pull_range(1, 3)), Err(Error::Closed)));
}

#[test]
fn a_send_that_nobody_takes_ends_and_breaks_the_connection() {
    let (_listener, address) = nobody_reads();
    let options = ConnectOptions { send_limit: Some(SHORT), ..ConnectOptions::default() };
    let (mut sender, _receiver) = connect_with(&address, LIMIT, options).unwrap();
    assert!(matches!(sender.send_all(&many_messages()), Err(Error::TimedOut { .. })));
    assert!(matches!(sender.send(&pull_range(1, 1)), Err(Error::Closed)), "half a frame is out");
}

#[test]
fn a_closer_ends_a_send_that_nobody_takes() {
    let (_listener, address) = nobody_reads();
    let (mut sender, mut receiver) = connect(&address, LIMIT).unwrap();
    let closer = sender.closer();
    let blocked = std::thread::spawn(move || {
        let messages = many_messages();
        (sender.send_all_reading(&messages, &mut receiver), sender.send(&messages[0]))
    });
    std::thread::sleep(SHORT);
    assert!(closer.is_open() && !blocked.is_finished());
    closer.close();
    let (blocked, after) = blocked.join().unwrap();
    assert!(matches!(blocked, Err(Error::Closed | Error::Io { .. })), "{blocked:?}");
    assert!(matches!(after, Err(Error::Closed)), "{after:?}");
    assert!(!closer.is_open());
}

#[test]
fn a_send_that_waits_for_its_own_answers_to_be_read_reads_them() {
    let limits = Limits { outbound_pause_bytes: 1 << 20, ..Limits::default() };
    let served = Served::new("127.0.0.1:0", vec![Box::new(Echo::default())], limits);
    let (mut sender, mut receiver, _) = open(&served.address, LIMIT, &hello()).unwrap();
    receiver.set_timeout(Some(LIMIT)).unwrap();
    for request in 1..=16 {
        sender.send(&pull_range(request, 1 << 20)).unwrap();
    }
    // The service reads no more before its answers are read, and the pushes are more than the sockets hold.
    let start = Instant::now();
    sender.send_all_reading(&vec![push_range(0, 1 << 20); 16], &mut receiver).unwrap();
    assert!(start.elapsed() < LIMIT, "the service has not closed the connection");
    sender.send(&push_range(17, 1)).unwrap();
    for request in 1..=16 {
        let Message::Pulled(pulled) = receiver.receive().unwrap() else { panic!() };
        assert_eq!((pulled.request, pulled.values.len()), (request, 1 << 20));
    }
    assert!(matches!(receiver.receive().unwrap(), Message::Done(done) if done.request == 17));
}

#[test]
fn an_open_that_is_not_answered_ends_in_time() {
    let (listener, address) = nobody_reads();
    let result = open(&address, Duration::from_millis(50), &hello());
    assert!(matches!(result, Err(Error::TimedOut { .. })), "{result:?}");
    drop(listener);
    let result = open(&address, LIMIT, &hello());
    assert!(matches!(result, Err(Error::Io { .. })), "{result:?}");
}

#[test]
fn addresses_are_read_and_written() {
    for (text, written) in
        [("127.0.0.1:7070", "tcp:127.0.0.1:7070"), ("tcp:[::1]:0", "tcp:[::1]:0"), ("unix:/a/b", "unix:/a/b")]
    {
        assert_eq!(text.parse::<Address>().unwrap().to_string(), written);
    }
    for text in ["", "host", "host:", "host:x", "host:70000", ":70", "unix:"] {
        let error = text.parse::<Address>().unwrap_err().to_string();
        assert!(error.contains("write tcp:HOST:PORT"), "{error}");
    }
}
