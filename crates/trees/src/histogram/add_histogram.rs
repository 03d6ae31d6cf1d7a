//! The push function that adds the histogram of a task to that of a leaf at the partitions, and how a histogram travels.

use std::ops::Range;

use matrix::function::{Arity, Block, FunctionValue, Shape};
use matrix::{ElementType, FunctionFault, PushFunction};

use super::layout::{SLOT_ROWS, groups};
use super::sums::{Histogram, Sums};

/// Some bins of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct BinGroup {
    /// The first bin, and the end.
    bins: Range<u32>,
    /// Their sums as [`encode`] writes them.
    bytes: Vec<u8>,
}

impl BinGroup {
    fn meets(&self, columns: &Range<u64>) -> bool {
        u64::from(self.bins.start) < columns.end && u64::from(self.bins.end) > columns.start
    }
}

/// A histogram as it is pushed: whether it replaces what the slot has, the mean gradient and hessian of a record, and groups
/// of bins.
pub(in super::super) type SentHistogram = (bool, i64, i64, Vec<BinGroup>);

impl FunctionValue for BinGroup {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.bins.start, self.bins.end, self.bytes.len() as u32).pack(out);
        out.extend_from_slice(&self.bytes);
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        let (start, end, len) = <(u32, u32, u32)>::unpack(bytes)?;
        let Some((own, rest)) = bytes.split_at_checked(len as usize) else {
            return Err(bad_bytes(format!("{} bytes", bytes.len()), format!("{len} bytes of bins")));
        };
        *bytes = rest;
        Ok(Self { bins: start..end, bytes: own.to_vec() })
    }

    fn is_finite(&self) -> bool {
        true
    }
}

fn bad_bytes(actual: impl Into<String>, expected: impl Into<String>) -> FunctionFault {
    FunctionFault::argument("histogram", actual, expected)
}

/// Adds the sums of a task to the three rows of a slot. The argument has the bins in groups ([`BinGroup`]): a bit for each bin
/// that is not empty, and of these the counts, and by how much gradients and hessians differ from the count times a mean. The
/// numbers of a kind have as many bytes as the largest one of the group needs, so that no branch depends on a number.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct AddHistogram;

/// Kinds of numbers: counts, gradients, hessians. A group begins with the bytes that a number of each kind has.
const KINDS: usize = 3;

/// Makes the argument of [`AddHistogram`]; `sums`: those of all records of the histogram. The first of the tasks replaces what
/// the slot has.
pub(in super::super) fn encode(
    histogram: &Histogram,
    sums: Sums,
    starts: &[u32],
    is_first: bool,
) -> SentHistogram {
    let all = histogram.bins();
    let mean = |sum: i64| if sums.count > 0 { sum / sums.count } else { 0 };
    let means = (mean(sums.gradient), mean(sums.hessian));
    let mut numbers: [Vec<u64>; KINDS] = Default::default();
    let groups = groups(starts)
        .map(|bins| {
            let own = all.slice(bins.start as usize..bins.end as usize);
            let mut bits = vec![0u8; bins.len().div_ceil(8)];
            numbers.iter_mut().for_each(Vec::clear);
            for (bin, &count) in own.counts.iter().enumerate().filter(|(_, count)| **count != 0) {
                bits[bin / 8] |= 1 << (bin % 8);
                numbers[0].push(count as u64);
                numbers[1].push(zigzag(own.gradients[bin] - count * means.0));
                numbers[2].push(zigzag(own.hessians[bin] - count * means.1));
            }
            let mut bytes = Vec::new();
            if !numbers[0].is_empty() {
                let widths = numbers.each_ref().map(|list| width_of(list));
                bytes.extend(widths.map(|width| width as u8));
                bytes.extend(bits);
                for (list, width) in numbers.iter().zip(widths) {
                    put(list, width, &mut bytes);
                }
            }
            BinGroup { bins, bytes }
        })
        .filter(|group| !group.bytes.is_empty());
    (is_first, means.0, means.1, groups.collect())
}

