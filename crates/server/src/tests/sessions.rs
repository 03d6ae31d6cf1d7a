//! Sessions of foreign hosts: matrices are added and dropped, requests never wait, and many connections share one
//! session.

use matrix::{Consistency, MatrixSpec, OwnedValues};
use rpc::message::*;
use rpc::service::{ConnectionId, Effect};

use super::world::*;
use crate::LaneConfig;

/// Adds a matrix to a session, which has one matrix, 0, from its start.
pub(super) fn add(matrix: u32, spec: MatrixSpec) -> Message {
    Message::AddMatrix(AddMatrix {
        request: 9,
        job: JOB,
        matrix,
        spec: Box::new(spec),
        owned_partitions: vec![0, 1],
    })
}

pub(super) fn hello_of_session(job: JobId) -> Message {
    Message::Hello(Hello { request: 1, token: Vec::new(), role: Role::Session { job }, lane: 0 })
}

impl World {
    /// A session with one matrix. Connections 1 and 2 belong to it.
    pub(super) fn session(config: LaneConfig) -> Self {
        let mut world = Self::with(config, open(0, Vec::new()));
        assert!(matches!(only(world.send(TOOL, add(0, spec("w", Consistency::Asp)))), Message::Done(_)));
        for at in [1, 2] {
            assert!(matches!(only(world.send(at, hello_of_session(JOB))), Message::Welcome(_)));
        }
        world
    }

    pub(super) fn foreign_pull(&mut self, at: ConnectionId) -> Vec<f64> {
        pulled(self.send(at, Message::Pull(pull(5, 0, 0))))
    }
}

fn add_one() -> Message {
    Message::Push(Push { request: 6, ..push(0, 0, 0, 1.0) })
}

#[test]
fn all_connections_of_a_session_push_and_see_at_once() {
    let mut world = World::session(config());
    assert!(matches!(only(world.send(1, add_one())), Message::Done(Done { request: 6, .. })));
    assert!(matches!(only(world.send(2, add_one())), Message::Done(_)));
    assert_eq!(world.foreign_pull(1), [2.0; 2]);
    assert_eq!(world.send(1, Message::Push(push(0, 0, 0, 1.0))), [], "no answer was wanted");
    assert_eq!(world.foreign_pull(2), [3.0; 2]);
}

#[test]
fn a_session_that_is_not_there_is_refused_at_the_hello() {
    let mut world = World::session(config());
    let out = world.send(3, hello_of_session(99));
    assert_eq!(fault(&out).kind, FaultKind::NoSuchJob);
    assert!(closes(&out, 3));
    let reason = "its host has closed it".to_owned();
    world.send(TOOL, Message::CloseJob(CloseJob { request: 1, job: JOB, reason }));
    let out = world.send(1, add_one());
    assert_eq!(fault(&out).kind, FaultKind::Stopped);
    assert!(fault(&out).text.contains("its host has closed it"), "{}", fault(&out).text);
    let out = world.send(4, hello_of_session(JOB));
    assert_eq!(fault(&out).kind, FaultKind::Stopped);
}

#[test]
fn nobody_pushes_past_the_clocks_of_tasks() {
    let mut world = World::new(1, Consistency::Bsp);
    let out = world.send(3, hello_of_session(JOB));
    assert_eq!(fault(&out).kind, FaultKind::Invalid);
    assert!(fault(&out).text.contains("job 7 is not a session"), "{}", fault(&out).text);
    assert!(closes(&out, 3));
    let mut world = World::session(config());
    let out = world.send(1, Message::Pull(Pull { job: 8, ..pull(5, 0, 0) }));
    assert!(
        fault(&out).text.contains("names session 8, but its connection belongs to session 7"),
        "{}",
        fault(&out).text
    );
    let out = world.send(TOOL, Message::Commit(super::staged::commit(1, 1, 1)));
    assert!(fault(&out).text.contains("only a session"), "{}", fault(&out).text);
}

#[test]
fn a_matrix_that_is_dropped_is_free_and_gone() {
    let mut world = World::session(config());
    world.send(1, add_one());
    let before = world.lane.memory.bytes();
    let dropped = Message::DropMatrix(DropMatrix { request: 3, job: JOB, matrix: 0 });
    assert!(matches!(only(world.send(TOOL, dropped.clone())), Message::Done(_)));
    assert!(world.lane.memory.bytes() < before / 10, "{} of {before}", world.lane.memory.bytes());
    for message in [add_one(), Message::Pull(pull(5, 0, 0))] {
        let out = world.send(1, message);
        assert_eq!(fault(&out).kind, FaultKind::NotFound);
        assert!(fault(&out).text.contains("matrix 0 (\"w\") was dropped"), "{}", fault(&out).text);
    }
    assert!(matches!(only(world.send(TOOL, dropped)), Message::Done(_)), "a repeat is done already");
    let out = world.send(TOOL, add(0, spec("w", Consistency::Asp)));
    assert!(fault(&out).text.contains("use a larger number"), "{}", fault(&out).text);
    assert!(matches!(only(world.send(TOOL, add(3, spec("w", Consistency::Asp)))), Message::Done(_)));
    let out = world.send(1, Message::Pull(Pull { matrix: 3, ..pull(5, 0, 0) }));
    assert_eq!(pulled(out), [0.0; 2], "the name is free, the rows are new");
    let out = world.send(1, Message::Pull(Pull { matrix: 2, ..pull(5, 0, 0) }));
    assert_eq!(fault(&out).kind, FaultKind::NotFound, "a number that another lane refused");
}

