//! What is fuzzed: every parser of bytes that come from outside. A target is a function of bytes that panics when a
//! promise breaks; the promise is stated on it. `cargo xtask fuzz` looks for such bytes, `cargo test` (here in `fuzz/`)
//! replays the kept corpus.

use std::collections::BTreeMap;
use std::path::Path;

use checkpoint::PartReader;
use checkpoint::block::BlockWriter;
use data::{Batch, FormatOptions, FormatTable, Input, Source, SourceConfig};
use matrix::{ElementType, MatrixSpec, PushRule};
use model::manifest::Manifest;
use model::tensors::{self, TensorInfo};

/// A target by name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("arrow", arrow),
    ("block", block),
    ("checkpoint", checkpoint),
    ("csv", csv),
    ("dense", dense),
    ("frame", frame),
    ("libffm", libffm),
    ("libsvm", libsvm),
    ("manifest", manifest),
    ("parquet", parquet),
    ("safetensors", safetensors),
    ("uci_bags", uci_bags),
    ("vw", vw),
];

/// Records of a batch from tables: so few that lists go on from batch to batch.
const TABLE_BATCH_SIZE: usize = 3;

/// Where the checked part of a block begins; its checksum stands in the four bytes before.
const BLOCK_CHECKED_FROM: usize = 8;

/// Any bytes read as libsvm are well-formed batches or an error.
pub fn libsvm(bytes: &[u8]) {
    read("libsvm", bytes);
}

/// Any bytes read as libffm are well-formed batches or an error.
pub fn libffm(bytes: &[u8]) {
    read("libffm", bytes);
}

/// Any bytes read as bags of words are well-formed batches or an error.
pub fn uci_bags(bytes: &[u8]) {
    read("uci_bags", bytes);
}

/// Any bytes read as dense text are well-formed batches or an error.
pub fn dense(bytes: &[u8]) {
    read("dense", bytes);
}

/// Any bytes read as CSV are well-formed batches or an error.
pub fn csv(bytes: &[u8]) {
    read("csv", bytes);
}

/// Any bytes read as VW text are well-formed batches or an error.
pub fn vw(bytes: &[u8]) {
    read("vw", bytes);
}

/// Any bytes read as Parquet are well-formed batches or an error. Panics of the Parquet library are caught, and kept quiet,
/// by our reader, so libFuzzer does not end at them.
pub fn parquet(bytes: &[u8]) {
    table("parquet", bytes);
}

/// Any bytes read as an Arrow IPC file or stream are well-formed batches or an error. Panics of the Arrow library are
/// caught, as those of the Parquet library are.
pub fn arrow(bytes: &[u8]) {
    table("arrow", bytes);
}

fn table(format: &str, bytes: &[u8]) {
    let usual = FormatOptions::default();
    let other = FormatOptions {
        keep_zeros: true,
        has_label: false,
        weight: Some("0".to_owned()),
        group: Some("1".to_owned()),
        ..FormatOptions::default()
    };
    for options in [usual, other] {
        let format = Some(format.to_owned());
        let _ = read_in_small_batches(bytes, &SourceConfig { format, options, ..SourceConfig::default() });
    }
}

fn read_in_small_batches(bytes: &[u8], config: &SourceConfig) -> Result<(), data::Error> {
    let files = vec![Input::memory("bytes", bytes)?];
    let source = Source::from_inputs(files, config, None, &FormatTable::builtin())?;
    let mut reader = source.reader(source.splits(1).remove(0))?;
    let mut batch = Batch::default();
    while reader.next_batch(TABLE_BATCH_SIZE, &mut batch)? {
        assert_well_formed(&batch);
    }
    Ok(())
}

/// Any bytes are a block that decodes to a well-formed batch, which is encoded and decoded to itself, or an error. Tried
/// as they are, and with the checksum made right, so that what lies behind it is reached too.
pub fn block(bytes: &[u8]) {
    let mut sealed = bytes.to_vec();
    if let Some((head, body)) = sealed.split_at_mut_checked(BLOCK_CHECKED_FROM) {
        head[4..].copy_from_slice(&crc32c::crc32c(body).to_le_bytes());
    }
    let mut batch = Batch::default();
    for bytes in [bytes, &sealed] {
        if data::block::decode(bytes, &mut batch).is_err() {
            continue;
        }
        assert_well_formed(&batch);
        let (mut again, mut decoded) = (Vec::new(), Batch::default());
        data::block::encode(&batch, &mut again);
        data::block::decode(&again, &mut decoded).expect("what was encoded is decoded");
        assert_eq!(bits(&decoded), bits(&batch), "a block round trip changed the batch");
    }
}

