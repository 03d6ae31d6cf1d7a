//! A part of an evaluation counts once, whichever connections send it, in any order and any number of times. What does
//! not count is freed.

use matrix::{Consistency, OwnedValues, RowPositions};
use proptest::prelude::*;
use rpc::message::*;
use rpc::service::{Effect, Service};

use super::sessions::add;
use super::world::*;
use crate::LaneConfig;
use crate::staged_chunks::StagedChunk;

pub(super) fn commit(part: u32, attempt: u64, chunks: u32) -> Commit {
    Commit { request: 8, job: JOB, matrix: 0, token: 1, part, attempt, chunks }
}

pub(super) fn staged(part: u32, attempt: u64, chunk: u32, value: f64) -> PushStaged {
    let Push { runs, keys, .. } = push(0, 0, 0, 0.0);
    let values = OwnedValues::F64(vec![value; 2]);
    let (request, token, matrix, table) = (7, 1, 0, 0);
    PushStaged { request, job: JOB, token, part, attempt, chunk, matrix, table, runs, keys, values }
}

fn is_done(effects: Vec<Effect>) -> bool {
    matches!(only(effects), Message::Done(_))
}

/// The attempt that counts.
fn winner(effects: Vec<Effect>) -> u64 {
    match only(effects) {
        Message::Committed(Committed { request: 8, attempt }) => attempt,
        other => panic!("{other:?}"),
    }
}

impl World {
    fn stage(&mut self, push: PushStaged) -> Vec<Effect> {
        self.send(1, Message::PushStaged(push))
    }

    fn commit(&mut self, commit: Commit) -> Vec<Effect> {
        self.send(1, Message::Commit(commit))
    }

    fn close_token(&mut self, token: u64) -> bool {
        is_done(self.send(1, Message::CloseToken(CloseToken { request: 4, job: JOB, matrix: 0, token })))
    }
}

#[test]
fn nothing_is_seen_before_the_commit_and_all_of_it_after() {
    let mut world = World::session(config());
    assert!(is_done(world.stage(staged(0, 5, 0, 1.0))));
    assert!(is_done(world.stage(staged(0, 5, 1, 10.0))));
    assert_eq!(world.foreign_pull(2), [0.0; 2]);
    assert!(world.lane.staged_bytes() > 0);
    let before = world.lane.memory.uncounted_elements();
    assert_eq!(winner(world.commit(commit(0, 5, 2))), 5);
    assert_eq!(world.lane.memory.uncounted_elements(), before + 4, "two values in each of two chunks");
    assert_eq!(world.foreign_pull(2), [11.0; 2]);
}

#[test]
fn of_two_attempts_the_first_commit_counts_and_the_other_is_freed() {
    let mut world = World::session(config());
    world.stage(staged(0, 5, 0, 1.0));
    let alone = world.lane.staged_bytes();
    world.stage(staged(0, 6, 0, 1.0));
    world.stage(staged(1, 5, 0, 100.0));
    assert_eq!(winner(world.commit(commit(0, 6, 1))), 6);
    assert!(world.lane.staged_bytes() < 2 * alone, "only part 1 and the memory of the commit are left");
    assert_eq!(winner(world.commit(commit(0, 5, 1))), 6, "the answer names the attempt that counts");
    assert_eq!(winner(world.commit(commit(0, 6, 1))), 6, "a repeat gets the same answer");
    assert!(is_done(world.stage(staged(0, 5, 1, 1.0))), "late chunks are dropped, not kept");
    assert!(is_done(world.stage(staged(0, 6, 0, 1.0))));
    assert_eq!(world.foreign_pull(2), [1.0; 2]);
    assert_eq!(winner(world.commit(commit(1, 5, 1))), 5, "another part is another name");
    assert_eq!(world.foreign_pull(2), [101.0; 2]);
    let mut metrics = rpc::Metrics::default();
    world.lane.metrics(&mut metrics);
    let text = ::control::metrics_text(metrics);
    for line in [
        "seraphim_commits_total{lane=\"0\",job=\"7\"} 2",
        "seraphim_late_commits_total{lane=\"0\",job=\"7\"} 1",
        "seraphim_dropped_chunks_total{lane=\"0\",job=\"7\"} 2",
        "seraphim_staged_tokens{lane=\"0\",job=\"7\"} 1",
        "seraphim_requests_total{lane=\"0\",kind=\"commit\"} 4",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
    }
}

