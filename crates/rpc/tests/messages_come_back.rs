//! Any message is decoded as it was encoded, however its bytes are split; any other bytes give an error and nothing
//! worse. The tests send random messages through the codec, split the stream at every byte, flip every bit of a frame,
//! and decode random bytes.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "common/samples.rs"]
mod samples;

use matrix::{FunctionCall, OwnedValues, PartialAnswer};
use proptest::collection::vec;
use proptest::prelude::*;
use rpc::limits::FrameLimits;
use rpc::message::{
    Barrier, ExportPage, Fault, FaultKind, Hello, KeyList, PartitionRun, Pull, Pulled, PulledFunction, Push,
    PushFunction, PushPosition, Role,
};
use rpc::reader::FrameReader;
use rpc::{Error, Message, WireType, WireValues};

/// The sample of this name.
fn message_of(sample: &str) -> Message {
    samples::samples().into_iter().find(|(name, _)| *name == sample).unwrap().1
}

fn bytes_of(message: &Message, checksum: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    rpc::codec::put_frame(message, checksum, &FrameLimits::default(), &mut bytes).unwrap();
    bytes
}

/// Decodes all messages in `bytes`, which arrive in pieces of the lengths `pieces`, repeated as often as needed.
fn read(bytes: &[u8], pieces: &[usize], buffer: usize) -> Result<Vec<Message>, Error> {
    let mut reader = FrameReader::new(FrameLimits::default(), buffer);
    let (mut messages, mut at, mut piece) = (Vec::new(), 0, 0);
    loop {
        while let Some(frame) = reader.frame()? {
            messages.push(Message::from_frame(frame)?);
        }
        if at == bytes.len() {
            return Ok(messages);
        }
        let space = reader.space();
        let count = pieces[piece % pieces.len()].min(space.len()).min(bytes.len() - at);
        space[..count].copy_from_slice(&bytes[at..at + count]);
        reader.advance(count);
        (at, piece) = (at + count, piece + 1);
    }
}

fn values() -> impl Strategy<Value = OwnedValues> {
    prop_oneof![
        vec(-1e30f32..1e30, 0..5000).prop_map(OwnedValues::F32),
        vec(-1e300f64..1e300, 0..3000).prop_map(OwnedValues::F64),
        vec(any::<i64>(), 0..3000).prop_map(OwnedValues::I64),
        vec(any::<i32>(), 0..3000).prop_map(OwnedValues::I32),
        vec(prop_oneof![9 => Just(0), 1 => -3i32..4], 0..3000).prop_map(OwnedValues::I32),
        vec(any::<u32>(), 0..3000).prop_map(OwnedValues::U32),
    ]
}

fn runs_and_keys() -> impl Strategy<Value = (Vec<PartitionRun>, KeyList)> {
    let runs = vec((any::<u32>(), 0u32..400), 0..6);
    (runs, 0..3, any::<u64>(), any::<u128>()).prop_map(|(runs, form, start, digest)| {
        let runs: Vec<PartitionRun> =
            runs.into_iter().map(|(partition, count)| PartitionRun { partition, count }).collect();
        let count: u32 = runs.iter().map(|run| run.count).sum();
        let keys = match form {
            0 => KeyList::Listed((0..u64::from(count)).map(|key| key.wrapping_mul(start)).collect()),
            1 => KeyList::Range { start: start >> 1, end: (start >> 1) + u64::from(count) },
            _ => KeyList::Cached { digest, count },
        };
        (runs, keys)
    })
}

/// As many calls as runs.
fn calls(runs: &[PartitionRun], argument: Vec<u8>) -> Vec<FunctionCall> {
    let name = String::from_utf8_lossy(&argument).into_owned();
    let from: Vec<u32> = runs.iter().map(|run| run.partition).collect();
    let into = from[from.len() / 2..].to_vec();
    vec![FunctionCall { name, version: 3, from, into, argument }; runs.len()]
}

fn parts(runs: &[PartitionRun], bytes: &[u8]) -> Vec<PartialAnswer> {
    runs.iter().map(|run| PartialAnswer { partition: run.partition, bytes: bytes.to_vec() }).collect()
}

