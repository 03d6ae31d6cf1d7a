//! To a service, several streams over one connection are like several connections: answers reach the stream that sent
//! the request, and a stream that does not read, is paused, is refused or ends does not affect the others. The tests
//! use a multiplexed connection and real sockets; where the order of writes matters, the test plays the other end.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use common::{Echo, LIMIT, Served, hello, pull_range, welcome};
use rpc::codec::put_stream_frame;
use rpc::limits::FrameLimits;
use rpc::message::{Done, EndBranch, FaultKind, Hello, Leave, Push, PushPosition, Tick};
use rpc::reader::FrameReader;
use rpc::transport::MultiplexedConnection;
use rpc::{ConnectOptions, ConnectionId, Effect, Error, Limits, Message, Receiver, Sender, Service};

type Half = (Sender, Receiver);

fn multiplexed(served: &Served, count: usize) -> (MultiplexedConnection, Vec<Half>) {
    let (shared, first) =
        MultiplexedConnection::connect(&served.address, LIMIT, &hello(), ConnectOptions::default()).unwrap();
    let mut halves = vec![(first.0, first.1)];
    for _ in 1..count {
        let (sender, receiver, _) = shared.open(LIMIT, &hello()).unwrap();
        halves.push((sender, receiver));
    }
    for (_, receiver) in &halves {
        receiver.set_timeout(Some(LIMIT)).unwrap();
    }
    (shared, halves)
}

fn tick(request: u64) -> Message {
    Message::Tick(Tick { request, job: 1, task: 0, clock: 1 })
}

fn push(request: u64, values: usize) -> Message {
    Message::Push(Push {
        request,
        job: 1,
        task: 0,
        clock: 0,
        index: 0,
        matrix: 0,
        table: 0,
        runs: vec![rpc::message::PartitionRun { partition: 0, count: values as u32 }],
        keys: rpc::message::KeyList::Range { start: 0, end: values as u64 },
        values: matrix::OwnedValues::F32(vec![1.0; values]).into(),
    })
}

fn done((sender, receiver): &mut Half, request: u64) -> Done {
    sender.send(&tick(request)).unwrap();
    let Message::Done(done) = receiver.receive().unwrap() else { panic!() };
    assert_eq!(done.request, request);
    done
}

#[test]
fn each_gets_its_own_answers_over_one_connection() {
    let served = Served::echo();
    let (_shared, halves) = multiplexed(&served, 4);
    assert!(served.metrics().contains("seraphim_rpc_accepted_total 1\n"));
    std::thread::scope(|scope| {
        for (task, (mut sender, mut receiver)) in (1u64..).zip(halves) {
            scope.spawn(move || {
                for i in 1..=50u64 {
                    // From one value to more than fits into one write.
                    let count = 1 + (i as u32 % 5) * 40_000 * task as u32;
                    sender.send_all(&[tick(task << 32), pull_range(task << 32 | i, count)]).unwrap();
                    sender.send(&push(i, count as usize)).unwrap();
                    let Message::Done(done) = receiver.receive().unwrap() else { panic!() };
                    assert_eq!(done.request, task << 32);
                    let Message::Pulled(pulled) = receiver.receive().unwrap() else { panic!() };
                    assert_eq!((pulled.request, pulled.values.len()), (task << 32 | i, count as usize));
                    let Message::Done(done) = receiver.receive().unwrap() else { panic!() };
                    assert_eq!(done.request, i);
                }
            });
        }
    });
}

#[test]
fn many_come_at_once() {
    let served = Served::echo();
    for _ in 0..100 {
        let (shared, mut halves) = multiplexed(&served, 1);
        let together = std::sync::Barrier::new(16);
        std::thread::scope(|scope| {
            for request in 1..=16 {
                let (shared, together) = (&shared, &together);
                scope.spawn(move || {
                    together.wait();
                    let (sender, receiver, _) = shared.open(LIMIT, &hello()).unwrap();
                    receiver.set_timeout(Some(LIMIT)).unwrap();
                    done(&mut (sender, receiver), request);
                });
            }
        });
        done(&mut halves[0], 1);
    }
}

#[test]
fn one_who_does_not_listen_holds_nobody_up() {
    let limits = Limits { outbound_pause_bytes: 1 << 20, ..Limits::default() };
    let served = Served::new("127.0.0.1:0", vec![Box::new(Echo::default())], limits);
    let (_shared, mut halves) = multiplexed(&served, 2);
    for request in 1..=16 {
        halves[0].0.send(&pull_range(request, 1 << 20)).unwrap();
    }
    done(&mut halves[1], 1);
    for request in 1..=16 {
        let Message::Pulled(pulled) = halves[0].1.receive().unwrap() else { panic!() };
        assert_eq!(pulled.request, request);
    }
}

