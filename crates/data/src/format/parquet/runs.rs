//! Runs of small numbers: levels, and positions in a dictionary.
//!
//! ```text
//! runs = { varint(count * 2) value | varint(groups * 2 + 1) bits }     RLE run, bit-packed run of 8 * groups numbers
//! ```
//! A value takes whole bytes; bits lie from the low one up, `width` a number. The numbers themselves are not written out:
//! of levels only the few that differ matter, and positions are looked up as they are unpacked.

use parquet::errors::ParquetError;

/// Bits of a word that are there wherever in a byte the first one lies.
const WORD_BITS: usize = 56;

/// A place in runs that lie in the bytes of a page, which every call is given anew.
pub(super) struct Runs {
    width: u32,
    /// Where the next run begins, and the end of all.
    at: usize,
    end: usize,
    /// Numbers of the present run that are still to come.
    left: usize,
    run: Run,
}

#[derive(Clone, Copy)]
enum Run {
    Repeated(u32),
    /// Number of the first bit in the page.
    Packed(usize),
}

fn ended() -> ParquetError {
    ParquetError::EOF("a page ends before its values".to_owned())
}

/// The bits from `bit` on, at least [`WORD_BITS`] of them; zeros behind the end.
#[inline]
fn word(bytes: &[u8], bit: usize) -> u64 {
    let rest = bytes.get(bit / 8..).unwrap_or_default();
    let word = rest.first_chunk::<8>().map_or_else(|| padded(rest), |word| u64::from_le_bytes(*word));
    word >> (bit % 8)
}

#[cold]
fn padded(rest: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(word)
}

impl Runs {
    /// Runs of numbers of `width` bits, up to 32, in `bytes[at..end]`.
    pub(super) fn new(width: u32, at: usize, end: usize) -> Self {
        Self { width, at, end, left: 0, run: Run::Repeated(0) }
    }

    /// How many of at most `limit` numbers the present run has; goes to the next one when it is used up.
    #[inline]
    fn here(&mut self, bytes: &[u8], limit: usize) -> Result<usize, ParquetError> {
        while self.left == 0 {
            self.open(bytes)?;
        }
        Ok(self.left.min(limit))
    }

    #[inline]
    fn skip(&mut self, count: usize) {
        self.left -= count;
        if let Run::Packed(bit) = &mut self.run {
            *bit += count * self.width as usize;
        }
    }

    /// The next run.
    fn open(&mut self, bytes: &[u8]) -> Result<(), ParquetError> {
        let mut head = 0;
        for shift in (0..).step_by(7) {
            let byte = self.byte(bytes)?;
            head |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
            if shift > 28 {
                return Err(ParquetError::General("a run of impossible length".to_owned()));
            }
        }
        let count = (head >> 1) as usize;
        if head & 1 == 1 {
            let size = count.saturating_mul(self.width as usize).min(self.end - self.at);
            self.run = Run::Packed(self.at * 8);
            // Some writers leave out what they need not fill of the last group.
            let there = (size * 8).checked_div(self.width as usize).unwrap_or(usize::MAX);
            self.left = there.min(count.saturating_mul(8));
            self.at += size;
            return Ok(());
        }
        // Some writers fill a page up with zeros.
        if count == 0 {
            return Err(ended());
        }
        let mut value = 0;
        for position in 0..self.width.div_ceil(8) {
            value |= u64::from(self.byte(bytes)?) << (8 * position);
        }
        if value >> self.width != 0 {
            return Err(ParquetError::General(format!("{value} in a run of {} bits", self.width)));
        }
        self.run = Run::Repeated(value as u32);
        self.left = count;
        Ok(())
    }

    fn byte(&mut self, bytes: &[u8]) -> Result<u8, ParquetError> {
        let byte = bytes.get(self.at).filter(|_| self.at < self.end).ok_or_else(ended)?;
        self.at += 1;
        Ok(*byte)
    }

