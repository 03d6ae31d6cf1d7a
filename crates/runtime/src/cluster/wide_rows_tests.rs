//! Tests with a real server that rows longer than a chunk can be pushed, pulled, kept in snapshots, exported and imported.

use std::sync::mpsc::channel;
use std::time::Duration;

use driver::SnapshotPurpose;
use matrix::{
    Agent, Axis, Consistency, ElementType, Initializer, Keys, ListMatrix, ListSelection, MatrixId,
    MatrixSpec, OwnedValues, Partitioner, PushRule, RowBlock, Selection, Storage, Values, ValuesMut,
};
use rpc::WireType;
use rpc::layout::{JobLayout, LaneAddress, assign_partitions};
use worker::RemoteAgent;

use crate::cluster::servers::Servers;

/// The row has 20 MB of f32.
const WIDTH: usize = 5_000_000;
const LANES: u16 = 2;

/// A server in this process, which ends when this value is dropped.
struct Served {
    layout: JobLayout,
    stop: rpc::Stop,
    serving: Option<std::thread::JoinHandle<()>>,
}

impl Served {
    fn start(matrices: Vec<MatrixSpec>, wire: Vec<WireType>) -> Self {
        Self::with(server::ServerConfig { lanes: LANES, ..server::ServerConfig::default() }, matrices, wire)
    }

    fn with(config: server::ServerConfig, matrices: Vec<MatrixSpec>, wire: Vec<WireType>) -> Self {
        let stop = rpc::Stop::new();
        let (ready, is_ready) = channel();
        let told = stop.clone();
        let serving = std::thread::spawn(move || {
            server::run(config, told, move |ports| {
                ready.send(ports.frames[0].address().to_string()).expect("the test listens");
                Ok::<(), server::Error>(())
            })
            .expect("it ends in order");
        });
        let address = is_ready.recv().expect("it starts");
        let lane = |lane| LaneAddress::new(vec![address.clone()], lane);
        let owners = matrices
            .iter()
            .map(|spec| assign_partitions(spec.partitioner.partition_count(), LANES))
            .collect();
        let layout = JobLayout {
            job: 1,
            task_count: 1,
            wait_limit: Duration::from_mins(1),
            window_bytes: 8 << 20,
            matrices,
            lanes: (0..LANES).map(lane).collect(),
            owners,
            home: 0,
            prefetch: matrix::Prefetch::default(),
            wire,
        };
        Self { layout, stop, serving: Some(serving) }
    }

