//! Damaged files give an error or records, and take little memory.

use math::random::{Purpose, stream};
use parquet::basic::Encoding;
use parquet::file::properties::WriterProperties;

use super::{Batch, Case, Raw, corpus, entries, write_with};

/// Memory limit for all tests of this binary together.
const MEMORY_LIMIT_KB: u64 = 1 << 20;

/// Mutants of all files together: as many as one second of CI allows.
const MUTANTS: usize = 1500;

/// Returns the peak memory of this process so far, or 0 where the system does not report it.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}

fn names() -> Vec<String> {
    let files = std::fs::read_dir(super::corpus_folder()).unwrap();
    let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Changes a few bytes: single bits, or values that are likely to cause errors.
fn mutate(bytes: &mut Vec<u8>, random: &mut math::random::RandomStream) {
    for _ in 0..=random.below(3) {
        let length = bytes.len() as u64;
        let at = random.below(length) as usize;
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = 0xff,
            2 => bytes[at] = 0,
            3 => bytes[at] = random.below(256) as u8,
            4 => {
                let end = (at + 5).min(bytes.len());
                bytes[at..end].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0x0f][..end - at]);
            }
            _ => drop(bytes.remove(at)),
        }
        if bytes.is_empty() {
            return;
        }
    }
}

#[test]
fn mutants_of_files_are_errors_or_records_and_take_little_memory() {
    let count = std::env::var("PARQUET_MUTANTS").ok().and_then(|text| text.parse().ok()).unwrap_or(MUTANTS);
    let (names, mut random) = (names(), stream(1, Purpose::Test, 0, 0));
    let (mut read, mut refused) = (0, 0);
    for mutant in 0..count {
        let name = &names[mutant % names.len()];
        let mut bytes = corpus(name);
        mutate(&mut bytes, &mut random);
        let before = peak_kb();
        match Case::of(&bytes).read() {
            Ok(batch) => {
                assert_eq!(batch.offsets.len(), batch.record_count() + 1);
                read += 1;
            }
            Err(error) => {
                assert!(error.to_string().contains("records.parquet"), "{error}");
                refused += 1;
            }
        }
        assert!(peak_kb() < MEMORY_LIMIT_KB, "mutant {mutant} of {name}: {before} kB, then {} kB", peak_kb());
    }
    assert!(
        read > count / 50 && refused > count / 4,
        "{read} read, {refused} refused: the mutants are too tame or too wild"
    );
}

/// Makes a file whose only page of strings has `count` in the header of its second packed lengths.
fn with_second_count(count: &[u8]) -> Vec<u8> {
    let case = Case::new();
    let message = "message m { required binary a (UTF8); required int32 label; }";
    let way = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_column_encoding("a".into(), Encoding::DELTA_BYTE_ARRAY)
        .build();
    let words = vec!["the first", "the second", "the third and last"];
    let columns = [Raw::Text(words, vec![], vec![]), Raw::I32(vec![1, 0, 1], vec![], vec![])];
    write_with(way, &case.path(), message, 1, &columns);
    let mut bytes = std::fs::read(case.path()).unwrap();
    assert_eq!(entries(&case.read().unwrap(), 0).len(), 1);
    let header = [0x80, 1, 4, 3];
    let is_header = |at: &usize| bytes[*at..].starts_with(&header);
    let second = (0..bytes.len()).filter(is_header).nth(1).expect("two packed lengths of three strings");
    bytes[second + 3..second + 3 + count.len()].copy_from_slice(count);
    bytes
}

#[test]
fn a_second_header_of_packed_lengths_takes_no_memory_for_what_it_says() {
    let before = peak_kb();
    for count in [&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0xff, 0xff, 0xff, 0xff, 0x0f], &[0x04]] {
        let text = Case::of(&with_second_count(count)).error();
        assert!(text.contains("row group 0") && text.contains("damaged or was cut short"), "{text}");
    }
    assert!(peak_kb() < before + MEMORY_LIMIT_KB / 4);
}

#[test]
fn a_checksum_that_is_present_is_verified() {
    let good = corpus("types_zstd");
    assert!(Case::of(&good).read().is_ok());
    let mut found = 0;
    for at in 4..2000 {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        found +=
            u32::from(Case::of(&bytes).read().is_err_and(|error| error.to_string().contains("checksum")));
    }
    assert!(found > 500, "{found} of 2000 flipped bits were told by a checksum");
}

#[test]
fn an_encrypted_file_is_said_to_be_encrypted() {
    let mut bytes = corpus("types_none");
    let end = bytes.len() - 4;
    bytes[end..].copy_from_slice(b"PARE");
    bytes[..4].copy_from_slice(b"PARE");
    let text = Case::of(&bytes).error();
    assert!(text.contains("is encrypted") && !text.contains("cut short"), "{text}");
}

#[test]
fn a_page_is_no_larger_than_its_bytes_can_become() {
    use super::super::codec::decompress;
    use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
    let codecs = [
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
    ];
    let before = peak_kb();
    for codec in codecs {
        for bytes in [&b"\xff\xff\xff\xff\x0f\x00"[..], b"\x0b", b"\x11\x3f"] {
            assert!(decompress(codec, bytes, 200 << 20, &mut Vec::new()).is_err(), "{codec:?}");
        }
    }
    assert!(peak_kb() < before + MEMORY_LIMIT_KB / 2, "{codecs:?}");
}

#[test]
fn a_batch_is_whole_after_an_error() {
    let mut errors = 0;
    for at in 4..400 {
        let mut bytes = corpus("lists_pyarrow_v1");
        bytes[at] ^= 0xff;
        let (case, mut batch) = (Case::of(&bytes), Batch::default());
        errors +=
            u32::from(case.reader([0]).and_then(|mut reader| reader.next_batch(10, &mut batch)).is_err());
        assert!(batch.offsets.is_empty() || batch.offsets.len() == batch.record_count() + 1, "byte {at}");
    }
    assert!(errors > 100, "{errors} errors");
}