#[test]
fn a_matrix_is_made_once_and_only_if_it_fits() {
    let mut world = World::session(LaneConfig { memory_limit_bytes: 3000, ..config() });
    assert!(
        matches!(only(world.send(TOOL, add(0, spec("w", Consistency::Asp)))), Message::Done(_)),
        "a repeat"
    );
    let out = world.send(TOOL, add(1, spec("w", Consistency::Asp)));
    assert!(fault(&out).text.contains("exists already"), "{}", fault(&out).text);
    let out = world.send(TOOL, add(1, MatrixSpec { rows: 1000, ..spec("large", Consistency::Asp) }));
    assert_eq!(fault(&out).kind, FaultKind::TooLarge);
    let text = &fault(&out).text;
    assert!(text.contains("large 8000 = 8000 bytes") && text.contains("the limit is 3000"), "{text}");
    let out = world.send(TOOL, add(1 << 20, spec("far", Consistency::Asp)));
    assert_eq!(fault(&out).kind, FaultKind::TooLarge);
    assert_eq!(world.lane.jobs[&JOB].matrices.len(), 1);
}

#[test]
fn a_batch_is_done_and_answered_in_order() {
    let mut world = World::session(config());
    let messages = vec![
        Message::Pull(pull(11, 0, 0)),
        Message::Push(push(0, 0, 0, 2.0)),
        Message::Push(Push { request: 12, matrix: 5, ..push(0, 0, 0, 2.0) }),
        Message::Pull(pull(13, 0, 0)),
    ];
    let Message::Batch(batch) = only(world.send(1, Message::Batch(Batch { request: 20, messages }))) else {
        panic!("a batch is answered by a batch");
    };
    assert_eq!(batch.request, 20);
    let [Message::Pulled(first), Message::Fault(refused), Message::Pulled(last)] = &batch.messages[..] else {
        panic!("{:?}", batch.messages);
    };
    assert_eq!((first.request, refused.request, last.request), (11, 12, 13));
    assert_eq!(refused.kind, FaultKind::NotFound);
    let values = [&first.values, &last.values].map(Clone::clone);
    assert_eq!(values, [0.0, 2.0].map(|value| OwnedValues::F64(vec![value; 2]).into()));
}

#[test]
fn the_values_of_a_batch_are_bounded_and_the_rest_is_told_so() {
    let wide = MatrixSpec { rows: 1, columns: 1 << 18, ..spec("wide", Consistency::Asp) };
    let wide = MatrixSpec { partitioner: matrix::Partitioner::Range { partition_count: 1 }, ..wide };
    let mut world = World::session(config());
    world.send(
        TOOL,
        Message::AddMatrix(AddMatrix {
            request: 9,
            job: JOB,
            matrix: 1,
            spec: Box::new(wide),
            owned_partitions: vec![0],
        }),
    );
    let row = |request| {
        let runs = vec![PartitionRun { partition: 0, count: 1 }];
        Message::Pull(Pull { matrix: 1, runs, keys: KeyList::Listed(vec![0]), ..pull(request, 0, 0) })
    };
    let messages = vec![row(1), row(2), row(3), Message::Pull(pull(4, 0, 0))];
    let Message::Batch(batch) = only(world.send(1, Message::Batch(Batch { request: 20, messages }))) else {
        panic!("a batch is answered by a batch");
    };
    let [Message::Pulled(_), Message::Pulled(_), Message::Fault(told), ..] = &batch.messages[..] else {
        panic!("2 MiB each, the limit is 4 MiB");
    };
    assert_eq!((told.kind, told.request), (FaultKind::TooLarge, 3));
    assert!(told.text.contains("2097152 bytes of values after 4194304"), "{}", told.text);
}

#[test]
fn only_sessions_send_batches_and_a_wrong_message_in_one_closes() {
    let mut world = World::session(config());
    let out = world.send(TOOL, Message::Batch(Batch { request: 20, messages: vec![] }));
    assert_eq!((fault(&out).kind, fault(&out).request), (FaultKind::Invalid, 20));
    let done = Message::Done(Done { request: 1, minimum: 0, applied: PushPosition::default() });
    let large = Message::Export(Export { request: 1, job: JOB, matrix: 0, from: 0, skip: 0 });
    for wrong in [done, large] {
        world.send(3, hello_of_session(JOB));
        let messages = vec![wrong, add_one()];
        let out = world.send(3, Message::Batch(Batch { request: 21, messages }));
        assert!(closes(&out, 3));
        let Effect::Send { message: Message::Batch(batch), .. } = &out[0] else { panic!("{out:?}") };
        let [Message::Fault(told)] = &batch.messages[..] else { panic!("nothing behind it is done") };
        assert!(
            told.kind == FaultKind::BadFrame && told.text.contains("in a batch, which may have only pulls"),
            "{told:?}"
        );
    }
    assert_eq!(world.foreign_pull(2), [0.0; 2]);
}

#[test]
fn a_matrix_that_is_dropped_leaves_one_empty_partition_however_large_it_was() {
    let mut world = World::session(config());
    // This matrix has more rows than a single dense partition may have.
    let large = MatrixSpec {
        rows: 1 << 32,
        partitioner: matrix::Partitioner::Explicit { starts: vec![0, 100, 1 << 31] },
        ..spec("large", Consistency::Asp)
    };
    let made =
        AddMatrix { request: 9, job: JOB, matrix: 1, spec: Box::new(large), owned_partitions: vec![0] };
    assert!(matches!(only(world.send(TOOL, Message::AddMatrix(made))), Message::Done(_)));
    let dropped = DropMatrix { request: 3, job: JOB, matrix: 1 };
    let out = world.send(TOOL, Message::DropMatrix(dropped));
    assert!(matches!(out[..], [Effect::Send { message: Message::Done(_), .. }]), "{out:?}");
    assert_eq!(world.lane.jobs[&JOB].matrices[1].spec().partitioner.partition_count(), 1);
}
