//! `RemoteAgent` over real sockets, against the minimal lanes of `common`, whose connections break at times.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{FakeLane, ServingThread, layout, spec};
use matrix::{
    Agent, Consistency, Element, ElementType, Error, FunctionTable, Keys, ListMatrix, ListSelection, Matrix,
    MatrixId, MatrixRows, Partitioner, Prefetch, PullTicket, PushRule, Selection, Values, ValuesMut,
};
use rpc::layout::{JobLayout, LaneAddress};
use rpc::message::{Hello, PushPosition};
use rpc::{Address, ConnectionId, Effect, Listener, Message, Service};
use worker::{CancellationToken, RemoteAgent};

const W: MatrixId = MatrixId(0);
/// Time for which a task computes between two calls.
const COMPUTES: Duration = Duration::from_millis(10);

/// A lane as a service. It closes the connection after every `incarnation` messages.
struct FakeLaneService {
    lane: Arc<Mutex<FakeLane>>,
    incarnation: u32,
    left: u32,
    current: ConnectionId,
    /// Whether it never releases a task from a barrier.
    ignores_barriers: bool,
}

impl Service for FakeLaneService {
    fn on_message(&mut self, _: Duration, connection: ConnectionId, message: Message, out: &mut Vec<Effect>) {
        let mut lane = self.lane.lock().unwrap();
        if let Message::Hello(Hello { request, .. }) = message {
            (self.left, self.current) = (self.incarnation, connection);
            let mut welcome = lane.hello();
            welcome.request = request;
            out.push(Effect::Send { connection, message: Message::Welcome(welcome) });
            return;
        }
        let is_ignored = self.ignores_barriers && matches!(message, Message::Barrier(_));
        if connection != self.current || self.left == 0 || is_ignored {
            return;
        }
        let (answers, closes) = lane.take(message);
        out.extend(answers.into_iter().map(|message| Effect::Send { connection, message }));
        self.left -= 1;
        if closes || self.left == 0 {
            self.left = 0;
            out.push(Effect::Close { connection });
        }
    }

    fn on_closed(&mut self, _: Duration, _: ConnectionId, _: &mut Vec<Effect>) {
        self.lane.lock().unwrap().closed_count += 1;
    }
    fn on_time(&mut self, _: Duration, _: &mut Vec<Effect>) {}
    fn next_time(&self) -> Option<Duration> {
        None
    }
    fn metrics(&self, _: &mut rpc::Metrics) {}
}

/// Lanes that are served until it is dropped.
struct Server {
    lanes: Vec<Arc<Mutex<FakeLane>>>,
    _thread: ServingThread,
}

/// Starts a server with all lanes of the layout, and sets its address in the layout.
fn start(layout: &mut JobLayout, life: u32, token: &[u8]) -> Server {
    start_with(layout, life, token, false)
}

/// Like [`start`]; the first lane may ignore barriers.
fn start_with(layout: &mut JobLayout, life: u32, token: &[u8], ignores_barriers: bool) -> Server {
    let listener = Listener::bind(&Address::Tcp("127.0.0.1:0".into())).unwrap();
    for (lane, at) in layout.lanes.iter_mut().zip(0..) {
        // The first address does not exist here, as if it were on another host.
        let addresses = vec!["unix:/nowhere/at.all".into(), listener.address().to_string()];
        *lane = LaneAddress::new(addresses, at);
    }
    let lanes: Vec<_> =
        layout.lanes.iter().map(|_| Arc::new(Mutex::new(FakeLane::new(layout.matrices.clone())))).collect();
    let service = |(at, lane): (usize, &Arc<Mutex<FakeLane>>)| {
        let (lane, ignores_barriers) = (Arc::clone(lane), ignores_barriers && at == 0);
        Box::new(FakeLaneService { lane, incarnation: life, left: life, current: 0, ignores_barriers })
            as Box<dyn Service>
    };
    let services = lanes.iter().enumerate().map(service).collect();
    Server { lanes, _thread: ServingThread::start(listener, services, token) }
}

