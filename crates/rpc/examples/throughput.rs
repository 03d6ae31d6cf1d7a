//! Compares frames with raw bytes: a pull of 1M f32 with a raw stream of as many bytes in writes of 1 MiB, a pull of
//! one key with a raw ping, and pushes of 100 keys with 64 in flight. The results are medians of interleaved rounds on
//! loopback; server and client are threads of one process.
//!
//! `cargo run --release -p rpc --example throughput`

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use matrix::OwnedValues;
use rpc::message::{Done, Hello, KeyList, PartitionRun, Pull, Pulled, Push, PushPosition, Role, Welcome};
use rpc::transport::{ConnectOptions, open_with};
use rpc::{
    ConnectionId, Effect, Limits, Listener, Message, Receiver, Sender, ServeConfig, Service, Stop, WireType,
};

type Any<T> = Result<T, Box<dyn std::error::Error>>;

const VALUES: usize = 1_000_000;
const WRITE_BYTES: usize = 1 << 20;
const ROUNDS: usize = 5;
const PULLS: usize = 60;
const PIECES: usize = 8;
const PINGS: usize = 5_000;
const PING_BYTES: usize = 136;
const PUSHES: u64 = 100_000;
const IN_FLIGHT: u64 = 64;
const LIMIT: Duration = Duration::from_secs(30);

/// Answers pulls with zeros, and pushes that want an answer with `Done`.
struct Zeros;

