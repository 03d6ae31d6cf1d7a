//! The bytes of every kind of frame, the checksums, the digests of key lists and the hashes that place keys are those
//! of the files in `vectors/`, which clients in other languages are tested with. The tests write the files again and
//! compare them; they also decode each frame of the file.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "common/samples.rs"]
mod samples;

use std::fmt::Write;
use std::path::Path;

use math::hash::{mix64, named_key};
use matrix::{ElementType, FunctionTable, MatrixSpec, PushRule};
use rpc::Message;
use rpc::kind::Kind;
use rpc::limits::FrameLimits;
use rpc::message::{KeyList, PartitionRun};
use rpc::reader::FrameReader;
use samples::{KEYS, RUNS, samples};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn bytes_of(message: &Message, checksum: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    rpc::codec::put_frame(message, checksum, &FrameLimits::default(), &mut bytes).unwrap();
    bytes
}

/// Compares with the stored file; writes the actual text beside the other files of the test.
fn assert_kept(name: &str, text: &str) {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors").join(name);
    if std::fs::read_to_string(&kept).ok().as_deref() == Some(text) {
        return;
    }
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&made, text).unwrap();
    panic!(
        "vectors/{name} is not what the code makes, which is in {}: a change of bytes needs a new version",
        made.display()
    );
}

#[test]
fn the_frames_are_those_of_the_file() {
    let mut text = String::from("# name, then the frame in hexadecimal\n");
    for (name, message) in samples() {
        writeln!(text, "{name} {}", hex(&bytes_of(&message, true))).unwrap();
        if name == "push" {
            writeln!(text, "push_without_checksum {}", hex(&bytes_of(&message, false))).unwrap();
        }
    }
    assert_kept("frames.txt", &text);
}

/// Write-ahead logs have these messages, and older ones say `held`.
#[test]
fn partitions_of_older_logs_are_read() {
    fn is_read<M: Serialize + DeserializeOwned + PartialEq>(message: &M) -> bool {
        let mut value = serde_json::to_value(message).unwrap();
        let fields = value.as_object_mut().unwrap();
        let owned = fields.remove("owned_partitions").unwrap();
        fields.insert("held".to_owned(), owned);
        serde_json::from_value::<M>(value).unwrap() == *message
    }
    let read = samples().into_iter().filter(|(_, message)| match message {
        Message::OpenJob(open) => is_read(open),
        Message::AddMatrix(add) => is_read(add),
        _ => false,
    });
    assert!(read.count() >= 2);
}

#[test]
fn the_frames_of_the_file_are_read() {
    let kept = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/frames.txt"));
    let kept = kept.unwrap();
    let frames: Vec<(&str, &str)> =
        kept.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' ')).collect();
    for (name, message) in samples() {
        let (_, hex) = frames.iter().find(|(kept, _)| *kept == name).unwrap();
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
        let mut reader = FrameReader::new(FrameLimits::default(), bytes.len());
        reader.space()[..bytes.len()].copy_from_slice(&bytes);
        reader.advance(bytes.len());
        let frame = reader.frame().unwrap().unwrap();
        assert_eq!(Message::from_frame(frame).unwrap(), message, "{name}");
    }
}

#[test]
fn every_kind_has_a_sample() {
    let samples = samples();
    for kind in Kind::ALL {
        assert!(samples.iter().any(|(_, message)| Kind::of(message) == *kind), "{}", kind.name());
    }
}

#[test]
fn every_kind_is_in_the_document() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol.md");
    let text = std::fs::read_to_string(path).unwrap();
    for kind in Kind::ALL {
        let row = format!("\n| {} | {} |", *kind as u16, kind.name());
        assert!(text.contains(&row), "docs/protocol.md has no row {row:?}");
    }
    for kind in samples::FAULT_KINDS {
        let name = serde_json::to_value(kind).unwrap();
        let row = format!("\n| `{}` |", name.as_str().unwrap());
        assert!(text.contains(&row), "docs/protocol.md has no row {row:?}");
    }
}

#[test]
fn the_hashes_are_those_of_the_file() {
    let mut text = String::new();
    text.push_str("# CRC-32C (Castagnoli) of the bytes of a word\n");
    for word in ["", "123456789", "seraphim"] {
        writeln!(text, "crc32c {word:?} {:08x}", crc32c::crc32c(word.as_bytes())).unwrap();
    }
    text.push_str("# digest of a list of keys: runs as partition:count, keys, xxh3-128\n");
    let lists: [(&[PartitionRun], &[u64]); 3] = [(&[], &[]), (&RUNS[1..], &KEYS[2..]), (&RUNS, &KEYS)];
    for (runs, keys) in lists {
        let runs_text: Vec<String> =
            runs.iter().map(|run| format!("{}:{}", run.partition, run.count)).collect();
        writeln!(text, "digest {runs_text:?} {keys:?} {:032x}", KeyList::digest(runs, keys)).unwrap();
    }
    text.push_str("# mix64, and the partition by hash among 7\n");
    let spec = MatrixSpec::sparse("m", ElementType::F32, 1, PushRule::Add, 7);
    let placement = spec.placement(&FunctionTable::builtin()).expect("a good spec");
    for key in [0, 1, 2, 1_000_000_007, 1 << 40, (1 << 63) - 1] {
        writeln!(text, "mix64 {key} {:016x} {}", mix64(key), placement.partition_of(key)).unwrap();
    }
    text.push_str("# the key that stands for a value in a namespace\n");
    for (space, value) in [("", ""), ("city", "Rome"), ("site", "1fbe01fe")] {
        let key = named_key(space.as_bytes(), value.as_bytes());
        writeln!(text, "named_key {space:?} {value:?} {key:016x}").unwrap();
    }
    assert_kept("hashes.txt", &text);
}