fn a_layout(lane_count: u16) -> JobLayout {
    let specs = vec![
        matrix::MatrixSpec {
            rows: 1 << 21,
            ..spec("w", Consistency::Asp, 2, Partitioner::Hash { partition_count: 7 })
        },
        spec("v", Consistency::Ssp { staleness: 3 }, 1, Partitioner::Range { partition_count: 5 }),
    ];
    layout(specs, lane_count, 1 << 20)
}

fn steps(agent: &mut RemoteAgent, count: u64) {
    let keys: Vec<u64> = (0..500).map(|i| i * 13).collect();
    let mut out = vec![0i64; 1000];
    for step in 0..count {
        agent.pull(W, Selection::Rows(Keys::Sorted(&keys)), ValuesMut::I64(&mut out)).unwrap();
        assert!(out.iter().all(|value| *value == step as i64), "step {step}");
        agent.push(W, Selection::Rows(Keys::Sorted(&keys)), Values::I64(&[1; 1000])).unwrap();
        let range = Selection::Rows(Keys::Range(100, 300_000));
        agent.push(MatrixId(1), range, i64::owned(vec![1; 299_900]).as_values()).unwrap();
        agent.tick().unwrap();
    }
    let mut sum = [count as f64, 0.5];
    agent.all_reduce(&mut sum).unwrap();
    assert_eq!(sum, [count as f64 + 1.0, 1.5]);
    assert_eq!(agent.clock(), count);
    agent.finish().unwrap();
}

#[test]
fn nothing_is_lost_or_doubled_over_sockets_that_break() {
    for life in [u32::MAX, 7, 2] {
        let mut layout = a_layout(3);
        let server = start(&mut layout, life, b"secret");
        let mut agent = RemoteAgent::new(layout, 0, b"secret").unwrap();
        steps(&mut agent, 20);
        let stats = agent.stats();
        assert_eq!(stats.connection_count == 3, life == u32::MAX, "{stats:?}");
        assert!(stats.sent_bytes > 20 * 8 * 299_900 && stats.wait_ns > 0, "{stats:?}");
        let rows = |lane: &Arc<Mutex<FakeLane>>| lane.lock().unwrap().rows.clone();
        let all: Vec<_> = server.lanes.iter().flat_map(rows).collect();
        assert_eq!(all.len(), 1000 + 299_900);
        assert!(all.iter().all(|(_, value)| *value == 20));
        assert!(server.lanes.iter().all(|lane| lane.lock().unwrap().has_left));
    }
}

/// Runs steps whose batches have different keys, with pulls of the batch from one matrix and of one key from a second.
/// Returns the values and the counts of prefetches.
fn ahead(consistency: Consistency, prefetch: Prefetch) -> (Vec<Vec<i64>>, [u64; 3]) {
    const STEPS: u64 = 8;
    let hash = Partitioner::Hash { partition_count: 4 };
    let mut layout =
        layout(vec![spec("w", consistency, 1, hash.clone()), spec("b", consistency, 1, hash)], 2, 1 << 20);
    layout.prefetch = prefetch;
    let _server = start(&mut layout, u32::MAX, b"");
    let mut agent = RemoteAgent::new(layout, 0, &[]).unwrap();
    let batch = |step: u64| (0..50).map(|i| i * (3 + step % 3)).collect::<Vec<u64>>();
    let one = Selection::Rows(Keys::Range(0, 1));
    let mut reads = Vec::new();
    let mut tickets: Option<[PullTicket; 2]> = None;
    for step in 0..STEPS {
        let keys = batch(step);
        let (mut out, part) = (vec![0; 51], Selection::Rows(Keys::Sorted(&keys)));
        let (mine, shared) = out.split_at_mut(50);
        if let Some([first, second]) = tickets.take() {
            agent.wait(&first, ValuesMut::I64(mine)).unwrap();
            agent.wait(&second, ValuesMut::I64(shared)).unwrap();
        } else {
            agent.pull(W, part, ValuesMut::I64(mine)).unwrap();
            agent.pull(MatrixId(1), one, ValuesMut::I64(shared)).unwrap();
        }
        if step + 1 < STEPS {
            let next = batch(step + 1);
            let next = [(W, Selection::Rows(Keys::Sorted(&next))), (MatrixId(1), one)];
            tickets = Some(next.map(|(matrix, part)| agent.prefetch(matrix, part, step + 1)));
        }
        agent.push(W, part, Values::I64(&[1; 50])).unwrap();
        agent.push(MatrixId(1), one, Values::I64(&[1])).unwrap();
        agent.tick().unwrap();
        reads.push(out);
    }
    agent.finish().unwrap();
    let counts = agent.prefetch_counts();
    (reads, [counts.sent, counts.used, counts.dropped])
}