#[test]
fn a_commit_wants_all_chunks_of_its_attempt() {
    let mut world = World::session(config());
    world.stage(staged(0, 5, 0, 1.0));
    world.stage(staged(0, 5, 2, 1.0));
    let out = world.commit(commit(0, 5, 3));
    assert_eq!(fault(&out).kind, FaultKind::Invalid);
    assert!(fault(&out).text.contains("chunk 1 of 3 is missing"), "{}", fault(&out).text);
    let out = world.commit(commit(0, 5, 1));
    assert!(fault(&out).text.contains("2 chunks are staged, the commit is for 1"), "{}", fault(&out).text);
    // The number of chunks is right, but one is missing.
    let out = world.commit(commit(0, 5, 2));
    assert!(fault(&out).text.contains("chunk 1 of 2 is missing"), "{}", fault(&out).text);
    assert_eq!(world.foreign_pull(2), [0.0; 2], "nothing of it counts");
    assert!(fault(&world.commit(commit(0, 9, 1))).text.contains("chunk 0 of 1 is missing"));
    world.stage(staged(0, 5, 1, 1.0));
    assert!(is_done(world.stage(staged(0, 5, 1, 50.0))), "a chunk that is there is dropped");
    assert_eq!(winner(world.commit(commit(0, 5, 3))), 5);
    assert_eq!(world.foreign_pull(2), [3.0; 2]);
    assert_eq!(winner(world.commit(commit(1, 5, 0))), 5, "nothing for this lane, and it counts");
    assert_eq!(winner(world.commit(commit(1, 6, 0))), 5);
}

#[test]
fn a_closed_token_refuses_what_is_late_and_frees_what_is_staged() {
    let mut world = World::session(config());
    world.stage(staged(0, 5, 0, 1.0));
    world.stage(staged(1, 6, 0, 1.0));
    world.commit(commit(1, 6, 1));
    assert!(world.close_token(1));
    assert!(world.close_token(1), "a repeat is done already");
    assert_eq!(world.lane.staged_bytes(), 0);
    for out in
        [world.stage(staged(2, 5, 0, 1.0)), world.commit(commit(0, 5, 1)), world.commit(commit(1, 6, 1))]
    {
        assert_eq!(fault(&out).kind, FaultKind::TokenClosed);
        assert!(fault(&out).text.contains("token 1 is closed"), "{}", fault(&out).text);
    }
    assert!(is_done(world.stage(PushStaged { token: 2, ..staged(0, 5, 0, 1.0) })), "the next one is open");
    assert!(is_done(world.stage(PushStaged { token: 9, ..staged(0, 5, 0, 1.0) })));
    assert!(world.close_token(8));
    let out = world.commit(Commit { token: 2, ..commit(0, 5, 1) });
    assert_eq!(fault(&out).kind, FaultKind::TokenClosed, "tokens only rise: it closed those below");
    assert_eq!(winner(world.commit(Commit { token: 9, ..commit(0, 5, 1) })), 5);
    assert_eq!(world.foreign_pull(2), [2.0; 2]);
}

