//! Tests of `codec.rs`.

use std::io::Write as _;

use parquet::basic::{BrotliLevel, GzipLevel, ZstdLevel};

use super::*;
use crate::format::testing::gzip;

/// Text that every codec makes smaller.
fn text() -> Vec<u8> {
    (0..3000u32).flat_map(|at| [b'a' + (at % 7) as u8, b'0' + (at / 500) as u8]).collect()
}

fn hadoop(text: &[u8], block_bytes: usize) -> Vec<u8> {
    let blocks = text.chunks(block_bytes).map(|block| {
        let bytes = lz4_flex::block::compress(block);
        [&(block.len() as u32).to_be_bytes()[..], &(bytes.len() as u32).to_be_bytes(), &bytes].concat()
    });
    blocks.collect::<Vec<_>>().concat()
}

fn frame(text: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}

/// The text in every codec that is written here.
fn compressed() -> Vec<(Compression, Vec<u8>)> {
    let text = text();
    vec![
        (Compression::UNCOMPRESSED, text.clone()),
        (Compression::SNAPPY, snap::raw::Encoder::new().compress_vec(&text).expect("snappy")),
        (Compression::ZSTD(ZstdLevel::default()), zstd::bulk::compress(&text, 1).expect("zstd")),
        (Compression::GZIP(GzipLevel::default()), gzip(&text)),
        (Compression::LZ4_RAW, lz4_flex::block::compress(&text)),
        (Compression::LZ4, lz4_flex::block::compress(&text)),
        (Compression::LZ4, frame(&text)),
        (Compression::LZ4, hadoop(&text, 6000)),
        (Compression::LZ4, hadoop(&text, 2500)),
    ]
}

fn page(codec: Compression, bytes: &[u8], size: usize) -> Result<Vec<u8>, String> {
    let mut out = b"before".to_vec();
    decompress(codec, bytes, size, &mut out).map_err(|error| error.to_string())?;
    assert!(out.starts_with(b"before"), "{codec}: the bytes before are kept");
    Ok(out.split_off(6))
}

#[test]
fn every_codec_gives_the_bytes_behind_those_before() {
    for (codec, bytes) in compressed() {
        assert_eq!(page(codec, &bytes, 6000).as_ref(), Ok(&text()), "{codec}");
        assert_eq!(page(codec, &bytes, 0), Ok(Vec::new()), "{codec}: an empty page has no bytes");
        let mut alone = Vec::new();
        decompress(codec, &bytes, 6000, &mut alone).expect("a whole page");
        assert_eq!(alone, text(), "{codec}");
    }
}

#[test]
fn a_page_has_the_size_that_its_header_says() {
    for (codec, bytes) in compressed() {
        for size in [5999, 6001] {
            let text = page(codec, &bytes, size).expect_err("another size");
            let (is_damage, is_size) = (text.contains("damaged compression"), text.contains("in its header"));
            assert!(is_damage || is_size, "{codec} of {size} bytes: {text}");
        }
    }
    let snappy = &compressed()[1];
    let text = page(snappy.0, &snappy.1, 5999).unwrap_err();
    assert!(text.contains("a page of 6000 bytes, but 5999 in its header"), "{text}");
}

#[test]
fn memory_is_reserved_only_for_what_the_bytes_can_become() {
    let limit = "compressed ones";
    for (codec, ratio) in [
        (Compression::UNCOMPRESSED, 1),
        (Compression::SNAPPY, 22),
        (Compression::GZIP(GzipLevel::default()), 1032),
        (Compression::LZ4, 255),
        (Compression::LZ4_RAW, 255),
        (Compression::ZSTD(ZstdLevel::default()), 1 << 15),
    ] {
        let largest = (1 << 17) + 10 * ratio;
        let text = page(codec, &[0xff; 10], largest + 1).unwrap_err();
        assert!(text.contains(&format!("a page of {} bytes in 10 {limit}", largest + 1)), "{codec}: {text}");
        let text = page(codec, &[0xff; 10], largest).unwrap_err();
        assert!(!text.contains(limit), "{codec}: {text}");
    }
}

#[test]
fn blocks_of_hadoop_fit_their_page_and_are_whole() {
    let text = text();
    let whole = hadoop(&text, 2500);
    let unpacked = |bytes: &[u8], size: usize| {
        let mut out = b"before".to_vec();
        lz4_hadoop(bytes, size, &mut out).map(|()| out.len() - 6).map_err(|error| error.to_string())
    };
    assert_eq!(unpacked(&whole, 6000), Ok(6000));
    assert_eq!(unpacked(&whole, 6001), Ok(6000));
    let error = unpacked(&whole, 5999).unwrap_err();
    assert!(error.contains("an LZ4 block that is larger than its page"), "{error}");
    for length in [3, 7, 8, whole.len() - 1] {
        let error = unpacked(&whole[..length], 6000).unwrap_err();
        assert!(error.contains("an LZ4 block that ends early"), "{length} bytes: {error}");
    }
}

#[test]
fn what_is_not_read_is_told() {
    let text = page(Compression::LZO, b"123", 10).unwrap_err();
    assert!(text.contains("compression LZO is not supported"), "{text}");
    for first in [0x11, 0x91] {
        let text = page(Compression::BROTLI(BrotliLevel::default()), &[first, 0, 0], 10).unwrap_err();
        assert!(text.contains("brotli with a large window"), "{text}");
    }
    let text = page(Compression::BROTLI(BrotliLevel::default()), &[0x21, 0, 0], 10).unwrap_err();
    assert!(!text.contains("large window"), "{text}");
}