#[test]
fn what_the_next_step_reads_is_asked_ahead_and_reads_the_same() {
    let (bsp, ssp) = (Consistency::Bsp, Consistency::Ssp { staleness: 2 });
    let (plain, none) = ahead(bsp, Prefetch::Off);
    assert_eq!((plain[7][50], none), (7, [0, 0, 0]), "each step saw the pushes of all before it");
    for consistency in [bsp, ssp] {
        // Each step but the first uses two prefetches.
        assert_eq!(ahead(consistency, Prefetch::Exact), (plain.clone(), [14, 14, 0]), "{consistency:?}");
    }
}

#[test]
fn an_agent_knows_its_task() {
    let mut layout = JobLayout { task_count: 5, ..a_layout(1) };
    let _server = start(&mut layout, u32::MAX, b"");
    let agent = RemoteAgent::new(layout, 3, &[]).unwrap();
    assert_eq!((agent.task(), agent.task_count(), agent.clock()), (3, 5, 0));
}

#[test]
fn a_dropped_agent_leaves() {
    let mut layout = a_layout(1);
    let server = start(&mut layout, u32::MAX, b"");
    let mut agent = RemoteAgent::new(layout, 0, &[]).unwrap();
    agent.barrier().unwrap();
    drop(agent);
    assert!(comes(&server, |lane| lane.has_left));
}

/// Whether a condition becomes true at lane 0 within some time.
fn comes(server: &Server, is_true: impl Fn(&FakeLane) -> bool) -> bool {
    (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        is_true(&server.lanes[0].lock().unwrap())
    })
}

/// A tick that is written before the agent notices the break is lost with the connection, so the test makes some
/// attempts.
#[test]
fn a_tick_gets_out_though_its_connection_broke_while_the_task_computed() {
    let gets_out = |asks_ahead: bool| {
        let mut layout = a_layout(1);
        let server = start(&mut layout, 2, b"");
        let mut agent = RemoteAgent::new(layout, 0, &[]).unwrap();
        let (mut out, part) = ([0i64; 2], Selection::Rows(Keys::Sorted(&[1])));
        for _ in 0..2 {
            agent.pull(W, part, ValuesMut::I64(&mut out)).unwrap();
        }
        let _ticket = asks_ahead.then(|| agent.prefetch(W, part, 1));
        assert!(comes(&server, |lane| lane.closed_count == 1), "the connection breaks after two messages");
        std::thread::sleep(COMPUTES);
        agent.tick().unwrap();
        // The task continues to compute and makes no call.
        comes(&server, |lane| lane.clock == 1)
    };
    assert!((0..5).any(|_| gets_out(false)));
    assert!((0..5).any(|_| gets_out(true)), "with the pull of the next step behind it");
}

#[test]
fn a_wrong_token_and_a_server_that_is_not_there_are_errors_with_the_address() {
    let mut layout = a_layout(1);
    let server = start(&mut layout, u32::MAX, b"secret");
    let address = layout.lanes[0].addresses[1].clone();
    let mut agent = RemoteAgent::new(layout.clone(), 0, b"wrong").unwrap();
    let error = agent.barrier().unwrap_err();
    assert!(matches!(&error, Error::Server { server, .. } if server.contains("lane 0")), "{error}");

    layout.wait_limit = Duration::from_millis(100);
    layout.lanes[0].addresses = vec![address.clone()];
    drop(server);
    let mut agent = RemoteAgent::new(layout, 0, b"secret").unwrap();
    let error = agent.barrier().unwrap_err().to_string();
    assert!(error.contains(&address) && error.contains("could not reach it for 0.1 s"), "{error}");
}