#[test]
fn what_is_staged_is_bounded_and_the_text_has_the_sum() {
    let mut world = World::session(LaneConfig { staged_limit_bytes: 1000, ..config() });
    let other = OpenJob { job: 9, ..open(0, Vec::new()) };
    assert!(is_done(world.send(TOOL, Message::OpenJob(other))), "another session, with nothing staged");
    let refused = (0..100).find_map(|chunk| {
        let out = world.stage(staged(0, 5, chunk, 1.0));
        (!matches!(out[0], Effect::Send { message: Message::Done(_), .. })).then(|| fault(&out).clone())
    });
    let told = refused.expect("a hundred chunks are more than a kilobyte");
    let used = world.lane.staged_bytes();
    assert!(used > 500 && used <= 1000, "{used}");
    assert_eq!(told.kind, FaultKind::TooLarge);
    let parts = format!("session 7 {used} under 1 tokens");
    assert!(!told.text.contains("session 9"), "{}", told.text);
    assert!(told.text.contains(&parts) && told.text.contains("the limit is 1000"), "{}", told.text);
    let empty = (0..100).find_map(|part| {
        let out = world.commit(commit(part + 10, 5, 0));
        matches!(out[0], Effect::Send { message: Message::Fault(_), .. }).then(|| fault(&out).kind)
    });
    assert_eq!(empty, Some(FaultKind::TooLarge), "what is remembered of commits is bounded too");
    assert!(world.close_token(1));
    assert!(is_done(world.stage(PushStaged { token: 2, ..staged(0, 5, 0, 1.0) })), "there is room again");
}

#[test]
fn each_run_key_and_value_of_a_chunk_is_counted_with_all_that_is_kept_for_it() {
    let bytes = |run_count: usize, key_count: usize, value_count: usize| {
        let runs = vec![PartitionRun { partition: 0, count: 1 }; run_count];
        let (keys, values) = (vec![7; key_count], OwnedValues::F64(vec![1.0; value_count]));
        StagedChunk { table: 0, runs, keys, positions: Vec::new(), values }.bytes()
    };
    let none = bytes(0, 0, 0);
    let one = bytes(1, 0, 0) - none;
    assert!(one >= (size_of::<PartitionRun>() + size_of::<RowPositions>()) as u64, "{one}");
    assert_eq!(bytes(1000, 0, 0) - none, 1000 * one);
    assert_eq!(bytes(0, 1000, 0) - none, 1000 * (size_of::<u64>() + size_of::<u32>()) as u64);
    assert_eq!(bytes(0, 0, 1000) - none, 1000 * size_of::<f64>() as u64);
}

#[test]
fn rows_and_what_is_staged_share_the_memory_and_a_commit_makes_room() {
    let mut world = World::session(LaneConfig { memory_limit_bytes: 3000, ..config() });
    let rows = world.lane.memory.bytes();
    let refused = (0..100).find_map(|chunk| {
        let out = world.stage(staged(0, 5, chunk, 1.0));
        let is_refused = matches!(out[0], Effect::Send { message: Message::Fault(_), .. });
        is_refused.then(|| (chunk, fault(&out).clone()))
    });
    let (chunks, told) = refused.expect("a hundred chunks are more than three kilobytes");
    let left = format!("the limit is {}, the memory limit minus the rows", 3000 - rows);
    assert!(told.kind == FaultKind::TooLarge && told.text.contains(&left), "{}", told.text);
    let out = world.send(TOOL, add(1, spec("v", Consistency::Asp)));
    assert_eq!(fault(&out).kind, FaultKind::TooLarge, "no new matrix beside what is staged");
    assert_eq!(winner(world.commit(commit(0, 5, chunks))), 5);
    assert_eq!(world.foreign_pull(2), [f64::from(chunks); 2]);
    assert!(matches!(only(world.send(TOOL, add(1, spec("v", Consistency::Asp)))), Message::Done(_)));
}