fn messages() -> impl Strategy<Value = Message> {
    let numbers = (any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>(), any::<u32>());
    let bulk = (values(), runs_and_keys(), vec(any::<u8>(), 0..100));
    let samples: Vec<Message> = samples::samples().into_iter().map(|(_, message)| message).collect();
    let others = proptest::sample::select(samples);
    (0..10, numbers, bulk, others).prop_map(|(which, (request, clock, job, task, index), bulk, other)| {
        let (values, (runs, keys), token) = bulk;
        let (matrix, table, applied) = (index, job, PushPosition { clock, index });
        let wire = [WireType::F32, WireType::Bf16, WireType::Int8, WireType::Packed][index as usize % 4];
        match which {
            0 => {
                let values = WireValues::encode(values, wire);
                Message::Push(Push { request, job, task, clock, index, matrix, table, runs, keys, values })
            }
            1 => Message::Pull(Pull {
                request,
                job,
                task,
                clock,
                matrix,
                table,
                wait_ms: index,
                runs,
                keys,
                wire,
            }),
            2 => {
                let values = WireValues::encode(values, wire);
                Message::Pulled(Pulled { request, minimum: clock, deferred_ns: request, applied, values })
            }
            3 => Message::Hello(Hello { request, token, role: Role::Task { job, task }, lane: index as u16 }),
            4 => {
                let part = (index % 2 == 0).then(|| vec![f64::from(task); token.len()]);
                let (wait_ms, generation) = (index, clock);
                Message::Barrier(Barrier { request, job, task, clock, wait_ms, generation, part })
            }
            5 => {
                let text = String::from_utf8_lossy(&token).into_owned();
                Message::Fault(Fault { request, kind: FaultKind::Internal, text, retry_after_ms: index })
            }
            6 => Message::ExportPage(ExportPage {
                request,
                row_count: clock,
                nonzero_count: clock / 2,
                next: clock.checked_sub(3),
                next_skip: 0,
                keys: vec![clock; 9],
                values,
            }),
            7 => {
                let calls = calls(&runs, token);
                Message::PushFunction(PushFunction { request, job, task, clock, index, matrix, calls })
            }
            8 => {
                let parts = parts(&runs, &token);
                Message::PulledFunction(PulledFunction {
                    request,
                    minimum: clock,
                    deferred_ns: 1,
                    applied,
                    parts,
                })
            }
            _ => other,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_message_comes_back_however_it_is_cut(
        sent in vec(messages(), 1..5),
        checksum in any::<bool>(),
        pieces in vec(1usize..20_000, 1..6),
        buffer in 64usize..70_000,
    ) {
        let bytes: Vec<u8> = sent.iter().flat_map(|message| bytes_of(message, checksum)).collect();
        prop_assert_eq!(read(&bytes, &pieces, buffer).unwrap(), sent);
    }

    #[test]
    fn random_bytes_are_an_error(bytes in vec(any::<u8>(), 4..300)) {
        prop_assume!(&bytes[..4] != b"SRPH");
        prop_assert!(read(&bytes, &[7], 64).is_err());
    }

    #[test]
    fn a_frame_of_random_fields_does_no_harm(
        kind in 0u16..30,
        flags in 0u32..256,
        lengths in (0u32..40, 0u32..4, 0u32..4),
        body in vec(any::<u8>(), 200),
    ) {
        let mut bytes = bytes_of(&samples::samples()[0].1, false);
        bytes[6..8].copy_from_slice(&kind.to_le_bytes());
        bytes[8..12].copy_from_slice(&(flags & !1).to_le_bytes());
        for (at, length) in [(40, lengths.0), (44, lengths.1), (48, lengths.2)] {
            bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
        }
        let sum = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&sum.to_le_bytes());
        bytes.truncate(64);
        bytes.extend(body);
        let _ = read(&bytes, &[1000], 1000);
    }
}

#[test]
fn every_sample_comes_back_byte_by_byte() {
    for (name, message) in samples::samples() {
        for checksum in [true, false] {
            let back = read(&bytes_of(&message, checksum), &[1], 64).unwrap();
            assert_eq!(back, std::slice::from_ref(&message), "{name}");
        }
    }
}

#[test]
fn the_length_of_a_frame_is_known_without_writing_it() {
    let sized = ["pull", "pulled", "push", "released", "barrier", "batch", "import", "function"];
    for (name, message) in samples::samples() {
        let kind = message.kind_name();
        let length = bytes_of(&message, true).len() as u64;
        if sized.iter().any(|part| kind.contains(part)) {
            assert_eq!(message.frame_bytes(), length, "{name}");
        } else {
            assert!((64..=length).contains(&message.frame_bytes()), "{name}");
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_is_noticed() {
    for (name, message) in samples::samples() {
        let bytes = bytes_of(&message, true);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let result = read(&damaged, &[bytes.len()], bytes.len());
            assert!(result.is_err() || result.is_ok_and(|read| read.is_empty()), "{name}, bit {bit}");
        }
    }
}

#[test]
fn lengths_beyond_a_limit_are_refused_before_anything_is_allocated() {
    // For a pull: meta, keys. For an answer: values.
    for (sample, at) in [
        ("pull_listed", 40),
        ("pull_listed", 44),
        ("pulled_f64", 48),
        ("pulled_bf16", 48),
        ("push_int8", 48),
        ("released", 48),
    ] {
        let message = message_of(sample);
        let mut bytes = bytes_of(&message, true);
        bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        let sum = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&sum.to_le_bytes());
        let error = read(&bytes, &[1000], 1000).unwrap_err();
        assert!(matches!(error, Error::TooLong { .. }), "{error}");
    }
}

#[test]
fn a_message_that_is_too_long_is_not_written() {
    let values = OwnedValues::F64(vec![0.0; (9 << 20) as usize]);
    let values = values.into();
    let message = Message::Pulled(Pulled {
        request: 1,
        minimum: 0,
        deferred_ns: 0,
        applied: PushPosition::default(),
        values,
    });
    let mut bytes = vec![1];
    let result = rpc::codec::put_frame(&message, true, &FrameLimits::default(), &mut bytes);
    assert!(matches!(result, Err(Error::TooLong { section: "values", .. })), "{result:?}");
    assert_eq!(bytes, [1]);
}

#[test]
fn an_argument_that_is_too_long_is_neither_written_nor_read() {
    let limits = FrameLimits::default();
    let mut message = message_of("push_function");
    if let Message::PushFunction(push) = &mut message {
        push.calls[0].argument = vec![0; limits.function_bytes as usize];
    }
    let result = rpc::codec::put_frame(&message, false, &limits, &mut Vec::new());
    assert!(
        matches!(result, Err(Error::TooLong { kind: "PushFunction", section: "meta", .. })),
        "{result:?}"
    );
    let mut header = rpc::header::Header::new(rpc::kind::Kind::PullFunction);
    header.meta_len = 1;
    assert!(header.check_lengths(&limits).is_ok());
    assert!(
        header.check_lengths(&FrameLimits::unauthenticated()).is_err(),
        "who has not said hello calls nothing"
    );
}

#[test]
fn unknown_numbers_are_errors_that_say_what_and_where() {
    let change = |sample: &str, at: usize, value: u8| {
        let message = message_of(sample);
        let mut bytes = bytes_of(&message, false);
        bytes[at] = value;
        let sum = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&sum.to_le_bytes());
        read(&bytes, &[1000], 1000).unwrap_err().to_string()
    };
    for (sample, at, value, expected) in [
        ("tick", 6, 99, "frame kind 99 is unknown, kinds are 1 to 44"),
        ("tick", 6, 0, "frame kind 0 is unknown"),
        ("tick", 4, 3, "protocol version 3, this process uses 2"),
        ("tick", 8, 128, "frame Tick: flags is 128"),
        ("tick", 10, 1, "frame Tick: flags is 65536"),
        ("pulled_packed", 80, 0, "frame Pulled: packed values is other bytes, expected a count"),
        ("pull_listed", 8, 16, "frame Pull: type of values is 1, expected 0 exact, 3 bf16, 4 int8, 7 packed"),
        ("tick", 8, 48, "frame Tick: type of values is 3, expected 0: this kind has none"),
        (
            "import",
            8,
            48,
            "frame Import: type of values is 3, expected 0 to 2, 5 or 6: this kind has exact values only",
        ),
        ("released", 8, 64, "frame Released: type of values is 4, expected 0 to 2"),
        ("pulled_bf16", 86, 1, "frame Pulled: padding is not zero"),
        ("push_int8", 127, 1, "frame Push: padding is not zero"),
        ("tick", 36, 1, "frame Tick: matrix is 1, expected 0"),
        ("tick", 40, 8, "frame Tick: length of meta is 8, expected 0"),
        ("barrier_without_part", 8, 0, "frame Barrier: type of values is F32, expected F64"),
        ("pull_listed", 76, 3, "frame Pull: form of keys is 3"),
        ("pull_listed", 68, 1, "frame Pull: reserved is 1, expected 0"),
        ("pull_listed", 80, 3, "frame Pull: meta has 40 bytes, runs ends at 48"),
        ("pull_listed", 92, 9, "frame Pull: sum of the runs is 10, expected 3, the number of keys"),
        ("hello_tool", 64, 6, "frame Hello: role is 6"),
        ("hello_session", 32, 1, "frame Hello: task is 1, expected 0: only the role task has one"),
        ("committed", 32, 1, "frame Committed: task is 1, expected 0"),
        ("import", 64, 4, "frame Import: bits is 4"),
        ("pull_function", 68, 1, "frame PullFunction: reserved is 1, expected 0"),
        ("pull_function", 76, 200, "frame PullFunction: meta has 43 bytes, name of a function ends at 232"),
        ("pull_function", 80, 9, "frame PullFunction: meta has 43 bytes, rows read ends at 71"),
        ("pull_function", 80, 1, "frame PullFunction: meta has 43 bytes, argument ends at 39"),
        ("pull_function", 88, 1, "frame PullFunction: meta has 43 bytes, argument ends at 44"),
        (
            "pull_function",
            95,
            255,
            "frame PullFunction: meta has 43 bytes, argument ends at 18374686479671623723",
        ),
        (
            "pull_function",
            96,
            255,
            "frame PullFunction: name of a function is \"\u{fffd}ot\", expected UTF-8",
        ),
        ("push_function", 64, 3, "frame PushFunction: meta has"),
        ("push_function", 64, 1, "frame PushFunction: meta has"),
        ("push_function", 68, 1, "frame PushFunction: reserved is 1, expected 0"),
        ("try_function", 64, 2, "frame TryFunction: meta has"),
        ("commit_function", 72, 2, "frame CommitFunction: meta has"),
        ("commit_function", 76, 1, "frame CommitFunction: reserved is 1, expected 0"),
        ("pulled_function", 80, 3, "frame PulledFunction: meta has 59 bytes, partition ends at 63"),
        ("pulled_function", 96, 40, "frame PulledFunction: meta has 59 bytes, part ends at 80"),
        ("pulled_f32", 92, 1, "frame Pulled: padding is not zero"),
        ("fault", 64, b'!', "frame Fault: its JSON cannot be read"),
    ] {
        let error = change(sample, at, value);
        assert!(error.contains(expected), "{sample} at {at}: {error}");
    }
}

#[test]
fn a_number_that_is_left_out_where_it_is_0_has_no_other_form() {
    for (sample, at, expected) in [
        (
            "import_with_row_count",
            72,
            "frame Import: number of rows is 0, expected a number above 0: 0 is left out",
        ),
        ("keep_rows_with_changes", 64, "frame KeepRows: flags is 0, expected a number above 0"),
        ("scan_changed_rows", 72, "frame ScanRows: flags is 0, expected a number above 0"),
    ] {
        let message = message_of(sample);
        let mut bytes = bytes_of(&message, false);
        assert_ne!(bytes[at..at + 8], [0; 8], "{sample}");
        bytes[at..at + 8].fill(0);
        let error = read(&bytes, &[1000], 1000).unwrap_err().to_string();
        assert!(error.contains(expected), "{sample}: {error}");
        if sample != "import_with_row_count" {
            bytes[at] = 2;
            let error = read(&bytes, &[1000], 1000).unwrap_err().to_string();
            assert!(error.contains("flags is 2, expected 1, or none"), "{sample}: {error}");
        }
    }
}

/// Decodes a batch with these bytes.
fn batch_of(frames: &[u8]) -> Result<Vec<Message>, Error> {
    let mut header = rpc::header::Header::new(rpc::kind::Kind::Batch);
    header.meta_len = frames.len() as u32;
    let bytes = [&header.to_bytes(), frames].concat();
    read(&bytes, &[1000], 1000)
}

#[test]
fn a_batch_holds_no_batch_no_half_and_not_too_much() {
    let error = |frames: &[u8]| batch_of(frames).unwrap_err().to_string();
    let renew = Message::RenewSession(rpc::message::RenewSession { request: 1, job: 2 });
    let one = bytes_of(&renew, true);
    assert!(
        matches!(&batch_of(&one).unwrap()[..], [Message::Batch(batch)] if batch.messages == [renew.clone()])
    );

    let inner = bytes_of(&Message::Batch(rpc::message::Batch { request: 1, messages: vec![] }), false);
    let text = error(&inner);
    assert!(text.contains("frame Batch: kind of a frame in it is Batch"), "{text}");
    let hello = message_of("hello_tool");
    let text = error(&bytes_of(&hello, false));
    assert!(text.contains("kind of a frame in it is Hello"), "{text}");

    let text = error(&[&one[..], &one[..40]].concat());
    assert!(text.contains("frame Batch: meta has 40 bytes, a frame in it ends at 64"), "{text}");
    let pull = message_of("pull_listed");
    let cut = bytes_of(&pull, false);
    assert!(error(&cut[..cut.len() - 8]).contains("a frame in it ends at"));
    let mut damaged = bytes_of(&pull, true);
    *damaged.last_mut().unwrap() ^= 1;
    assert!(matches!(batch_of(&damaged), Err(Error::Checksum { part: "the body", .. })));

    assert!(
        matches!(&batch_of(&one.repeat(256)).unwrap()[..], [Message::Batch(batch)] if batch.messages.len() == 256)
    );
    let text = error(&one.repeat(257));
    assert!(text.contains("number of frames in it is 257, expected at most 256"), "{text}");
    let limits = FrameLimits::default();
    let mut header = rpc::header::Header::new(rpc::kind::Kind::Batch);
    header.meta_len = limits.batch_bytes as u32 + 8;
    assert!(matches!(header.check_lengths(&limits), Err(Error::TooLong { kind: "Batch", .. })));
}