/// Number of keys of a long list: ten parts, more than are prefetched at once.
const LONG: usize = 1_200_000;

/// Its keys, and two values for each.
fn long_list() -> (Vec<u64>, Vec<i64>) {
    let keys: Vec<u64> = (0..LONG as u64).map(|i| i + i / 10).collect();
    let values = keys.iter().flat_map(|key| [*key as i64, 1]).collect();
    (keys, values)
}

#[test]
fn long_lists_go_in_parts_and_read_the_same() {
    for (prefetch, life) in [(Prefetch::Exact, u32::MAX), (Prefetch::Off, 5)] {
        let mut layout = a_layout(3);
        layout.prefetch = prefetch;
        let server = start(&mut layout, life, b"");
        let mut agent = RemoteAgent::new(layout, 0, &[]).unwrap();
        let (keys, values) = long_list();
        let part = Selection::Rows(Keys::Sorted(&keys));
        let mut out = vec![0; values.len()];
        for step in 1..=3 {
            agent.push(W, part, Values::I64(&values)).unwrap();
            agent.pull(W, part, ValuesMut::I64(&mut out)).unwrap();
            assert!(out.iter().zip(&values).all(|(read, one)| *read == step * one), "step {step}");
            agent.tick().unwrap();
        }
        agent.finish().unwrap();
        let counts = agent.prefetch_counts();
        assert_eq!([counts.sent, counts.used, counts.dropped], [0; 3], "parts are no prefetches");
        let pushed: Vec<u32> = server.lanes.iter().map(|lane| lane.lock().unwrap().mark.index).collect();
        assert!(
            pushed.iter().all(|count| *count >= 10),
            "ten parts to each lane in the last step: {pushed:?}"
        );
    }
}

#[test]
fn a_long_list_that_was_asked_ahead_is_not_asked_for_again() {
    let mut layout = a_layout(2);
    let _server = start(&mut layout, u32::MAX, b"");
    let mut agent = RemoteAgent::new(layout, 0, &[]).unwrap();
    let (keys, values) = long_list();
    let part = Selection::Rows(Keys::Sorted(&keys));
    let ticket = agent.prefetch(W, part, 0);
    let mut out = vec![1; values.len()];
    agent.wait(&ticket, ValuesMut::I64(&mut out)).unwrap();
    assert!(out.iter().all(|value| *value == 0));
    let (sent, bytes) = (agent.stats().sent_bytes, 8 * keys.len() as u64);
    assert!((bytes..bytes + bytes / 10).contains(&sent), "each key went once: {sent} bytes");
    assert_eq!(agent.prefetch_counts().used, 1);
}

#[test]
fn a_long_list_is_refused_whole_before_its_first_part_is_sent() {
    let specs = vec![matrix::MatrixSpec {
        element: ElementType::F32,
        rows: 1 << 21,
        ..spec("w", Consistency::Asp, 1, Partitioner::Hash { partition_count: 4 })
    }];
    let mut layout = layout(specs, 1, 1 << 20);
    let server = start(&mut layout, u32::MAX, b"");
    let mut agent = RemoteAgent::new(layout, 0, &[]).unwrap();
    let (mut keys, _) = long_list();
    let mut values = vec![1.0; keys.len()];
    values[LONG - 1] = f32::NAN;
    let error = agent.push(W, Selection::Rows(Keys::Sorted(&keys)), Values::F32(&values)).unwrap_err();
    let Error::NonFinite { key, column: 0, .. } = error else { panic!("{error}") };
    assert_eq!(key, keys[LONG - 1]);
    // The first key of the second part.
    keys[1 << 17] = 0;
    let part = Selection::Rows(Keys::Sorted(&keys));
    let pulled = agent.pull(W, part, ValuesMut::F32(&mut values)).unwrap_err();
    let pushed = agent.push(W, part, Values::F32(&vec![1.0; keys.len()])).unwrap_err();
    for error in [pulled, pushed] {
        assert!(matches!(error, Error::KeysNotAscending { key: 0, .. }), "{error}");
    }
    agent.barrier().unwrap();
    assert_eq!(server.lanes[0].lock().unwrap().mark, PushPosition::default());
}