#[test]
fn one_who_cannot_write_reads_for_those_who_do_not() {
    let limits = Limits { outbound_pause_bytes: 1 << 20, ..Limits::default() };
    let served = Served::new("127.0.0.1:0", vec![Box::new(Echo::default())], limits);
    let (_shared, mut halves) = multiplexed(&served, 2);
    for request in 1..=16 {
        halves[0].0.send(&pull_range(request, 1 << 20)).unwrap();
    }
    // The service reads no more before its answers are read, and nobody reads them.
    for _ in 0..8 {
        halves[1].0.send(&push(0, 1 << 20)).unwrap();
    }
    for request in 1..=16 {
        let Message::Pulled(pulled) = halves[0].1.receive().unwrap() else { panic!() };
        assert_eq!(pulled.request, request);
    }
    done(&mut halves[1], 17);
}

#[test]
fn a_service_closes_one_and_not_the_others() {
    let served = Served::echo();
    let (_shared, mut halves) = multiplexed(&served, 3);
    let leave = Message::Leave(Leave { request: 0, job: 1, task: 0 });
    halves[1].0.send_all(&[tick(5), leave, tick(6)]).unwrap();
    let Message::Done(before) = halves[1].1.receive().unwrap() else { panic!() };
    assert_eq!(before.request, 5, "what came before the end is answered");
    assert!(matches!(halves[1].1.receive(), Err(Error::Closed)));
    assert!(matches!(halves[1].0.send(&tick(7)), Err(Error::Closed)));
    assert_eq!(done(&mut halves[0], 8).minimum, 1, "on_closed was called once");
    drop(halves.remove(1));
    assert_eq!(done(&mut halves[1], 9).minimum, 1, "and not again");
}

#[test]
fn who_leaves_is_missed_by_the_service_only_and_the_last_closes() {
    let served = Served::echo();
    let (shared, mut halves) = multiplexed(&served, 3);
    drop(halves.remove(0));
    assert_eq!(done(&mut halves[0], 1).minimum, 1);
    let (sender, receiver, _) = shared.open(LIMIT, &hello()).unwrap();
    halves.push((sender, receiver));
    assert_eq!(done(&mut halves[2], 2).minimum, 1, "another may come");
    drop(halves);
    assert!(shared.is_over());
    assert!(matches!(shared.open(LIMIT, &hello()), Err(Error::Closed)));
    let deadline = std::time::Instant::now() + LIMIT;
    while !served.metrics().contains("seraphim_rpc_connections 0\n") {
        assert!(std::time::Instant::now() < deadline, "all places come back");
    }
}

