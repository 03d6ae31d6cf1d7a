//! Decompresses pages. A page must have the size that its header says. Memory is reserved only for a size that the
//! compressed bytes can reach.

use std::io::Read;

use parquet::basic::Compression;
use parquet::errors::ParquetError;

use super::fault;

/// Bytes that a page may have beyond the following ratios.
const SLACK_BYTES: usize = 1 << 17;

/// Decompresses into exactly `size` bytes, which are appended to `out`.
pub(super) fn decompress(
    codec: Compression,
    bytes: &[u8],
    size: usize,
    out: &mut Vec<u8>,
) -> Result<(), ParquetError> {
    if size == 0 {
        return Ok(());
    }
    if size > SLACK_BYTES.saturating_add(bytes.len().saturating_mul(largest_ratio(codec))) {
        return Err(fault(format!("a page of {size} bytes in {} compressed ones", bytes.len())));
    }
    let start = out.len();
    match codec {
        Compression::UNCOMPRESSED => out.extend_from_slice(bytes),
        Compression::SNAPPY => {
            let length = snap::raw::decompress_len(bytes).map_err(damaged)?;
            if length != size {
                return Err(wrong_size(length, size));
            }
            out.resize(start + size, 0);
            snap::raw::Decoder::new().decompress(bytes, &mut out[start..]).map_err(damaged)?;
        }
        Compression::ZSTD(_) => {
            out.resize(start + size, 0);
            let length = zstd::bulk::decompress_to_buffer(bytes, &mut out[start..]).map_err(damaged)?;
            out.truncate(start + length);
        }
        Compression::GZIP(_) => read_to_end(flate2::read::MultiGzDecoder::new(bytes), size, out)?,
        Compression::BROTLI(_) => {
            // This first byte means a window above 16 MiB, which only an extension of the format allows.
            if bytes.first().is_some_and(|byte| byte & 0x7f == 0x11) {
                return Err(fault("brotli with a large window"));
            }
            read_to_end(brotli_decompressor::Decompressor::new(bytes, 4096), size, out)?;
        }
        Compression::LZ4_RAW => lz4_block(bytes, size, out)?,
        Compression::LZ4 => lz4(bytes, size, out)?,
        Compression::LZO => return Err(ParquetError::NYI("compression LZO is not supported".to_owned())),
    }
    match out.len() - start {
        length if length == size => Ok(()),
        length => Err(wrong_size(length, size)),
    }
}

/// Returns the largest number of bytes that one compressed byte can become.
fn largest_ratio(codec: Compression) -> usize {
    match codec {
        Compression::UNCOMPRESSED => 1,
        // Three bytes copy 64 bytes.
        Compression::SNAPPY => 22,
        Compression::GZIP(_) => 1032,
        Compression::LZ4 | Compression::LZ4_RAW => 255,
        // A block of 128 KiB that repeats one byte takes four bytes.
        Compression::ZSTD(_) => 1 << 15,
        // A block has up to 16 MiB. The output is read in steps, so memory grows only with it.
        Compression::BROTLI(_) | Compression::LZO => 1 << 24,
    }
}

fn read_to_end(reader: impl Read, size: usize, out: &mut Vec<u8>) -> Result<(), ParquetError> {
    reader.take(size as u64 + 1).read_to_end(out).map(drop).map_err(damaged)
}

fn lz4_block(bytes: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), ParquetError> {
    let start = out.len();
    out.resize(start + size, 0);
    let length = lz4_flex::block::decompress_into(bytes, &mut out[start..]).map_err(damaged)?;
    out.truncate(start + length);
    Ok(())
}

/// Decompresses LZ4 as Hadoop writes it, else as frames, else as one block: files use the same name for all three.
fn lz4(bytes: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), ParquetError> {
    let start = out.len();
    let ways = [
        lz4_hadoop,
        |bytes: &[u8], size: usize, out: &mut Vec<u8>| {
            read_to_end(lz4_flex::frame::FrameDecoder::new(bytes), size, out)
        },
        lz4_block,
    ];
    let mut last = Ok(());
    for way in ways {
        out.truncate(start);
        last = way(bytes, size, out);
        if last.is_ok() && out.len() == start + size {
            break;
        }
    }
    last
}

/// Decompresses blocks. The decompressed size and the size in the file, both big-endian, precede each block.
fn lz4_hadoop(mut bytes: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), ParquetError> {
    let end = out.len() + size;
    while !bytes.is_empty() {
        let ended = || fault("an LZ4 block that ends early");
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(ended)?;
        let (compressed, rest) = rest.split_first_chunk::<4>().ok_or_else(ended)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (block, rest) =
            rest.split_at_checked(u32::from_be_bytes(*compressed) as usize).ok_or_else(ended)?;
        if length > end - out.len() {
            return Err(fault("an LZ4 block that is larger than its page"));
        }
        lz4_block(block, length, out)?;
        bytes = rest;
    }
    Ok(())
}

fn wrong_size(length: usize, size: usize) -> ParquetError {
    fault(format!("a page of {length} bytes, but {size} in its header"))
}

fn damaged(reason: impl std::fmt::Display) -> ParquetError {
    fault(format!("damaged compression ({reason})"))
}

#[cfg(test)]
mod tests;