impl Service for Zeros {
    fn on_message(&mut self, _: Duration, connection: ConnectionId, message: Message, out: &mut Vec<Effect>) {
        let applied = PushPosition::default();
        let message = match message {
            Message::Hello(hello) => Message::Welcome(Welcome {
                request: hello.request,
                incarnation: 1,
                lanes: 1,
                window_bytes: 1 << 20,
                applied,
                clock: 0,
                minimum: 0,
            }),
            Message::Pull(pull) => {
                let values = OwnedValues::F32(vec![0.0; pull.keys.len() as usize]).into();
                Message::Pulled(Pulled { request: pull.request, minimum: 0, deferred_ns: 0, applied, values })
            }
            Message::Push(push) if push.request != 0 => {
                Message::Done(Done { request: push.request, minimum: 0, applied })
            }
            _ => return,
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

fn pull(request: u64, count: usize) -> Message {
    let runs = vec![PartitionRun { partition: 0, count: count as u32 }];
    let keys = KeyList::Range { start: 0, end: count as u64 };
    Message::Pull(Pull {
        request,
        job: 1,
        task: 0,
        clock: 0,
        matrix: 0,
        table: 0,
        wait_ms: 0,
        runs,
        keys,
        wire: WireType::F32,
    })
}

fn push(request: u64, index: u32) -> Message {
    Message::Push(Push {
        request,
        job: 1,
        task: 0,
        clock: 0,
        index,
        matrix: 0,
        table: 0,
        runs: vec![PartitionRun { partition: 0, count: 100 }],
        keys: KeyList::Listed((0..100).map(|key| key * 977).collect()),
        values: OwnedValues::F32(vec![0.5; 100]).into(),
    })
}

/// Seconds to pull `VALUES` values, one pull after the other, in frames of at most a chunk.
fn pull_many((sender, receiver): &mut (Sender, Receiver)) -> Any<f64> {
    let started = Instant::now();
    for request in 1..=PULLS as u64 {
        sender.send(&pull(request, VALUES))?;
        let Message::Pulled(pulled) = receiver.receive()? else { return Err("no answer".into()) };
        assert_eq!(pulled.values.len(), VALUES);
    }
    Ok(started.elapsed().as_secs_f64() / PULLS as f64)
}

/// Seconds to pull the same values in chunks that are all requested at once, as an agent does for large pulls.
fn pull_pieces((sender, receiver): &mut (Sender, Receiver)) -> Any<f64> {
    let asks: Vec<Message> = (1..=PIECES as u64).map(|request| pull(request, VALUES / PIECES)).collect();
    let started = Instant::now();
    for _ in 0..PULLS {
        sender.send_all(&asks)?;
        for _ in 0..PIECES {
            let Message::Pulled(pulled) = receiver.receive()? else { return Err("no answer".into()) };
            assert_eq!(pulled.values.len(), VALUES / PIECES);
        }
    }
    Ok(started.elapsed().as_secs_f64() / PULLS as f64)
}

/// Microseconds of a pull of one key: the median and the 99th percentile.
fn pull_one((sender, receiver): &mut (Sender, Receiver)) -> Any<(f64, f64)> {
    let mut times = Vec::new();
    for request in 1..=PINGS as u64 {
        let started = Instant::now();
        sender.send(&pull(request, 1))?;
        receiver.receive()?;
        times.push(started.elapsed());
    }
    Ok(percentiles(times))
}

/// Pushes a second, with a limited number in flight. After every half of that number one push wants an answer.
fn push_many((sender, receiver): &mut (Sender, Receiver)) -> Any<f64> {
    let asks = IN_FLIGHT / 2;
    let started = Instant::now();
    let mut batch = Vec::new();
    for index in 0..PUSHES {
        let is_last = (index + 1) % asks == 0;
        batch.push(push(if is_last { index + 1 } else { 0 }, index as u32));
        if is_last {
            sender.send_all(&batch)?;
            batch.clear();
            if index >= asks {
                receiver.receive()?;
            }
        }
    }
    receiver.receive()?;
    Ok(PUSHES as f64 / started.elapsed().as_secs_f64())
}

/// Seconds to receive `VALUES` floats through a raw stream, and the microseconds of a ping.
fn raw() -> Any<(f64, (f64, f64))> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut there = TcpStream::connect(listener.local_addr()?)?;
    let (mut back, _) = listener.accept()?;
    there.set_nodelay(true)?;
    back.set_nodelay(true)?;
    let bytes = VALUES * 4;
    let writer = std::thread::spawn(move || -> std::io::Result<()> {
        let block = vec![0u8; WRITE_BYTES];
        let mut left = bytes * PULLS;
        while left > 0 {
            let count = left.min(WRITE_BYTES);
            back.write_all(&block[..count])?;
            left -= count;
        }
        let mut ping = [0; PING_BYTES];
        for _ in 0..PINGS {
            back.read_exact(&mut ping)?;
            back.write_all(&ping)?;
        }
        Ok(())
    });
    let mut buffer = vec![0u8; bytes];
    let started = Instant::now();
    for _ in 0..PULLS {
        there.read_exact(&mut buffer)?;
    }
    let seconds = started.elapsed().as_secs_f64() / PULLS as f64;
    let mut times = Vec::new();
    let mut ping = [0; PING_BYTES];
    for _ in 0..PINGS {
        let started = Instant::now();
        there.write_all(&ping)?;
        there.read_exact(&mut ping)?;
        times.push(started.elapsed());
    }
    writer.join().map_err(|_| "the writer panicked")??;
    Ok((seconds, percentiles(times)))
}

fn percentiles(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    let at = |part: f64| times[(times.len() as f64 * part) as usize].as_secs_f64() * 1e6;
    (at(0.5), at(0.99))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[allow(clippy::print_stdout, reason = "an example that measures")]
fn main() -> Any<()> {
    for checksum in [true, false] {
        let listener = Listener::bind(&"127.0.0.1:0".parse()?)?;
        let (address, stop) = (listener.address().clone(), Stop::new());
        let raised = stop.clone();
        let config = ServeConfig { limits: Limits::default(), ..ServeConfig::default() };
        let served = std::thread::spawn(move || {
            rpc::serve(vec![listener], vec![Box::new(Zeros)], config, raised, |_| Ok(()))
        });
        let hello = Hello { request: 1, token: Vec::new(), role: Role::Tool, lane: 0 };
        let options = ConnectOptions { checksum, ..ConnectOptions::default() };
        let (sender, receiver, _) = open_with(&address, LIMIT, &hello, options)?;
        receiver.set_timeout(Some(LIMIT))?;
        let mut connection = (sender, receiver);
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let (seconds, (ping, ping99)) = raw()?;
            let (whole, pieces) = (pull_many(&mut connection)?, pull_pieces(&mut connection)?);
            let (one, one99) = pull_one(&mut connection)?;
            rounds.push([
                seconds * 1e3,
                whole * 1e3,
                pieces * 1e3,
                ping,
                ping99,
                one,
                one99,
                push_many(&mut connection)?,
            ]);
        }
        let median = |at: usize| median(rounds.iter().map(|round| round[at]));
        println!("checksums: {checksum}; 1M f32 through a raw stream: {:.3} ms", median(0));
        for (at, what) in [(1, "in one frame"), (2, "in 8 frames, asked for at once")] {
            println!("  pulled {what}: {:.3} ms, {:.2} of raw", median(at), median(0) / median(at));
        }
        println!(
            "  1 key: {:.0} / {:.0} us, ping {:.0} / {:.0} us",
            median(5),
            median(6),
            median(3),
            median(4)
        );
        println!("    {:.2} / {:.2} of ping", median(5) / median(3), median(6) / median(4));
        println!("  pushes of 100 keys, {IN_FLIGHT} in flight: {:.0} a second", median(7));
        stop.raise();
        served.join().map_err(|_| "the server panicked")??;
    }
    Ok(())
}
