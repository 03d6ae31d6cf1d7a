//! Every refusal for a limit names the limit and the numbers.

use matrix::{Consistency, MatrixSpec, Partitioner, Storage};
use rpc::message::*;
use rpc::service::Service;

use super::world::*;
use crate::LaneConfig;

#[test]
fn a_job_larger_than_the_memory_is_refused_with_the_sum() {
    let config = LaneConfig { memory_limit_bytes: 3000, ..config() };
    let mut world = World::with(config, open(1, vec![spec("w", Consistency::Bsp)]));
    let matrices = vec![spec("a", Consistency::Bsp), MatrixSpec { rows: 200, ..spec("b", Consistency::Bsp) }];
    let out = world.send(TOOL, Message::OpenJob(OpenJob { job: 8, ..open(1, matrices) }));
    let told = fault(&out);
    assert_eq!(told.kind, FaultKind::TooLarge);
    assert!(told.text.contains("a 800 + b 1600 = 2400 bytes"), "{}", told.text);
    assert!(told.text.contains("the limit is 3000"), "{}", told.text);
    assert!(!world.lane.jobs.contains_key(&8));
}

#[test]
fn sparse_rows_that_grow_beyond_the_memory_are_refused() {
    let config = LaneConfig { memory_limit_bytes: 1 << 20, ..config() };
    let sparse = MatrixSpec {
        rows: 1 << 40,
        storage: Storage::Sparse,
        partitioner: Partitioner::Hash { partition_count: 1 },
        ..spec("w", Consistency::Asp)
    };
    let mut world = World::with(config, OpenJob { owned_partitions: vec![vec![0]], ..open(1, vec![sparse]) });
    let mut refused = None;
    for index in 0..100 {
        let start = u64::from(index) * 10_000;
        let push = Push {
            runs: vec![PartitionRun { partition: 0, count: 10_000 }],
            keys: KeyList::Range { start, end: start + 10_000 },
            values: matrix::OwnedValues::F64(vec![1.0; 10_000]).into(),
            ..push(0, 0, index, 0.0)
        };
        let out = world.send(0, Message::Push(push));
        if !out.is_empty() {
            refused = Some((index, fault(&out).clone()));
            break;
        }
    }
    let (index, told) = refused.expect("a million rows of 16 bytes are more than a MiB");
    assert!(index < 20, "found soon: {index}");
    assert_eq!(told.kind, FaultKind::TooLarge);
    assert!(told.text.contains("(job 7: ") && told.text.contains("is 1048576: use more"), "{}", told.text);
}

#[test]
fn beyond_the_held_bytes_pulls_are_sent_away_for_a_while() {
    let config = LaneConfig { deferred_limit_bytes: 250, ..config() };
    let mut world = World::with(config, open(2, vec![spec("w", Consistency::Bsp)]));
    world.tick(0, 1);
    let mut last = Vec::new();
    for request in 1..=3 {
        last = world.pull(request, 0, 1);
    }
    let told = fault(&last);
    assert_eq!((told.kind, told.request), (FaultKind::Busy, 3));
    assert!(told.retry_after_ms > 0 && told.kind.retry_may_help());
    assert_eq!(answered(&world.tick(1, 1)), [1, 2]);
    assert_eq!(pulled(world.pull(3, 0, 1)), [0.0; 2]);
}

#[test]
fn all_that_is_counted_is_shown() {
    let mut world = World::new(2, Consistency::Asp);
    world.push(0, 0, 0);
    world.push(0, 0, 0);
    world.tick(0, 1);
    world.pull(3, 0, 1);
    world.pull(3, 0, 99);
    world.send(0, Message::Pull(Pull { matrix: 9, ..pull(4, 0, 1) }));
    let mut metrics = rpc::Metrics::default();
    world.lane.metrics(&mut metrics);
    let text = ::control::metrics_text(metrics);
    for line in [
        "seraphim_requests_total{lane=\"0\",kind=\"push\"} 2",
        "seraphim_pushes_total{lane=\"0\",job=\"7\"} 1",
        "seraphim_duplicates_total{lane=\"0\",job=\"7\"} 1",
        "seraphim_task_clock{lane=\"0\",job=\"7\",task=\"0\"} 1",
        "seraphim_pull_staleness_bucket{le=\"0.0\",lane=\"0\",job=\"7\"} 0",
        "seraphim_pull_staleness_bucket{le=\"1.0\",lane=\"0\",job=\"7\"} 1",
        "seraphim_pull_staleness_bucket{le=\"+Inf\",lane=\"0\",job=\"7\"} 2",
        "seraphim_pull_staleness_count{lane=\"0\",job=\"7\"} 2",
        "seraphim_pull_staleness_sum{lane=\"0\",job=\"7\"} 100.0",
        "seraphim_refusals_total{lane=\"0\",kind=\"not_found\"} 1",
        "seraphim_connections{lane=\"0\"} 3",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
    }
}