/// Any bytes are frames of messages, each of which is written to the same bytes again, or an error, however they are cut.
/// Tried as they are, and with the checksum of the first header made right and that of its body left out.
pub fn frame(bytes: &[u8]) {
    let mut sealed = bytes.to_vec();
    if let Some(header) = sealed.first_chunk_mut::<{ rpc::header::HEADER_BYTES }>() {
        header[8] &= !1;
        header[56..60].fill(0);
        let sum = crc32c::crc32c(&header[..60]);
        header[60..].copy_from_slice(&sum.to_le_bytes());
    }
    let small = rpc::FrameLimits {
        keys_bytes: 1 << 16,
        values_bytes: 1 << 16,
        meta_bytes: 1 << 16,
        sum_bytes: 1 << 16,
        control_bytes: 1 << 16,
        batch_bytes: 1 << 16,
        function_bytes: 1 << 16,
    };
    for bytes in [bytes, &sealed] {
        let whole = frames(bytes, small, bytes.len().max(1));
        let cut = frames(bytes, small, 1 + bytes.len() % 7);
        assert_eq!(whole, cut, "the cut of the stream changed what was read");
    }
}

/// The bytes of all frames that are read until the end or an error, as they are written again.
fn frames(bytes: &[u8], limits: rpc::FrameLimits, piece: usize) -> Vec<Vec<u8>> {
    let mut reader = rpc::reader::FrameReader::new(limits, 0);
    let (mut written, mut rest) = (Vec::new(), bytes);
    loop {
        loop {
            let frame = match reader.frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(_) => return written,
            };
            let header = frame.header;
            let Ok(message) = rpc::Message::from_frame(frame) else { return written };
            let mut again = Vec::new();
            let limits = rpc::FrameLimits::default();
            rpc::codec::put_frame(&message, header.checksum, &limits, &mut again)
                .expect("what was read is short enough to be written");
            let uses = header.kind.uses();
            if !uses.has(rpc::kind::Uses::JSON) && !uses.has(rpc::kind::Uses::FRAMES) {
                // Readable bodies may be spaced and ordered otherwise, also inside a batch.
                let bytes = header.to_bytes();
                assert_eq!(again[..bytes.len()], bytes, "a frame round trip changed the header");
            }
            match message {
                rpc::Message::Push(push) => drop(push.values.into_values()),
                rpc::Message::Pulled(pulled) => drop(pulled.values.into_values()),
                _ => {}
            }
            written.push(again);
        }
        let space = reader.space();
        let count = piece.min(space.len()).min(rest.len());
        if count == 0 {
            return written;
        }
        space[..count].copy_from_slice(&rest[..count]);
        reader.advance(count);
        rest = &rest[count..];
    }
}

/// Any bytes begin with a header of tensors, which is written and read as itself, or are refused.
pub fn safetensors(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk() else { return };
    let length = u64::from_le_bytes(*length);
    if length > rest.len() as u64 {
        return;
    }
    let (text, data) = rest.split_at(length as usize);
    let Ok(read) = tensors::entries(text, data.len() as u64) else { return };
    let once = written(&read);
    let again = tensors::entries(&once[8..], data.len() as u64).expect("what was written is read");
    assert_eq!(once, written(&again), "a round trip changed the header");
}

fn written(entries: &BTreeMap<String, TensorInfo>) -> Vec<u8> {
    let mut order: Vec<_> = entries.iter().collect();
    order.sort_by_key(|(_, info)| info.data_offsets);
    let list = order.iter().map(|(name, info)| {
        let (start, end) = info.data_offsets;
        (name.as_str(), info.dtype, info.shape.clone(), (end - start) as u64)
    });
    tensors::header(list).expect("texts and numbers are always JSON")
}