#[test]
fn who_may_not_come_is_told_so_and_the_others_go_on() {
    let limits = Limits { connections: 3, ..Limits::default() };
    let served = Served::new("127.0.0.1:0", vec![Box::new(Echo::default())], limits);
    let (shared, mut halves) = multiplexed(&served, 2);
    let refusal = |hello: &Hello| match shared.open(LIMIT, hello) {
        Err(Error::Refused(fault)) => fault.kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(refusal(&Hello { token: b"guess".to_vec(), ..hello() }), FaultKind::BadToken);
    assert_eq!(refusal(&Hello { lane: 1, ..hello() }), FaultKind::NotFound);
    let third = shared.open(LIMIT, &hello()).unwrap();
    assert_eq!(refusal(&hello()), FaultKind::Busy, "each takes a place");
    assert_eq!(done(&mut halves[0], 1).minimum, 0);
    drop(third);
    assert_eq!(done(&mut halves[0], 2).minimum, 1);
    shared.open(LIMIT, &hello()).unwrap();
}

#[test]
fn when_the_connection_breaks_each_is_told() {
    let served = Served::echo();
    let (shared, mut halves) = multiplexed(&served, 3);
    let waiting = halves.pop().unwrap();
    std::thread::scope(|scope| {
        let (_sender, mut receiver) = waiting;
        scope.spawn(move || assert!(matches!(receiver.receive(), Err(Error::Closed))));
        served.end().unwrap();
    });
    for (sender, receiver) in &mut halves {
        assert!(matches!(receiver.receive(), Err(Error::Closed)));
        assert!(matches!(sender.send(&tick(1)), Err(Error::Closed)));
    }
    assert!(shared.is_over());
}

/// Pauses a connection that has pushed until another one ticks, as a server does when a push waits for other tasks.
#[derive(Default)]
struct PauseOnPush {
    /// The connection that has pushed, and its messages after the push.
    paused: Option<ConnectionId>,
}

impl Service for PauseOnPush {
    fn on_message(&mut self, _: Duration, connection: ConnectionId, message: Message, out: &mut Vec<Effect>) {
        let mut answer = |request| {
            let message = Message::Done(Done { request, minimum: 0, applied: PushPosition::default() });
            out.push(Effect::Send { connection, message });
        };
        match message {
            Message::Hello(hello) => {
                out.push(Effect::Send { connection, message: Message::Welcome(welcome(hello.request)) });
            }
            Message::Push(push) => {
                assert_eq!(self.paused, None, "nothing comes of one who is paused");
                answer(push.request);
                self.paused = Some(connection);
                out.push(Effect::Pause { connection });
            }
            Message::Tick(tick) => {
                assert_ne!(self.paused, Some(connection), "nothing comes of one who is paused");
                answer(tick.request);
                if let Some(connection) = self.paused.take() {
                    out.push(Effect::Resume { connection });
                }
            }
            other => panic!("not expected: {}", other.kind_name()),
        }
    }

    fn on_closed(&mut self, _: Duration, _: ConnectionId, _: &mut Vec<Effect>) {}

    fn on_time(&mut self, _: Duration, _: &mut Vec<Effect>) {}

    fn next_time(&self) -> Option<Duration> {
        None
    }

    fn metrics(&self, _: &mut rpc::Metrics) {}
}

#[test]
fn one_who_is_paused_waits_for_another_of_the_same_connection() {
    let served = Served::new("127.0.0.1:0", vec![Box::new(PauseOnPush::default())], Limits::default());
    let (_shared, mut halves) = multiplexed(&served, 2);
    // Two pushes that pause their streams; each stream is resumed by the tick of the other task.
    halves[0].0.send_all(&[push(1, 1), push(2, 100_000), tick(3)]).unwrap();
    assert_eq!(next_of(&mut halves, 0), 1);
    for (request, answered) in [(11, 2), (12, 3)] {
        halves[1].0.send(&tick(request)).unwrap();
        assert_eq!(next_of(&mut halves, 1), request);
        assert_eq!(next_of(&mut halves, 0), answered, "in their order");
    }
}

fn next_of(halves: &mut [Half], half: usize) -> u64 {
    let Message::Done(done) = halves[half].1.receive().unwrap() else { panic!() };
    done.request
}

#[test]
fn too_much_behind_one_who_is_paused_is_a_fault_and_an_end() {
    let limits = Limits { deferred_bytes: 100_000, ..Limits::default() };
    let served = Served::new("127.0.0.1:0", vec![Box::new(PauseOnPush::default())], limits);
    let (_shared, mut halves) = multiplexed(&served, 2);
    halves[0].0.send_all(&[push(1, 1), push(2, 50_000)]).unwrap();
    assert_eq!(next_of(&mut halves, 0), 1);
    let Message::Fault(fault) = halves[0].1.receive().unwrap() else { panic!() };
    assert_eq!((fault.kind, fault.request), (FaultKind::TooLarge, 2));
    assert!(matches!(halves[1].1.receive(), Err(Error::Closed)));
}

/// Sends frames; returns what the other end sends until it closes the connection.
fn exchange(served: &Served, frames: &[(u16, Message)]) -> Vec<(u16, Message)> {
    let mut stream = TcpStream::connect(served.port()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut bytes = Vec::new();
    for (branch, message) in frames {
        put_stream_frame(*branch, message, true, &FrameLimits::default(), &mut bytes).unwrap();
    }
    stream.write_all(&bytes).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let mut reader = FrameReader::new(FrameLimits::default(), answer.len());
    reader.space()[..answer.len()].copy_from_slice(&answer);
    reader.advance(answer.len());
    std::iter::from_fn(|| reader.frame().unwrap())
        .map(|frame| (frame.header.stream, Message::from_frame(frame).unwrap()))
        .collect()
}

#[test]
fn frames_that_belong_to_no_branch_are_a_fault_unless_it_has_ended() {
    let served = Served::echo();
    let hello = || Message::Hello(hello());
    let end = || Message::EndBranch(EndBranch { request: 0 });
    let fault_of = |frames: &[(u16, Message)]| match exchange(&served, frames).pop() {
        Some((branch, Message::Fault(fault))) => (branch, fault),
        other => panic!("{other:?}"),
    };
    let (branch, fault) = fault_of(&[(0, hello()), (1, tick(5))]);
    assert_eq!((branch, fault.kind, fault.request), (1, FaultKind::BadFrame, 5));
    let (branch, fault) = fault_of(&[(0, hello()), (0, hello())]);
    assert_eq!((branch, fault.kind), (0, FaultKind::BadFrame));
    assert!(fault.text.contains("one Hello"), "{}", fault.text);
    let (_, fault) = fault_of(&[(0, hello()), (7, hello()), (7, end()), (7, hello())]);
    assert!(fault.text.contains("above 7"), "{}", fault.text);
    // A message to a stream that has ended is dropped, and the end of the last stream closes the connection.
    let said =
        exchange(&served, &[(3, hello()), (7, hello()), (7, end()), (7, tick(8)), (3, tick(9)), (3, end())]);
    let numbers: Vec<u16> = said.iter().map(|(branch, _)| *branch).collect();
    assert_eq!(numbers, [3, 7, 3], "{said:?}");
    assert!(matches!(said[2], (3, Message::Done(Done { request: 9, .. }))));
}

/// The other end, played by the test: accepts one connection and answers `Welcome` to two streams.
struct FakeServer {
    stream: TcpStream,
    reader: FrameReader,
}

impl FakeServer {
    fn new() -> (Self, Half, Half) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp:{}", listener.local_addr().unwrap()).parse().unwrap();
        let (played, halves) = std::thread::scope(|scope| {
            let opened = scope.spawn(|| {
                let connected =
                    MultiplexedConnection::connect(&address, LIMIT, &hello(), ConnectOptions::default());
                let (shared, one) = connected.unwrap();
                let other = shared.open(LIMIT, &hello()).unwrap();
                ((one.0, one.1), (other.0, other.1))
            });
            let (stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            let mut played = Self { stream, reader: FrameReader::new(FrameLimits::default(), 4096) };
            for branch in 0..2 {
                assert!(matches!(played.next(), (at, Message::Hello(_)) if at == branch));
                let mut bytes = Vec::new();
                let message = Message::Welcome(welcome(1));
                put_stream_frame(branch, &message, true, &FrameLimits::default(), &mut bytes).unwrap();
                played.stream.write_all(&bytes).unwrap();
            }
            (played, opened.join().unwrap())
        });
        (played, halves.0, halves.1)
    }

    fn next(&mut self) -> (u16, Message) {
        loop {
            if let Some(frame) = self.reader.frame().unwrap() {
                return (frame.header.stream, Message::from_frame(frame).unwrap());
            }
            let count = self.stream.read(self.reader.space()).unwrap();
            assert_ne!(count, 0, "the end");
            self.reader.advance(count);
        }
    }

    fn assert_silent(&mut self) {
        assert!(self.reader.frame().unwrap().is_none());
        self.stream.set_nonblocking(true).unwrap();
        let read = self.stream.read(self.reader.space());
        assert_eq!(read.unwrap_err().kind(), ErrorKind::WouldBlock);
        self.stream.set_nonblocking(false).unwrap();
    }

    fn assert_receives(&mut self, expected: &[(u16, u64)]) {
        for (branch, request) in expected {
            let (at, message) = self.next();
            let Message::Tick(tick) = message else { panic!("{message:?}") };
            assert_eq!((at, tick.request), (*branch, *request));
        }
    }
}

#[test]
fn the_end_of_a_step_waits_for_the_others_and_goes_out_with_theirs() {
    let (mut played, (mut one, _a), (mut other, answers)) = FakeServer::new();
    one.send_step(&[tick(11)], 1).unwrap();
    played.assert_receives(&[(0, 11)]);
    other.send_step(&[tick(21)], 1).unwrap();
    played.assert_receives(&[(1, 21)]);
    one.send_step(&[tick(12)], 2).unwrap();
    played.assert_silent();
    other.send_step(&[tick(22)], 2).unwrap();
    played.assert_receives(&[(0, 12), (1, 22)]);
    // Any other message is written with the delayed end of a step, and its sender does not count as late.
    one.send_step(&[tick(13)], 3).unwrap();
    played.assert_silent();
    other.send(&tick(23)).unwrap();
    played.assert_receives(&[(0, 13), (1, 23)]);
    one.send_step(&[tick(14)], 4).unwrap();
    played.assert_receives(&[(0, 14)]);
    // The end of a stream does the same.
    other.send_step(&[tick(24)], 4).unwrap();
    played.assert_receives(&[(1, 24)]);
    one.send_step(&[tick(15)], 5).unwrap();
    played.assert_silent();
    drop((other, answers));
    played.assert_receives(&[(0, 15)]);
    assert!(matches!(played.next(), (1, Message::EndBranch(_))));
}

#[test]
fn the_end_of_a_step_goes_out_when_its_task_has_waited_for_a_while() {
    let (mut played, (mut one, mut answers), (mut other, _b)) = FakeServer::new();
    one.send_step(&[tick(11)], 1).unwrap();
    other.send_step(&[tick(21)], 1).unwrap();
    played.assert_receives(&[(0, 11), (1, 21)]);
    one.send_step(&[tick(12)], 2).unwrap();
    played.assert_silent();
    answers.set_timeout(Some(Duration::from_millis(30))).unwrap();
    assert!(matches!(answers.receive(), Err(Error::TimedOut { .. })));
    played.assert_receives(&[(0, 12)]);
}