/// Bytes of the largest of these numbers; 0 if all are 0.
fn width_of(numbers: &[u64]) -> usize {
    let all = numbers.iter().fold(0, |all, number| all | number);
    (u64::BITS - all.leading_zeros()).div_ceil(8) as usize
}

/// Calls a function whose constant is the number of bytes.
macro_rules! with_width {
    ($width:expr, $function:ident($($argument:expr),*)) => {
        match $width {
            0 => {}
            1 => $function::<1>($($argument),*),
            2 => $function::<2>($($argument),*),
            3 => $function::<3>($($argument),*),
            4 => $function::<4>($($argument),*),
            5 => $function::<5>($($argument),*),
            6 => $function::<6>($($argument),*),
            7 => $function::<7>($($argument),*),
            _ => $function::<8>($($argument),*),
        }
    };
}

fn put(numbers: &[u64], width: usize, bytes: &mut Vec<u8>) {
    let first = bytes.len();
    bytes.resize(first + width * numbers.len(), 0);
    with_width!(width, put_all(numbers, &mut bytes[first..]));
}

fn put_all<const WIDTH: usize>(numbers: &[u64], bytes: &mut [u8]) {
    for (bytes, number) in bytes.as_chunks_mut::<WIDTH>().0.iter_mut().zip(numbers) {
        bytes.copy_from_slice(&number.to_le_bytes()[..WIDTH]);
    }
}

fn take_all<const WIDTH: usize>(bytes: &[u8], numbers: &mut [u64]) {
    for (bytes, number) in bytes.as_chunks::<WIDTH>().0.iter().zip(numbers) {
        let mut all = [0; 8];
        all[..WIDTH].copy_from_slice(bytes);
        *number = u64::from_le_bytes(all);
    }
}

