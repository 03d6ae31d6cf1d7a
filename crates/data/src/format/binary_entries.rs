//! A fast path for the common case of libsvm: entries `index:1` with up to 8 digits and one blank between them.
//!
//! In a loop from digit to digit each step waits for the one before, at some 15 cycles per entry. This code first finds
//! the blanks of 64 bytes as a mask. The entries between them do not depend on each other, and the processor parses
//! several at once.

use crate::BatchBuilder;
use crate::number::{HIGH_BITS, ZEROS, eight_digits, word_at};

/// Bytes whose blanks are found at once: the bits of a mask.
const STRIDE: usize = 64;
/// Limit of the entries that end in one stride, with the end of the line.
const ENTRIES: usize = STRIDE / 2 + 1;
/// Keys that are pushed together: a power of two, and more than most lines have.
const KEYS: usize = 128;
/// Buffer of keys, reused from line to line. With up to 8 digits all keys are below `key_vec::SMALL_KEY_END`.
pub(super) type KeyBuffer = [u32; KEYS];
/// The initial buffer.
pub(super) const EMPTY_KEY_BUFFER: KeyBuffer = [0; KEYS];
#[cfg(not(target_arch = "x86_64"))]
const BLANKS: u64 = 0x2020_2020_2020_2020;
/// The characters of ":1", as a little-endian number.
const COLON_ONE: u16 = 0x313a;
/// Bytes of the shortest entry (one digit and ":1") and of the longest one (8 digits).
const SHORTEST: usize = 3;
const LONGEST: usize = 10;

/// Pushes the run of such entries that begins after the blank at `at`. Returns where the run ends (at a blank or the
/// end of the line), the smallest key that would continue the ascending order, and whether all keys ascend.
#[inline]
pub(super) fn parse_ones(
    line: &[u8],
    at: usize,
    keys: &mut KeyBuffer,
    out: &mut BatchBuilder,
) -> (usize, u64, bool) {
    let (mut floor, mut ascending) = (0u32, true);
    if line.get(at) != Some(&b' ') {
        return (at, 0, ascending);
    }
    let mut start = at + 1;
    let mut base = start;
    let mut count = 0;
    while start < line.len() {
        let mut ends = blanks(line, base);
        let mut good = true;
        while ends != 0 && good {
            let end = base + ends.trailing_zeros() as usize;
            ends &= ends - 1;
            let (key, is_one) = parse_one(line, start, end);
            if is_one {
                ascending &= key >= floor;
                floor = key + 1;
                keys[count % KEYS] = key;
                count += 1;
                start = end + 1;
            }
            good = is_one;
        }
        if !good {
            break;
        }
        if count > KEYS - ENTRIES {
            out.extend_small_ones(&keys[..count]);
            count = 0;
        }
        base += STRIDE;
    }
    out.extend_small_ones(&keys[..count]);
    // The position goes back to the blank before the first unread token, so that the caller reads the whole token.
    (start - 1, u64::from(floor), ascending)
}

/// Returns the key of the entry between two positions, and whether the entry has the form that is parsed here.
#[inline]
fn parse_one(line: &[u8], start: usize, end: usize) -> (u32, bool) {
    let length = end - start;
    let tail = line.get(end.wrapping_sub(2)..end).and_then(|tail| tail.first_chunk::<2>());
    let (Some(word), Some(tail)) = (word_at(line, start), tail) else {
        return (0, false);
    };
    if !(SHORTEST..=LONGEST).contains(&length) {
        return (0, false);
    }
    // The shift removes the characters after the digits, and inserts zeros before them.
    let digits = (word ^ ZEROS) << (8 * (LONGEST - length));
    let other = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & HIGH_BITS;
    (eight_digits(digits) as u32, other == 0 && u16::from_le_bytes(*tail) == COLON_ONE)
}

/// Returns a bit for each blank in the 64 bytes from `base` on, and one for the end of the line if it is among them.
#[inline]
fn blanks(line: &[u8], base: usize) -> u64 {
    let rest = &line[base.min(line.len())..];
    if let Some(stride) = rest.first_chunk::<STRIDE>() {
        return mask(stride);
    }
    let mut padded = [0; STRIDE];
    padded[..rest.len()].copy_from_slice(rest);
    padded[rest.len()] = b' ';
    mask(&padded)
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[allow(unsafe_code)]
fn mask(stride: &[u8; STRIDE]) -> u64 {
    use core::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let (lanes, _) = stride.as_chunks::<16>();
    let mut mask = 0;
    for (position, lane) in lanes.iter().enumerate() {
        let (words, _) = lane.as_chunks::<8>();
        let [low, high] = [words[0], words[1]].map(i64::from_le_bytes);
        // SAFETY: these intrinsics use registers only, and SSE2, which has the instructions, is part of every x86-64.
        let equal = unsafe {
            _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_set_epi64x(high, low), _mm_set1_epi8(b' '.cast_signed())))
        };
        mask |= u64::from(equal.cast_unsigned()) << (16 * position);
    }
    mask
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn mask(stride: &[u8; STRIDE]) -> u64 {
    let (words, _) = stride.as_chunks::<8>();
    let mut mask = 0;
    for (position, word) in words.iter().enumerate() {
        let other = u64::from_le_bytes(*word) ^ BLANKS;
        // This sets the high bit of each byte that is zero, exactly (no carry leaves a byte); the next step packs these
        // bits.
        let zero = !(((other & !HIGH_BITS) + !HIGH_BITS) | other) & HIGH_BITS;
        mask |= ((zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * position);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(line: &str) -> (Vec<u64>, usize, bool) {
        let mut out = BatchBuilder::new();
        let (end, _, ascending) = parse_ones(line.as_bytes(), 1, &mut EMPTY_KEY_BUFFER.clone(), &mut out);
        (out.open_keys(), end, ascending)
    }

    #[test]
    fn a_run_ends_before_what_is_not_of_its_kind() {
        for (line, keys, end) in [
            ("1 1234567:1 2345678:1", &[1_234_567, 2_345_678][..], 21),
            ("1 1:1 22:1 333:1 12345678:1", &[1, 22, 333, 12_345_678], 27),
            // The last entry is not parsed here when 8 bytes cannot be loaded.
            ("1 12345678:1 5:1 7:1", &[12_345_678], 12),
            ("1 5:1 6:2 12345678:1", &[5], 5),
            ("1 5:1  6:1 12345678:1", &[5], 5),
            ("1 5:1 6:10 12345678:1", &[5], 5),
            ("1 12345678:1 123456789:1", &[12_345_678], 12),
            ("1 12345678:1 x:1", &[12_345_678], 12),
            ("1 12345678:1 ", &[12_345_678], 12),
            ("1", &[], 1),
            ("1\t5:1", &[], 1),
        ] {
            let (got, got_end, _) = run(line);
            assert_eq!((got.as_slice(), got_end), (keys, end), "{line}");
        }
    }

    proptest! {
        #[test]
        fn the_fast_path_reads_what_the_plain_one_reads(keys in prop::collection::vec(0u64..200_000_000, 0..60)) {
            let line = keys.iter().fold("1".to_owned(), |line, key| line + &format!(" {key}:1"));
            // A second blank excludes a line from the fast path.
            let plain = line.replace(' ', "  ");
            let read = |line: &str| crate::read_bytes("libsvm", &crate::FormatOptions::default(), line.as_bytes());
            match (read(&line), read(&plain)) {
                (Ok(fast), Ok(plain)) => prop_assert_eq!(fast, plain),
                (fast, plain) => prop_assert!(fast.is_err() && plain.is_err()),
            }
        }
    }
}