    /// Walks over up to `limit` repetition levels of one bit, to the first zero after `list_limit` of them. Adds `base` and
    /// the position of each zero to `out`; answers how many levels were passed and whether one zero more follows.
    pub(super) fn zeros(
        &mut self,
        bytes: &[u8],
        limit: usize,
        list_limit: usize,
        base: usize,
        out: &mut Vec<usize>,
    ) -> Result<(usize, bool), ParquetError> {
        let (mut passed, full) = (0, out.len() + list_limit);
        while passed < limit {
            let count = self.here(bytes, limit - passed)?;
            match self.run {
                Run::Repeated(0) => {
                    let taken = count.min(full - out.len());
                    out.extend(base + passed..base + passed + taken);
                    self.skip(taken);
                    passed += taken;
                    if taken < count {
                        return Ok((passed, true));
                    }
                }
                Run::Repeated(_) => {
                    self.skip(count);
                    passed += count;
                }
                Run::Packed(bit) => {
                    for start in (0..count).step_by(WORD_BITS) {
                        let width = (count - start).min(WORD_BITS);
                        let mut zeros = !word(bytes, bit + start) & ((1 << width) - 1);
                        while zeros != 0 {
                            let position = start + zeros.trailing_zeros() as usize;
                            if out.len() == full {
                                self.skip(position);
                                return Ok((passed + position, true));
                            }
                            out.push(base + passed + position);
                            zeros &= zeros - 1;
                        }
                    }
                    self.skip(count);
                    passed += count;
                }
            }
        }
        Ok((passed, false))
    }

    /// Walks over numbers that are `number`, up to `limit` of them; how many there were.
    pub(super) fn same(&mut self, bytes: &[u8], number: u32, limit: usize) -> Result<usize, ParquetError> {
        let width = self.width as usize;
        let pattern = (0..64).step_by(width.max(1)).fold(0, |bits, shift| bits | u64::from(number) << shift);
        let mut passed = 0;
        while passed < limit {
            let count = self.here(bytes, limit - passed)?;
            match self.run {
                Run::Repeated(other) if other != number => return Ok(passed),
                Run::Repeated(_) => {
                    self.skip(count);
                    passed += count;
                }
                Run::Packed(bit) => {
                    let count = count.min(WORD_BITS / width.max(1));
                    let differ = (word(bytes, bit) ^ pattern) & ((1 << (count * width)) - 1);
                    let same = if differ == 0 { count } else { differ.trailing_zeros() as usize / width };
                    self.skip(same);
                    passed += same;
                    if same < count {
                        return Ok(passed);
                    }
                }
            }
        }
        Ok(passed)
    }

    /// The next number.
    pub(super) fn one(&mut self, bytes: &[u8]) -> Result<u32, ParquetError> {
        self.here(bytes, 1)?;
        let number = match self.run {
            Run::Repeated(number) => number,
            Run::Packed(bit) => (word(bytes, bit) & ((1 << self.width) - 1)) as u32,
        };
        self.skip(1);
        Ok(number)
    }

    /// Adds `item` of the entries of `dictionary` that the next `count` numbers name.
    pub(super) fn look_up<T: Copy + Default, U: Clone>(
        &mut self,
        bytes: &[u8],
        count: usize,
        dictionary: &[T],
        item: impl Fn(T) -> U,
        out: &mut Vec<U>,
    ) -> Result<(), ParquetError> {
        let width = self.width as usize;
        let mut left = count;
        while left > 0 {
            let count = self.here(bytes, left)?;
            let largest = match self.run {
                Run::Repeated(number) => {
                    let entry = dictionary.get(number as usize).copied().unwrap_or_default();
                    out.extend(std::iter::repeat_n(item(entry), count));
                    number as usize
                }
                Run::Packed(first) => look_up_packed(bytes, first, count, width, dictionary, &item, out),
            };
            if largest >= dictionary.len() {
                let length = dictionary.len();
                return Err(ParquetError::General(format!("entry {largest} of a dictionary of {length}")));
            }
            self.skip(count);
            left -= count;
        }
        Ok(())
    }
}

