//! Strings in the encodings `DELTA_LENGTH_BYTE_ARRAY` and `DELTA_BYTE_ARRAY`, whose lengths are packed as differences.
//!
//! ```text
//! packed = varint(values per block) varint(miniblocks per block) varint(number of values) zigzag(first) { block }
//! block  = zigzag(least difference) byte(width of each miniblock) { miniblock }
//! page   = packed(lengths) bytes                                           DELTA_LENGTH_BYTE_ARRAY
//! page   = packed(lengths of prefixes) packed(lengths of suffixes) bytes   DELTA_BYTE_ARRAY
//! ```
//! The library reserves memory for as many lengths as such a header says. Packed lengths can take almost no bytes, so
//! the size of the page does not limit their number. It must therefore also be a possible number of values of the page.

use parquet::errors::ParquetError;

use super::fault;

/// Limit of the values per block: writers use 128.
const BLOCK_LIMIT: u64 = 1 << 12;

/// Limit of the strings per page; usual pages have some ten thousand.
const COUNT_LIMIT: u64 = 1 << 24;

/// Returns the bytes of the strings of a page after their prefixes are expanded.
pub(super) fn expanded_size(bytes: &[u8], num_values: u32, has_prefixes: bool) -> Result<u64, ParquetError> {
    let mut rest = bytes;
    let mut counts = Vec::new();
    let mut size = 0u64;
    for _ in 0..=u8::from(has_prefixes) {
        let (count, sum) = lengths(&mut rest, num_values)?;
        counts.push(count);
        size = size.saturating_add(sum);
    }
    if counts.iter().any(|count| *count != counts[0]) {
        return Err(fault(format!("{} prefixes of {} strings", counts[0], counts[1])));
    }
    Ok(size)
}

/// Skips packed lengths, and returns their number and their sum.
fn lengths(rest: &mut &[u8], num_values: u32) -> Result<(u64, u64), ParquetError> {
    let (block, miniblocks, count) = (varint(rest)?, varint(rest)?, varint(rest)?);
    let mut value = zigzag(rest)?;
    let wrong = |what: String| fault(format!("packed lengths of {what}"));
    if block == 0 || block > BLOCK_LIMIT || block % 128 != 0 {
        return Err(wrong(format!("{block} values a block")));
    }
    if miniblocks == 0 || block % miniblocks != 0 || (block / miniblocks) % 32 != 0 {
        return Err(wrong(format!("{miniblocks} miniblocks in a block of {block}")));
    }
    if count > u64::from(num_values).min(COUNT_LIMIT) {
        return Err(wrong(format!("{count} strings in a page of {num_values} values")));
    }
    let per_miniblock = (block / miniblocks) as usize;
    let mut left = count;
    let mut sum = 0u64;
    let mut add = |value: i64| {
        let length = u64::try_from(value).ok().filter(|length| i32::try_from(*length).is_ok());
        sum = sum.saturating_add(length.ok_or_else(|| wrong(format!("{value} bytes")))?);
        Ok::<_, ParquetError>(())
    };
    if left > 0 {
        add(value)?;
        left -= 1;
    }
    while left > 0 {
        let least = zigzag(rest)?;
        let widths = take(rest, miniblocks as usize)?;
        for &width in widths {
            if left == 0 {
                break;
            }
            if width > 32 {
                return Err(wrong(format!("{width} bits")));
            }
            let packed = take(rest, per_miniblock * usize::from(width) / 8)?;
            for at in 0..left.min(per_miniblock as u64) as usize {
                let difference = bits(packed, at * usize::from(width), width) as i64;
                // The library computes with 32 bits and wraps.
                value = i64::from(value.wrapping_add(least).wrapping_add(difference) as i32);
                add(value)?;
                left -= 1;
            }
        }
    }
    Ok((count, sum))
}