/// Numbers near 0 become small ones without a sign.
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn signed(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Calls `add` with each bin that is not empty; `None` if the bytes are not those of the bins.
fn decode(group: &BinGroup, means: (i64, i64), mut add: impl FnMut(u64, Sums)) -> Option<()> {
    let (widths, rest) = group.bytes.split_first_chunk::<KINDS>()?;
    let (bits, mut rest) = rest.split_at_checked(group.bins.len().div_ceil(8))?;
    let count: usize = bits.iter().map(|byte| byte.count_ones() as usize).sum();
    let mut numbers: [Vec<u64>; KINDS] = Default::default();
    for (list, &width) in numbers.iter_mut().zip(widths) {
        let width = usize::from(width);
        let (own, after) = rest.split_at_checked(width * count)?;
        list.resize(count, 0);
        with_width!(width.min(8), take_all(own, list));
        rest = after;
    }
    let is_valid = rest.is_empty() && widths.iter().all(|width| *width <= 8);
    let bins = (0..8 * bits.len()).filter(|bin| bits[bin / 8] >> (bin % 8) & 1 == 1);
    let [counts, gradients, hessians] = &numbers;
    for (i, bin) in bins.enumerate().take_while(|_| is_valid) {
        let count = counts[i] as i64;
        let gradient = signed(gradients[i]).wrapping_add(count.wrapping_mul(means.0));
        let hessian = signed(hessians[i]).wrapping_add(count.wrapping_mul(means.1));
        (bin < group.bins.len()).then_some(())?;
        add(u64::from(group.bins.start) + bin as u64, Sums { gradient, hessian, count });
    }
    is_valid.then_some(())
}

impl PushFunction for AddHistogram {
    type Argument = SentHistogram;

    fn name(&self) -> &'static str {
        "add_histogram"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(0)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(SLOT_ROWS as usize)
    }

    fn check(&self, (.., groups): &SentHistogram, shape: &Shape) -> Result<(), FunctionFault> {
        let fits = groups.iter().all(|group| u64::from(group.bins.end) <= shape.columns);
        if shape.element == ElementType::I64 && fits {
            return Ok(());
        }
        Err(bad_bytes("other bins", format!("bins below {} of a matrix of i64", shape.columns)))
    }

    fn split(
        &self,
        (is_first, gradient, hessian, groups): &SentHistogram,
        columns: Range<u64>,
    ) -> Option<SentHistogram> {
        let own = groups.iter().filter(|group| group.meets(&columns)).cloned();
        Some((*is_first, *gradient, *hessian, own.collect()))
    }

    fn change(
        &self,
        (is_first, gradient, hessian, groups): &SentHistogram,
        block: &mut Block<'_>,
    ) -> Result<(), FunctionFault> {
        let Block::I64(block) = block else { unreachable!("the check allows no other elements") };
        let range = block.range();
        let [gradients, hessians, counts] = &mut block.into[..] else {
            unreachable!("a slot has three rows")
        };
        if *is_first {
            for row in [&mut *gradients, hessians, counts] {
                row.fill(0);
            }
        }
        for group in groups.iter().filter(|group| group.meets(&range)) {
            let decoded = decode(group, (*gradient, *hessian), |bin, sums| {
                if range.contains(&bin) {
                    let at = (bin - range.start) as usize;
                    gradients[at] = gradients[at].wrapping_add(sums.gradient);
                    hessians[at] = hessians[at].wrapping_add(sums.hessian);
                    counts[at] = counts[at].wrapping_add(sums.count);
                }
            });
            decoded.ok_or_else(|| bad_bytes("other bytes", "the sums of its bins"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::sums::pack;

    #[test]
    fn a_histogram_that_travels_comes_out_again_wherever_it_is_cut() {
        // Features of different sizes, with empty bins, among them at the ends.
        let starts = [0, 300, 301, 700, 702];
        let mut histogram = Histogram::default();
        histogram.clear(702);
        let mut all = Sums::default();
        for bin in (0..702).filter(|bin| bin % 7 > 2 || bin % 300 == 0) {
            let gradient = f64::from(bin * 7919 % 32_767 - 16_383);
            let mut word = [0];
            pack(&[gradient], &[f64::from(bin * 31 % 32_767)], (1.0, 1.0), &mut word);
            (0..=bin % 40).for_each(|_| histogram.add_words(&word, bin as usize));
            all += histogram.bins().of(bin as usize);
        }
        let sent = encode(&histogram, all, &starts, false);
        assert!(sent.3.iter().map(|group| group.bytes.len()).sum::<usize>() < 702 * 6);
        let mut found = vec![Sums::default(); 702];
        for columns in [0..300, 300..700, 700..702] {
            let own = AddHistogram.split(&sent, columns.clone()).unwrap();
            for group in &own.3 {
                decode(group, (own.1, own.2), |bin, sums| {
                    if columns.contains(&bin) {
                        found[bin as usize] += sums;
                    }
                })
                .unwrap();
            }
        }
        let expected: Vec<Sums> = (0..702).map(|bin| histogram.bins().of(bin)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn bytes_that_are_no_histogram_are_refused() {
        let count = |bytes: &[u8]| {
            let mut found = 0;
            let group = BinGroup { bins: 0..10, bytes: bytes.to_vec() };
            decode(&group, (0, 0), |_, _| found += 1).map(|()| found)
        };
        assert_eq!(count(&[1, 1, 0, 0b101, 0, 7, 8, 2, 3]), Some(2));
        for bytes in [
            &[1, 1][..],
            &[1, 1, 0, 0b101, 0, 7, 8, 2],
            &[1, 1, 0, 0b101, 0, 7, 8, 2, 3, 4],
            &[1, 1, 0, 0, 0b1000_0000, 7, 8],
            &[9, 0, 0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        ] {
            assert_eq!(count(bytes), None, "{bytes:?}");
        }
        let shape = Shape { element: ElementType::I64, columns: 9, from: 0, into: 3 };
        let group = BinGroup { bins: 0..10, bytes: Vec::new() };
        assert!(AddHistogram.check(&(false, 0, 0, vec![group.clone()]), &shape).is_err());
        let bytes = matrix::function::pack(&group);
        assert_eq!(matrix::function::unpack(&bytes), Ok(group));
        assert!(matrix::function::unpack::<BinGroup>(&[0; 11]).is_err());
    }
}