/// Any bytes are a manifest or an error that names the file. Tried as they are, and with their checksum added.
pub fn manifest(bytes: &[u8]) {
    let path = Path::new("out/model.json");
    let mut sealed = bytes.to_vec();
    sealed.extend(format!(",\n  \"crc32c\": \"{:08x}\"\n}}\n", crc32c::crc32c(bytes)).into_bytes());
    for bytes in [bytes, &sealed] {
        if let Err(error) = Manifest::from_bytes(bytes, path) {
            assert!(error.to_string().contains("model.json"), "the error does not name the file: {error}");
        }
    }
}

/// Any bytes are a file of a checkpoint, the content of one of its blocks, and a manifest of a checkpoint, or an error that
/// names the place. The content and the manifest are tried with their checksums added.
pub fn checkpoint(bytes: &[u8]) {
    let specs = [MatrixSpec::sparse("weights", ElementType::F32, 2, PushRule::Add, 4)];
    let mut block = BlockWriter::new(Vec::new()).expect("memory can be written");
    let (kind, content) = bytes.split_first().unwrap_or((&0, &[]));
    block.write(1 + u32::from(kind % 4), &[content]).expect("memory can be written");
    let (block, _) = block.finish().expect("memory can be written");
    for bytes in [bytes, &block] {
        let read = PartReader::new(bytes, &specs, "folder", "part").and_then(|mut reader| {
            while reader.read()?.is_some() {}
            Ok(())
        });
        if let Err(error) = read {
            assert!(error.to_string().contains("folder/part"), "the error does not name the file: {error}");
        }
    }
    let line: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != b'\n').collect();
    let sealed = [&line[..], format!("\ncrc32c {:08x}\n", crc32c::crc32c(&line)).as_bytes()].concat();
    for bytes in [bytes, &sealed] {
        if let Err(error) = checkpoint::Manifest::from_text(bytes, "folder", "manifest") {
            assert!(error.to_string().contains("folder/manifest"), "the error does not name the file: {error}");
        }
    }
}

/// Reads with the defaults, and with everything switched the other way.
fn read(format: &str, bytes: &[u8]) {
    let usual = FormatOptions::default();
    let other = FormatOptions {
        header: Some(false),
        keep_zeros: true,
        group: (format == "libsvm").then(|| "qid".to_owned()),
        weight: (format == "csv").then(|| "1".to_owned()),
        interactions: match format {
            "vw" => vec![vec!["a".to_owned(), "f".to_owned()]],
            "libffm" => vec![vec!["0".to_owned(), "1".to_owned()]],
            _ => Vec::new(),
        },
        ..FormatOptions::default()
    };
    for options in [usual, other] {
        if let Ok(batches) = data::read_bytes(format, &options, bytes) {
            batches.iter().for_each(assert_well_formed);
        }
    }
}

/// What every user of a batch relies on.
fn assert_well_formed(batch: &Batch) {
    let (records, entries) = (batch.record_count(), batch.entry_count());
    assert_eq!(batch.offsets.len(), records + 1);
    assert_eq!(batch.offsets[0], 0);
    assert_eq!(batch.offsets[records] as usize, entries);
    assert!(batch.offsets.windows(2).all(|pair| pair[0] <= pair[1]), "offsets fall");
    assert!(batch.columns.windows(2).all(|pair| pair[0] < pair[1]), "columns do not rise");
    assert!(
        batch.indices.iter().all(|&index| (index as usize) < batch.columns.len()),
        "an index without a column"
    );
    for (name, length, full) in [
        ("values", batch.values.len(), entries),
        ("fields", batch.fields.len(), entries),
        ("weights", batch.weights.len(), records),
        ("groups", batch.groups.len(), records),
    ] {
        assert!(length == 0 || length == full, "{length} {name} for {full}");
    }
}

/// A batch with floats as bits, so that equality is exact and NaN equals itself.
fn bits(batch: &Batch) -> impl PartialEq + std::fmt::Debug + use<> {
    let of = |floats: &[f32]| floats.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    (
        batch.labels.iter().map(|x| x.to_bits()).collect::<Vec<u64>>(),
        [of(&batch.weights), of(&batch.values)],
        [batch.offsets.clone(), batch.indices.clone(), batch.fields.clone()],
        [batch.groups.clone(), batch.columns.clone()],
    )
}