    fn open(&self) -> (Servers, RemoteAgent) {
        let mut servers = Servers::connect(&self.layout, &[]).expect("it listens");
        servers.open_job().expect("the matrices fit");
        (servers, RemoteAgent::new(self.layout.clone(), 0, &[]).expect("a good layout"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.raise();
        self.serving.take().map(std::thread::JoinHandle::join);
    }
}

fn spec(axis: Axis, rows: u64, columns: u64) -> MatrixSpec {
    MatrixSpec {
        name: "wide".into(),
        element: ElementType::F32,
        rows,
        columns,
        axis,
        storage: Storage::Dense,
        partitioner: Partitioner::Range { partition_count: 3 },
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency: Consistency::Asp,
        seed: 1,
    }
}

/// Returns whole numbers up to 255, which every wire type except `int8` represents exactly.
fn values(row: usize) -> Vec<f32> {
    (0..WIDTH).map(|i| ((i * 31 + row * 7) % 256) as f32).collect()
}

#[test]
fn rows_of_20_mb_are_pushed_pulled_exported_and_imported() {
    for wire in [WireType::F32, WireType::Bf16] {
        let served = Served::start(vec![spec(Axis::Row, 3, WIDTH as u64)], vec![wire]);
        let (mut servers, mut agent) = served.open();
        let rows: Vec<f32> = (0..3).flat_map(values).collect();
        let all = Selection::Rows(Keys::Range(0, 3));
        agent.push(MatrixId(0), all, Values::F32(&rows)).expect("pushed");
        let mut pulled = vec![0.0; 3 * WIDTH];
        agent.pull(MatrixId(0), all, ValuesMut::F32(&mut pulled)).expect("pulled");
        assert!(pulled == rows, "pulled as {wire:?}");
        let exported = servers.export(0).expect("exported");
        assert!(exported.keys == [0, 1, 2] && exported.values == OwnedValues::F32(rows.clone()));
        agent.push(MatrixId(0), all, Values::F32(&rows)).expect("pushed");
        agent.finish().expect("all is there");
        servers.import(0, &exported, Some(0)).expect("imported");
        assert!(servers.export(0).expect("exported").values == exported.values, "as before the second push");
    }
}

#[test]
fn rows_of_20_mb_are_read_from_a_snapshot_while_others_are_pushed() {
    let sparse = MatrixSpec {
        storage: Storage::Sparse,
        partitioner: Partitioner::Hash { partition_count: 3 },
        ..spec(Axis::Row, 9, WIDTH as u64)
    };
    let served = Served::start(vec![sparse], Vec::new());
    let (mut servers, mut agent) = served.open();
    let keys = [0, 4, 7];
    let rows: Vec<f32> = (0..3).flat_map(values).collect();
    let mut push = || {
        agent.push(MatrixId(0), Selection::Rows(Keys::Sorted(&keys)), Values::F32(&rows)).expect("pushed");
    };
    push();
    let before = servers.export(0).expect("exported");
    assert!(servers.try_take_snapshot(SnapshotPurpose::Checkpoint, false).expect("there is memory"));
    push();
    let mut found = Vec::new();
    servers
        .scan(0, SnapshotPurpose::Checkpoint, false, &mut |block| {
            let OwnedValues::F32(values) = &block.values else { panic!("f32") };
            found.extend(block.keys.iter().copied().zip(values.chunks(WIDTH).map(<[f32]>::to_vec)));
            Ok(())
        })
        .expect("scanned");
    found.sort_by_key(|row| row.0);
    let (found_keys, found_rows): (Vec<u64>, Vec<Vec<f32>>) = found.into_iter().unzip();
    assert!(found_keys == keys && OwnedValues::F32(found_rows.concat()) == before.values);
    servers.restore_snapshot(SnapshotPurpose::Checkpoint).expect("restored");
    assert!(servers.export(0).expect("exported") == before);
    servers.drop_snapshot(SnapshotPurpose::Checkpoint).expect("dropped");
    let none = servers
        .scan(0, SnapshotPurpose::Checkpoint, false, &mut |_| Ok(()))
        .expect_err("it was dropped")
        .to_string();
    assert!(none.contains("there is no snapshot 1"), "{none}");
}

#[test]
fn a_snapshot_for_which_a_server_has_no_memory_is_not_taken() {
    // The lane with two of the three partitions has 40 MB, of which a snapshot may need a copy.
    for (limit, is_taken) in [(180 << 20, true), (150 << 20, false)] {
        let config = server::ServerConfig { lanes: LANES, memory_limit_bytes: limit, ..Default::default() };
        let served = Served::with(config, vec![spec(Axis::Row, 3, WIDTH as u64)], Vec::new());
        let (mut servers, _agent) = served.open();
        let purpose = SnapshotPurpose::Checkpoint;
        assert_eq!(servers.try_take_snapshot(purpose, false).expect("that is no error"), is_taken, "{limit}");
        assert_eq!(
            servers.scan(0, purpose, false, &mut |_| Ok(())).is_ok(),
            is_taken,
            "no lane keeps its share alone"
        );
        if !is_taken {
            let refused = servers.take_snapshot(purpose).expect_err("there is no memory").to_string();
            assert!(refused.contains("a copy of the rows needs"), "{refused}");
        }
    }
}

#[test]
fn a_row_that_is_cut_by_columns_is_pushed_and_pulled_whole() {
    let served = Served::start(vec![spec(Axis::Column, 2, WIDTH as u64)], Vec::new());
    let (mut servers, mut agent) = served.open();
    let row = values(1);
    let part = Selection::Columns { row: 1, keys: Keys::Range(0, WIDTH as u64) };
    agent.push(MatrixId(0), part, Values::F32(&row)).expect("pushed");
    let mut pulled = vec![0.0; WIDTH];
    agent.pull(MatrixId(0), part, ValuesMut::F32(&mut pulled)).expect("pulled");
    assert!(pulled == row);
    let exported = servers.export(0).expect("exported");
    assert_eq!(exported.keys.len(), 2 * WIDTH);
    servers.import(0, &exported, Some(0)).expect("imported");
    agent.pull(MatrixId(0), part, ValuesMut::F32(&mut pulled)).expect("pulled");
    assert!(pulled == row);
}

#[test]
fn a_row_beyond_the_limit_is_refused_before_any_task_starts() {
    let wide = MatrixSpec {
        rule: PushRule::FtrlProximal { alpha: 0.1, beta: 1.0, l1: 0.0, l2: 0.0 },
        ..spec(Axis::Row, 1, 6_000_000)
    };
    let served = Served::start(vec![wide], Vec::new());
    let mut servers = Servers::connect(&served.layout, &[]).expect("it listens");
    let text = servers.open_job().expect_err("72 MB a row").to_string();
    assert!(text.contains("has 72000000 bytes with its slots, the limit is 67108864"), "{text}");
    assert!(RemoteAgent::new(served.layout.clone(), 0, &[]).is_err());
}

/// A list of more entries than several pages have, among short ones.
#[test]
fn a_list_longer_than_a_page_is_exported_and_imported_whole() {
    let spec = ListMatrix::spec("lists", ElementType::F32, 1, PushRule::Add, 4);
    let lists = ListMatrix::new(MatrixId(0), &spec).expect("lists");
    let served = Served::start(vec![spec.clone()], Vec::new());
    let (mut servers, mut agent) = served.open();
    let mut block = lists.block();
    for (row, length) in [(2u64, 3u64), (5, 500_000), (6, 2), (9, 300_000), (11, 1)] {
        let entries: Vec<u64> = (0..length).map(|entry| entry * 2).collect();
        block.push_list(row, &entries, &vec![0.5f32; entries.len()]);
    }
    lists.append(&mut agent, &block).expect("they fit");
    lists.seal(&mut agent).expect("sealed");
    assert_eq!(servers.export(0).expect("all lists"), block);
    servers.import(0, &RowBlock::none(&spec), Some(5)).expect("it is emptied");
    assert!(servers.export(0).expect("no list").keys.is_empty());
    servers.import(0, &block, None).expect("it fits");
    let rows = [2, 5, 6, 9, 11];
    assert_eq!(lists.pull(&mut agent, &ListSelection::Rows(&rows)).expect("all lists"), block);
    servers.take_snapshot(SnapshotPurpose::Checkpoint).expect("room");
    let mut count = 0;
    let mut add = |rows: &RowBlock| {
        count += rows.entries().len();
        Ok(())
    };
    servers.scan(0, SnapshotPurpose::Checkpoint, false, &mut add).expect("all blocks");
    assert_eq!(count, block.entries().len());
    agent.finish().expect("it leaves");
}