#[test]
fn a_row_has_at_most_as_many_bytes_as_a_frame_takes() {
    let mut world = World::new(1, Consistency::Asp);
    let mut open_with = |job, columns| {
        let wide = MatrixSpec { columns, storage: Storage::Sparse, ..spec("wide", Consistency::Asp) };
        world.send(TOOL, Message::OpenJob(OpenJob { job, ..open(1, vec![wide]) }))
    };
    let most = rpc::ROW_BYTES as u64 / 8;
    assert!(matches!(only(open_with(8, most)), Message::Done(_)));
    let out = open_with(9, most + 1);
    let told = fault(&out);
    assert_eq!(told.kind, FaultKind::TooLarge);
    assert!(told.text.contains("\"wide\" has 67108872 bytes with its slots"), "{}", told.text);
}

#[test]
fn an_answer_holds_as_many_values_as_agents_ask_for_at_once() {
    let rows = rpc::CHUNK_BYTES as u64 / 4;
    let owned_partitions = vec![vec![0]];
    let partitioner = Partitioner::Range { partition_count: 1 };
    let wide = MatrixSpec { rows, partitioner, ..spec("w", Consistency::Asp) };
    let mut world = World::with(config(), OpenJob { owned_partitions, ..open(1, vec![wide]) });
    let mut ask = |end: u64| {
        let runs = vec![PartitionRun { partition: 0, count: end as u32 }];
        world.send(0, Message::Pull(Pull { runs, keys: KeyList::Range { start: 0, end }, ..pull(3, 0, 0) }))
    };
    assert_eq!(pulled(ask(rpc::CHUNK_BYTES as u64 / 8)).len(), rpc::CHUNK_BYTES / 8);
    assert_eq!(fault(&ask(rows)).kind, FaultKind::TooLarge);
}

#[test]
fn a_job_has_at_most_65536_tasks() {
    let mut world = World::new(1, Consistency::Asp);
    let mut open_with = |job, tasks| {
        world.send(TOOL, Message::OpenJob(OpenJob { job, ..open(tasks, vec![spec("w", Consistency::Asp)]) }))
    };
    assert!(matches!(only(open_with(8, 1 << 16)), Message::Done(_)));
    let out = open_with(9, (1 << 16) + 1);
    assert!(fault(&out).text.contains("65537 tasks, the limit is 65536"), "{out:?}");
}

/// 4 MiB of values and 64 KiB for the rows of a task that are read beside them.
#[test]
fn an_answer_of_the_largest_size_is_given_and_a_larger_one_refused() {
    let largest = ((4 << 20) + (64 << 10)) / 8;
    let partitioner = Partitioner::Range { partition_count: 1 };
    let rows = MatrixSpec { rows: 1 << 20, partitioner, ..spec("w", Consistency::Asp) };
    let mut world = World::with(config(), OpenJob { owned_partitions: vec![vec![0]], ..open(1, vec![rows]) });
    let mut pull_of = |count: u64| {
        let runs = vec![PartitionRun { partition: 0, count: count as u32 }];
        let keys = KeyList::Range { start: 0, end: count };
        world.send(0, Message::Pull(Pull { runs, keys, ..pull(3, 0, 0) }))
    };
    assert_eq!(pulled(pull_of(largest)).len(), largest as usize);
    let refused = pull_of(largest + 1);
    let told = fault(&refused);
    assert_eq!(told.kind, FaultKind::TooLarge);
    assert!(told.text.contains("the limit of one answer is 4259840: split the request"), "{}", told.text);
}