/// Adds `item` of the entries that `count` packed numbers name, the first of them at bit `first`; the largest number.
///
/// Not inlined: among all else that a caller holds, the compiler does not keep these few numbers in registers.
#[inline(never)]
fn look_up_packed<T: Copy + Default, U: Clone>(
    bytes: &[u8],
    first: usize,
    count: usize,
    width: usize,
    dictionary: &[T],
    item: impl Fn(T) -> U,
    out: &mut Vec<U>,
) -> usize {
    let mask = (1u64 << width) - 1;
    let mut largest = 0;
    out.extend((0..count).map(|i| {
        let number = (word(bytes, first + i * width) & mask) as usize;
        largest = largest.max(number);
        item(dictionary.get(number).copied().unwrap_or_default())
    }));
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three ones, eight packed as 1 0 1 1 1 1 0 1, two zeros; one bit each.
    const BITS: [u8; 6] = [6, 1, 3, 0b1011_1101, 4, 0];

    #[test]
    fn zeros_are_found_where_they_stand() {
        let mut out = vec![];
        let mut runs = Runs::new(1, 0, BITS.len());
        assert_eq!(runs.zeros(&BITS, 13, 9, 100, &mut out).unwrap(), (13, false));
        assert_eq!(out, [104, 109, 111, 112]);
        assert!(runs.zeros(&BITS, 1, 9, 0, &mut out).is_err(), "nothing is left");
        for limit in 0..4 {
            let mut runs = Runs::new(1, 0, BITS.len());
            let (passed, more) = runs.zeros(&BITS, 13, limit, 0, &mut vec![]).unwrap();
            assert_eq!((passed, more), ([4, 9, 11, 12][limit], true));
            assert_eq!(runs.one(&BITS).unwrap(), 0, "the zero is still to come");
        }
    }

    #[test]
    fn numbers_that_are_the_same_are_passed() {
        let mut runs = Runs::new(1, 0, BITS.len());
        assert_eq!(runs.same(&BITS, 1, 13).unwrap(), 4);
        assert_eq!((runs.one(&BITS).unwrap(), runs.same(&BITS, 1, 2).unwrap()), (0, 2));
        // Packed 3 3 2 3 of two bits, then 3 five times.
        let wide = [3, 0b1110_1111, 0b1111_1111, 10, 3];
        let mut runs = Runs::new(2, 0, wide.len());
        assert_eq!(runs.same(&wide, 3, 99).unwrap(), 2);
        assert_eq!((runs.one(&wide).unwrap(), runs.same(&wide, 3, 10).unwrap()), (2, 10));
        assert!(runs.one(&wide).is_err());
    }

    #[test]
    fn entries_of_a_dictionary_are_looked_up_and_others_refused() {
        // Packed 0 1 2 3 0 0 0 0 of two bits, then 2 twice.
        let bytes = [3, 0b1110_0100, 0, 4, 2];
        let read = |dictionary: &[u64], count| {
            let mut out = vec![];
            let result = Runs::new(2, 0, bytes.len()).look_up(&bytes, count, dictionary, |x| x, &mut out);
            result.map(|()| out)
        };
        assert_eq!(read(&[5, 6, 7, 8], 10).unwrap(), [5, 6, 7, 8, 5, 5, 5, 5, 7, 7]);
        assert!(read(&[5, 6, 7, 8], 11).is_err());
        assert!(read(&[5, 6, 7], 10).is_err());
        assert!(read(&[], 1).is_err());
    }

    #[test]
    fn impossible_runs_are_errors() {
        for bytes in [&[0xff; 12][..], &[4], &[4, 2], &[0, 0, 0], &[1, 1, 1], &[]] {
            assert!(Runs::new(1, 0, bytes.len()).one(bytes).is_err(), "{bytes:?}");
        }
        assert_eq!(Runs::new(0, 0, 1).one(&[3]).unwrap(), 0, "no bits, one value");
    }
}