#[test]
fn what_could_never_be_merged_is_refused_before_it_is_kept() {
    let mut world = World::session(config());
    let nan = staged(0, 5, 0, f64::NAN);
    let few = PushStaged { values: OwnedValues::F64(vec![1.0]), ..staged(0, 5, 0, 1.0) };
    let other = PushStaged { values: OwnedValues::F32(vec![1.0; 2]), ..staged(0, 5, 0, 1.0) };
    let away = PushStaged { keys: KeyList::Listed(vec![60, 10]), ..staged(0, 5, 0, 1.0) };
    let none = PushStaged { matrix: 4, ..staged(0, 5, 0, 1.0) };
    let last = PushStaged { token: u64::MAX, ..staged(0, 5, 0, 1.0) };
    for (push, kind) in [
        (nan, FaultKind::NonFinite),
        (few, FaultKind::Invalid),
        (other, FaultKind::Invalid),
        (away, FaultKind::Invalid),
        (none, FaultKind::NotFound),
        (last, FaultKind::Invalid),
    ] {
        let out = world.stage(push);
        assert_eq!(fault(&out).kind, kind, "{}", fault(&out).text);
        assert!(fault(&out).text.starts_with("staged push (matrix"), "{}", fault(&out).text);
    }
    assert_eq!(world.lane.staged_bytes(), 0);
}

#[test]
fn the_end_of_a_session_or_of_a_matrix_frees_what_is_staged() {
    let mut world = World::session(config());
    world.send(TOOL, add(1, spec("v", Consistency::Asp)));
    world.stage(staged(0, 5, 0, 1.0));
    let one = world.lane.staged_bytes();
    world.stage(PushStaged { matrix: 1, ..staged(0, 5, 0, 1.0) });
    world.send(TOOL, Message::DropMatrix(DropMatrix { request: 3, job: JOB, matrix: 1 }));
    assert_eq!(world.lane.staged_bytes(), one);
    let mut out = Vec::new();
    world.lane.on_closed(world.now, 1, &mut out);
    assert_eq!(world.lane.staged_bytes(), one, "an attempt may come back on another connection");
    let reason = "over".to_owned();
    world.send(TOOL, Message::CloseJob(CloseJob { request: 1, job: JOB, reason }));
    assert_eq!(world.lane.staged_bytes(), 0);
}

#[test]
fn open_tokens_are_bounded() {
    let mut world = World::session(config());
    for token in 0..1024 {
        assert_eq!(winner(world.commit(Commit { token, ..commit(0, 5, 0) })), 5);
    }
    let out = world.commit(Commit { token: 1024, ..commit(0, 5, 0) });
    assert_eq!(fault(&out).kind, FaultKind::TooLarge);
    assert!(fault(&out).text.contains("1024 tokens of one matrix are open"), "{}", fault(&out).text);
    world.close_token(0);
    assert_eq!(winner(world.commit(Commit { token: 1024, ..commit(0, 5, 0) })), 5);
}

proptest! {
    /// Two attempts at each of three parts send two chunks and a commit each, some of them several times, in any order.
    /// Each part with a complete commit counts once.
    #[test]
    fn any_order_of_attempts_counts_each_part_once(steps in prop::collection::vec((0u32..3, 5u64..7, 0u32..3), 1..60)) {
        let mut world = World::session(config());
        let mut expected = 0.0;
        let mut counts = [None; 3];
        let mut here = std::collections::BTreeSet::new();
        for (part, attempt, step) in steps {
            if step < 2 {
                let value = f64::from(1 << (4 * part + 2 * step));
                prop_assert!(is_done(world.stage(staged(part, attempt, step, value))));
                here.insert((part, attempt, step));
                continue;
            }
            let out = world.commit(commit(part, attempt, 2));
            let is_whole = (0..2).all(|chunk| here.contains(&(part, attempt, chunk)));
            let before = counts[part as usize];
            if before.is_none() && !is_whole {
                prop_assert_eq!(fault(&out).kind, FaultKind::Invalid);
                continue;
            }
            let first = *counts[part as usize].get_or_insert(attempt);
            if before.is_none() {
                expected += f64::from((1 << (4 * part)) + (1 << (4 * part + 2)));
            }
            prop_assert_eq!(winner(out), first);
        }
        prop_assert_eq!(world.foreign_pull(2), vec![expected; 2]);
        prop_assert!(world.close_token(1));
        prop_assert_eq!(world.lane.staged_bytes(), 0);
    }
}