#[test]
fn a_large_push_behind_a_large_prefetch_does_not_wait_for_its_answer_to_be_read() {
    const ROWS: u64 = 1 << 18;
    let specs = vec![matrix::MatrixSpec {
        rows: 2 * ROWS,
        ..spec("w", Consistency::Asp, 16, Partitioner::Hash { partition_count: 1 })
    }];
    let mut layout = layout(specs, 1, 64 << 20);
    let server = start(&mut layout, u32::MAX, b"");
    server.lanes[0].lock().unwrap().window = layout.window_bytes;
    let mut agent = RemoteAgent::new(layout, 0, &[]).unwrap();
    // The lane reads no more when 16 MiB of its answers are not read. These are 32 MiB, and the push is as long.
    let ticket = agent.prefetch(W, Selection::Rows(Keys::Range(0, ROWS)), 0);
    let pushed = Selection::Rows(Keys::Range(ROWS, 2 * ROWS));
    agent.push(W, pushed, Values::I64(&vec![1; 16 * ROWS as usize])).unwrap();
    let mut out = vec![1; 16 * ROWS as usize];
    agent.wait(&ticket, ValuesMut::I64(&mut out)).unwrap();
    assert!(out.iter().all(|value| *value == 0));
    assert_eq!((agent.stats().connection_count, agent.prefetch_counts().used), (1, 1));
    agent.finish().unwrap();
}

/// Reads blocks of rows, and adds 1 to rows before the next block is read. Returns the values and the counts of
/// prefetches: sent, used, dropped.
fn blocks(block_is_apart: bool) -> (Vec<i64>, [u64; 3]) {
    let specs = vec![spec("w", Consistency::Asp, 2, Partitioner::Hash { partition_count: 4 })];
    let rows = MatrixRows::new(W, &specs[0]).unwrap();
    let mut layout = layout(specs, 2, 1 << 20);
    let _server = start(&mut layout, u32::MAX, b"");
    let mut agent = RemoteAgent::new(layout, 0, &[]).unwrap();
    let numbers: Vec<u64> = (0..60).collect();
    let mut read = Vec::new();
    let mut blocks = rows.blocks(&numbers, 10, 2);
    while let Some((numbers, values)) = blocks.next(&mut agent).unwrap() {
        read.extend_from_slice(i64::slice(values.as_values()).unwrap());
        // The changed rows are the block itself, or its last row and all rows behind it.
        let from = if block_is_apart { numbers[0] } else { numbers[9] };
        let to = if block_is_apart { numbers[9] } else { 59 };
        let changed: Vec<u64> = (from..=to).collect();
        rows.update(&mut agent, &changed, Values::I64(&vec![1; 2 * changed.len()])).unwrap();
        rows.update(&mut agent, &[], Values::I64(&[])).unwrap();
    }
    agent.finish().unwrap();
    let counts = agent.prefetch_counts();
    (read, [counts.sent, counts.used, counts.dropped])
}

#[test]
fn blocks_of_rows_are_under_way_while_earlier_ones_are_changed() {
    assert_eq!(blocks(true), (vec![0; 120], [6, 6, 0]));
    // Each push changes rows that are under way: they are pulled again, and the new values have the push.
    let expected = (0..6i64).flat_map(|block| vec![block; 20]).collect();
    assert_eq!(blocks(false), (expected, [6, 1, 5]));
}