/// Returns `width` bits from bit `start` on, the low ones first; `width` is at most 32.
fn bits(bytes: &[u8], start: usize, width: u8) -> u64 {
    let mut word = [0; 8];
    let rest = bytes.get(start / 8..).unwrap_or_default();
    let count = rest.len().min(8);
    word[..count].copy_from_slice(&rest[..count]);
    (u64::from_le_bytes(word) >> (start % 8)) & ((1 << width) - 1)
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], ParquetError> {
    let (taken, behind) = rest.split_at_checked(count).ok_or_else(truncated_error)?;
    *rest = behind;
    Ok(taken)
}

fn varint(rest: &mut &[u8]) -> Result<u64, ParquetError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(fault("a packed number of more than 64 bits"))
}

fn zigzag(rest: &mut &[u8]) -> Result<i64, ParquetError> {
    let value = varint(rest)?;
    Ok((value >> 1) as i64 ^ -((value & 1) as i64))
}

fn truncated_error() -> ParquetError {
    fault("a page ends within its packed lengths")
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lengths 2, 3, 4: differences of 1.
    const LENGTHS: [u8; 10] = [0x80, 1, 4, 3, 4, 2, 0, 0, 0, 0];

    #[test]
    fn the_size_of_strings_is_the_sum_of_their_lengths_and_prefixes() {
        assert_eq!(expanded_size(&[&LENGTHS[..], b"aabbbcccc"].concat(), 3, false).unwrap(), 9);
        assert_eq!(expanded_size(&[LENGTHS, LENGTHS].concat(), 3, true).unwrap(), 18);
        // Differences 0, 1, 2 of two bits each, added to the least difference, -1: lengths 5, 4, 4, 5.
        let mut packed = vec![0x80, 1, 4, 4, 10, 1, 2, 0, 0, 0, 0b10_01_00];
        packed.extend([0; 7]);
        assert_eq!(expanded_size(&packed, 4, false).unwrap(), 5 + 4 + 4 + 5);
    }

    #[test]
    fn no_more_strings_than_the_page_has_values() {
        let text = expanded_size(&LENGTHS, 2, false).unwrap_err().to_string();
        assert!(text.contains("3 strings in a page of 2 values"), "{text}");
        let many = [0x80, 1, 4, 0xff, 0xff, 0xff, 0xff, 0x07, 4];
        assert!(expanded_size(&many, i32::MAX as u32, false).is_err());
    }

    #[test]
    fn the_second_header_is_checked_as_the_first() {
        // The number of 2^48 - 1 strings, which would take 2^50 bytes.
        let second = [0x80, 1, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 4];
        let text = expanded_size(&[&LENGTHS[..], &second].concat(), 3, true).unwrap_err().to_string();
        assert!(text.contains("281474976710655 strings") || text.contains("strings in a page"), "{text}");
        let fewer = [0x80, 1, 4, 1, 4];
        let text = expanded_size(&[&LENGTHS[..], &fewer].concat(), 3, true).unwrap_err().to_string();
        assert!(text.contains("3 prefixes of 1 strings"), "{text}");
    }

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        let negative = [0x80, 1, 4, 1, 1];
        let wide = [0x80, 1, 4, 3, 4, 2, 33, 0, 0, 0];
        let block = [0x80, 0x80, 0x80, 0x80, 1, 4, 3, 4];
        let miniblocks = [0x80, 1, 3, 3, 4];
        for bytes in [&negative[..], &wide, &block, &miniblocks, &LENGTHS[..9], &[0x80]] {
            assert!(expanded_size(bytes, 3, false).is_err(), "{bytes:?}");
        }
    }

    pub(in crate::format::parquet) fn write_varint(mut number: u64, out: &mut Vec<u8>) {
        while number >= 0x80 {
            out.push(number as u8 | 0x80);
            number >>= 7;
        }
        out.push(number as u8);
    }

    fn write_zigzag(number: i64, out: &mut Vec<u8>) {
        write_varint(((number << 1) ^ (number >> 63)) as u64, out);
    }

    /// Packs lengths as the format says, each miniblock in as few bits as it needs.
    fn pack(lengths: &[i64], block: usize, miniblocks: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [block, miniblocks, lengths.len()] {
            write_varint(number as u64, &mut out);
        }
        write_zigzag(lengths.first().copied().unwrap_or(0), &mut out);
        let differences: Vec<i64> = lengths.windows(2).map(|pair| pair[1] - pair[0]).collect();
        for part in differences.chunks(block) {
            let least = part.iter().copied().min().unwrap_or(0);
            write_zigzag(least, &mut out);
            let minis: Vec<&[i64]> = part.chunks(block / miniblocks).collect();
            let width = |mini: &[i64]| {
                let largest = mini.iter().map(|difference| (difference - least) as u64).max().unwrap_or(0);
                64 - largest.leading_zeros() as usize
            };
            let mut widths: Vec<u8> = minis.iter().map(|mini| width(mini) as u8).collect();
            // Widths of miniblocks that have no values may be anything.
            widths.resize(miniblocks, 0xff);
            out.extend(&widths);
            for mini in minis {
                let width = width(mini);
                let mut packed = vec![0u8; block / miniblocks * width / 8];
                for (at, difference) in mini.iter().enumerate() {
                    let value = (difference - least) as u64;
                    for bit in (0..width).filter(|bit| value >> bit & 1 == 1) {
                        packed[(at * width + bit) / 8] |= 1 << ((at * width + bit) % 8);
                    }
                }
                out.extend(packed);
            }
        }
        out
    }

    proptest! {
        #[test]
        fn any_lengths_have_their_sum(
            lengths in prop::collection::vec(prop_oneof![0..9i64, 0..5000i64, Just(i64::from(i32::MAX))], 0..400),
            (block, miniblocks) in prop_oneof![Just((128, 4)), Just((128, 1)), Just((256, 8)), Just((4096, 32))],
        ) {
            let (packed, sum) = (pack(&lengths, block, miniblocks), lengths.iter().sum::<i64>() as u64);
            let count = lengths.len() as u32;
            let text = [&packed[..], b"the strings"].concat();
            prop_assert_eq!(expanded_size(&text, count, false).map_err(|error| error.to_string()), Ok(sum));
            let both = [&packed[..], &packed, b"the suffixes"].concat();
            prop_assert_eq!(expanded_size(&both, count + 3, true).map_err(|error| error.to_string()), Ok(2 * sum));
            if count > 0 {
                prop_assert!(expanded_size(&text, count - 1, false).is_err());
                prop_assert!(expanded_size(&packed[..4], count, false).is_err());
            }
        }
    }

    #[test]
    fn blocks_and_miniblocks_have_sizes_that_the_format_allows() {
        let with = |block: u64, miniblocks: u64| {
            let mut bytes = Vec::new();
            for number in [block, miniblocks, 1] {
                write_varint(number, &mut bytes);
            }
            write_zigzag(7, &mut bytes);
            expanded_size(&bytes, 1, false).map_err(|error| error.to_string())
        };
        for (block, miniblocks) in [(128, 1), (128, 4), (256, 8), (4096, 128)] {
            assert_eq!(with(block, miniblocks), Ok(7), "{block}, {miniblocks}");
        }
        for (block, miniblocks, expected) in [
            (0, 1, "0 values a block"),
            (64, 1, "64 values a block"),
            (129, 1, "129 values a block"),
            (4224, 1, "4224 values a block"),
            (128, 0, "0 miniblocks in a block of 128"),
            (128, 3, "3 miniblocks in a block of 128"),
            (128, 8, "8 miniblocks in a block of 128"),
        ] {
            let error = with(block, miniblocks).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn numbers_of_more_than_64_bits_are_refused() {
        let mut rest = &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 9][..];
        assert_eq!(varint(&mut rest).unwrap(), u64::MAX);
        assert_eq!(rest, [9]);
        assert!(varint(&mut &[0xff; 11][..]).unwrap_err().to_string().contains("more than 64 bits"));
        for (bytes, expected) in [(&[0][..], 0), (&[1], -1), (&[2], 1), (&[0x80, 1], 64), (&[0x81, 1], -65)] {
            assert_eq!(zigzag(&mut &*bytes).unwrap(), expected);
        }
    }
}
