//! A session goes on after the death of the lane: what was acknowledged counts, and counts once.

use matrix::function::map::{Map, Scalar};
use matrix::{Consistency, FunctionCall, PushRule};
use rpc::Message;
use rpc::message::*;
use rpc::service::ConnectionId;

use super::super::functions::rows;
use super::super::sessions::{add, hello_of_session};
use super::super::staged::{commit, staged};
use super::super::world::*;
use crate::LaneState;
use crate::write_ahead::image::{self, LaneImage};

/// Opens the session and its matrices: one by row with an optimizer, one by column, one that is dropped later.
fn opening() -> Vec<(ConnectionId, Message)> {
    let (schedule, l1, l2) = (matrix::Schedule::Constant, 0.0, 0.0);
    let rule = PushRule::Momentum { rate: 0.5, momentum: 0.5, schedule, l1, l2 };
    let slots = matrix::MatrixSpec { rule, ..spec("slots", Consistency::Asp) };
    vec![
        (TOOL, Message::OpenJob(open(0, Vec::new()))),
        (TOOL, add(0, slots)),
        (TOOL, add(1, rows(Consistency::Asp))),
        (TOOL, add(2, spec("dropped", Consistency::Asp))),
    ]
}

/// What two connections of the session send.
fn requests() -> Vec<(ConnectionId, Message)> {
    let cached = || {
        let Push { runs, .. } = push(0, 0, 0, 0.0);
        (KeyList::Cached { digest: KeyList::digest(&runs, &[10, 60]), count: 2 }, runs)
    };
    let plain = |value| Message::Push(Push { request: 3, ..push(0, 0, 0, value) });
    let with_cached_keys = |value| {
        let (keys, runs) = cached();
        Message::Push(Push { runs, keys, request: 3, ..push(0, 0, 0, value) })
    };
    let function = |matrix, call| {
        Message::PushFunction(PushFunction {
            request: 3,
            job: JOB,
            task: 0,
            clock: 0,
            index: 0,
            matrix,
            calls: vec![call],
        })
    };
    let add_to_row = |value: f64| FunctionCall::push(&Scalar::Add, &[0], &[0], &value);
    let root = FunctionCall::push(&Map::Sqrt, &[0], &[0], &());
    let chunk = |part, attempt, number, value| Message::PushStaged(staged(part, attempt, number, value));
    vec![
        (1, plain(1.0)),
        (1, chunk(0, 5, 0, 2.0)),
        (2, chunk(0, 6, 0, 4.0)),
        (1, chunk(1, 5, 0, 8.0)),
        (1, function(1, add_to_row(-2.0))),
        // It fails.
        (1, function(1, root)),
        (1, Message::Commit(commit(0, 5, 1))),
        (1, with_cached_keys(0.5)),
        (2, Message::Batch(Batch { request: 4, messages: vec![plain(1.5), chunk(2, 5, 0, 16.0)] })),
        (TOOL, Message::DropMatrix(DropMatrix { request: 9, job: JOB, matrix: 2 })),
        (2, Message::Commit(commit(0, 6, 1))),
        (
            1,
            Message::CommitFunction(CommitFunction {
                request: 8,
                job: JOB,
                matrix: 1,
                token: 3,
                part: 0,
                attempt: 9,
                calls: vec![add_to_row(7.0)],
            }),
        ),
        (1, Message::Commit(commit(2, 5, 1))),
        (1, Message::CloseToken(CloseToken { request: 3, job: JOB, matrix: 0, token: 1 })),
    ]
}

/// What tells two lanes apart: all rows with their slots, and the answers to requests that are repeated.
fn observed(world: &mut World) -> Vec<String> {
    let exports =
        [0, 1].map(|matrix| Message::Export(Export { request: 1, job: JOB, matrix, from: 0, skip: 0 }));
    let seen = exports.into_iter().map(|export| (TOOL, export));
    let repeats = [
        Message::Commit(commit(0, 6, 1)),
        Message::Commit(commit(1, 5, 1)),
        Message::PushStaged(staged(2, 5, 0, 16.0)),
        Message::Commit(commit(2, 5, 1)),
    ];
    let all = seen.chain(repeats.into_iter().map(|repeat| (1, repeat)));
    let mut texts: Vec<String> = all.map(|(at, message)| format!("{:?}", world.send(at, message))).collect();
    let matrices = world.lane.jobs[&JOB].matrices.iter();
    texts.push(format!("{:?}", matrices.map(|m| (&m.spec().name, m.row_count())).collect::<Vec<_>>()));
    texts
}

/// A world with a session that has done the first `count` requests. The lane dies after them, and its log begins with an
/// image after `image_at` of them.
fn after(count: usize, image_at: Option<usize>, dies: bool) -> World {
    let mut lane = LaneState::new(config());
    lane.start_recording();
    let mut world = World { lane, now: std::time::Duration::ZERO, effects: Vec::new() };
    world.send(TOOL, super::hello_of(Role::Tool));
    for (at, message) in opening() {
        world.send(at, message);
    }
    for at in [1, 2] {
        world.send(at, hello_of_session(JOB));
    }
    let mut image = None;
    for (i, (at, message)) in requests().into_iter().take(count).enumerate() {
        if image_at == Some(i) {
            let mut bytes = Vec::new();
            LaneImage::of(&world.lane).expect("no function waits").write(&mut bytes).unwrap();
            image = Some(bytes);
            world.lane.take_recorded();
            world.lane.forget_recorded_key_lists();
        }
        world.send(at, message);
    }
    if dies {
        let log = world.lane.take_recorded();
        let mut lane = LaneState::new(config());
        if let Some(bytes) = image {
            image::restore(&bytes[..], &mut lane).expect("the image is whole");
        }
        lane.replay(&log).expect("the log is whole");
        world.lane = lane;
        world.send(TOOL, super::hello_of(Role::Tool));
        for at in [1, 2] {
            world.send(at, hello_of_session(JOB));
        }
    }
    world
}

#[test]
fn a_session_goes_on_after_each_request_with_an_image_at_any_moment() {
    for count in 0..=requests().len() {
        let expected = observed(&mut after(count, None, false));
        assert_eq!(observed(&mut after(count, None, true)), expected, "dead after {count} requests");
        for image_at in 0..count {
            let seen = observed(&mut after(count, Some(image_at), true));
            assert_eq!(seen, expected, "dead after {count} requests, with an image after {image_at}");
        }
    }
}

#[test]
fn a_damaged_image_is_refused_whatever_byte_is_changed() {
    let image = LaneImage::of(&after(9, None, false).lane).expect("no function waits");
    let mut whole = Vec::new();
    assert_eq!(image.write(&mut whole).unwrap(), whole.len() as u64);
    image::restore(&whole[..], &mut LaneState::new(config())).expect("it is whole");
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        let restored = image::restore(&damaged[..], &mut LaneState::new(config()));
        restored.expect_err("the byte is noticed");
    }
    for length in [0, 7, 11, 40, whole.len() - 1] {
        let restored = image::restore(&whole[..length], &mut LaneState::new(config()));
        restored.expect_err("the end is missing");
    }
}