#[test]
fn an_agent_whose_server_is_gone_ends_with_its_job_long_before_its_wait_limit() {
    let mut layout = a_layout(2);
    layout.wait_limit = Duration::from_hours(1);
    let server = start(&mut layout, u32::MAX, b"");
    let cancellation = CancellationToken::default();
    let agent = RemoteAgent::new(layout, 0, &[]).unwrap();
    let mut agent = agent.with_cancellation(cancellation.clone());
    let (mut out, part) = (vec![0_i64; 2], Selection::Rows(Keys::Sorted(&[1])));
    agent.pull(W, part, ValuesMut::I64(&mut out)).unwrap();
    drop(server);
    let meter = agent.shared_stats();
    let waits = std::thread::spawn(move || {
        let first = agent.pull(W, part, ValuesMut::I64(&mut out)).unwrap_err();
        (first, agent.tick().unwrap_err())
    });
    while meter.get().in_flight_count == 0 && !waits.is_finished() {
        std::thread::yield_now();
    }
    cancellation.cancel("server-1 is gone");
    cancellation.cancel("only the first reason counts");
    let stopped = Error::Stopped { reason: "server-1 is gone".into() };
    assert_eq!(waits.join().unwrap(), (stopped.clone(), stopped), "the call that waits, and every later one");
}

/// Other tasks may wait for what was lost with the connection, and the first lane for them.
#[test]
fn a_broken_connection_is_noticed_while_the_agent_waits_for_another_lane() {
    let mut layout = a_layout(2);
    let server = start_with(&mut layout, u32::MAX, b"", true);
    "server-1".clone_into(&mut layout.lanes[1].server);
    let cancellation = CancellationToken::default();
    let agent = RemoteAgent::new(layout, 0, &[]).unwrap();
    let mut agent = agent.with_cancellation(cancellation.clone());
    let meter = agent.shared_stats();
    let waits = std::thread::spawn(move || agent.barrier().unwrap_err());
    let comes = |count: u64| {
        (0..500).any(|_| {
            std::thread::sleep(COMPUTES);
            meter.get().connection_count == count
        })
    };
    assert!(comes(2), "it waits at the barrier");
    cancellation.on_server_lost("server-1");
    assert!(comes(3), "it connects to the second lane again");
    let closed: Vec<_> = server.lanes.iter().map(|lane| lane.lock().unwrap().closed_count).collect();
    assert_eq!(closed, [0, 1], "the connection to the other server stays");
    cancellation.cancel("the test is over");
    assert_eq!(waits.join().unwrap(), Error::Stopped { reason: "the test is over".into() });
}

#[test]
fn lists_are_whole_and_counted_once_over_sockets_that_break() {
    let spec = ListMatrix::spec("lists", ElementType::I64, 1, PushRule::Add, 7);
    let lists = ListMatrix::new(W, &spec).unwrap();
    for life in [u32::MAX, 3, 2] {
        let mut layout = layout(vec![spec.clone()], 3, 1 << 20);
        let server = start(&mut layout, life, b"");
        for (at, lane) in (0..).zip(&server.lanes) {
            let own = layout.lane_partitions(at).remove(0);
            let matrix = Matrix::new(spec.clone(), &own, &FunctionTable::builtin()).unwrap();
            lane.lock().unwrap().partitions = vec![matrix];
        }
        let mut agent = RemoteAgent::new(layout, 0, &[]).unwrap();
        // Row i has the entries 0 to i, appended in two halves whose values add up to 3.
        for value in [1i64, 2] {
            let mut block = lists.block();
            for row in 0..700u64 {
                let entries: Vec<u64> = (0..=row).collect();
                block.push_list(row, &entries, &vec![value; entries.len()]);
            }
            lists.append(&mut agent, &block).unwrap();
        }
        lists.seal(&mut agent).unwrap();
        let rows: Vec<u64> = (0..1000).step_by(3).collect();
        let read = lists.pull(&mut agent, &ListSelection::Rows(&rows)).unwrap();
        assert_eq!(read.keys, rows);
        for (row, range) in read.rows() {
            let expected = if row < 700 { row + 1 } else { 0 };
            assert_eq!(range.len() as u64, expected, "row {row}");
            assert!(read.entries()[range].iter().copied().eq(0..expected));
        }
        assert!(i64::slice(read.values.as_values()).unwrap().iter().all(|value| *value == 3));
        agent.finish().unwrap();
    }
}
