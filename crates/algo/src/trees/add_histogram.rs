//! The push function that adds the histogram of a task to that of a leaf at the partitions, and how a histogram travels.

use std::ops::Range;

use matrix::function::{Arity, Block, FunctionValue, Shape};
use matrix::{ElementType, FunctionFault, PushFunction};

use super::histogram::{Histogram, Sums};
use super::shared::{SLOT_ROWS, groups};

/// Some bins of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BinGroup {
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

/// A histogram as it is pushed: the mean gradient and hessian of a record, and groups of bins.
pub(super) type SentHistogram = (i64, i64, Vec<BinGroup>);

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

/// Adds the sums of a task to the three rows of a slot. The argument has the bins in groups, as bytes: of each bin its count,
/// and by how much gradients and hessians differ from the count times a mean, as numbers of seven bits a byte. A 0 is a
/// run of empty bins, whose length follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddHistogram;

/// Makes the argument of [`AddHistogram`]; `sums`: those of all records of the histogram.
pub(super) fn encode(histogram: &Histogram, sums: Sums, starts: &[u32]) -> SentHistogram {
    let bins = histogram.bins();
    let mean = |sum: i64| if sums.count > 0 { sum / sums.count } else { 0 };
    let means = (mean(sums.gradient), mean(sums.hessian));
    let groups = groups(starts)
        .map(|group| {
            let (mut bytes, mut empty) = (Vec::new(), 0);
            for bin in group.start as usize..group.end as usize {
                let own = bins.of(bin);
                if own.count == 0 {
                    empty += 1;
                    continue;
                }
                put_empty(&mut bytes, &mut empty);
                put(&mut bytes, own.count as u64);
                put(&mut bytes, zigzag(own.gradient - own.count * means.0));
                put(&mut bytes, zigzag(own.hessian - own.count * means.1));
            }
            BinGroup { bins: group, bytes }
        })
        .filter(|group| !group.bytes.is_empty());
    (means.0, means.1, groups.collect())
}

fn put_empty(bytes: &mut Vec<u8>, empty: &mut u64) {
    if *empty > 0 {
        bytes.push(0);
        put(bytes, std::mem::take(empty));
    }
}

/// Writes a number in groups of seven bits, the lowest first; the high bit says that more follow.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 127 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0u64, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 127).checked_shl(shift)?;
        if byte < 128 {
            return Some(number);
        }
        shift += 7;
    }
}

/// Numbers near 0 become small ones without a sign.
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn signed(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Calls `add` with each bin that is not empty.
fn decode(group: &BinGroup, means: (i64, i64), mut add: impl FnMut(u64, Sums)) -> Option<()> {
    let (mut bin, mut bytes) = (u64::from(group.bins.start), &group.bytes[..]);
    while !bytes.is_empty() {
        let count = take(&mut bytes)?;
        if count == 0 {
            bin += take(&mut bytes)?;
            continue;
        }
        let count = count as i64;
        let gradient = signed(take(&mut bytes)?).wrapping_add(count.wrapping_mul(means.0));
        let hessian = signed(take(&mut bytes)?).wrapping_add(count.wrapping_mul(means.1));
        (bin < u64::from(group.bins.end)).then(|| add(bin, Sums { gradient, hessian, count }))?;
        bin += 1;
    }
    Some(())
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

    fn check(&self, (_, _, groups): &SentHistogram, shape: &Shape) -> Result<(), FunctionFault> {
        let fits = groups.iter().all(|group| u64::from(group.bins.end) <= shape.columns);
        if shape.element == ElementType::I64 && fits {
            return Ok(());
        }
        Err(bad_bytes("other bins", format!("bins below {} of a matrix of i64", shape.columns)))
    }

    fn split(
        &self,
        (gradient, hessian, groups): &SentHistogram,
        columns: Range<u64>,
    ) -> Option<SentHistogram> {
        let own = groups.iter().filter(|group| group.meets(&columns)).cloned();
        Some((*gradient, *hessian, own.collect()))
    }

    fn change(
        &self,
        (gradient, hessian, groups): &SentHistogram,
        block: &mut Block<'_>,
    ) -> Result<(), FunctionFault> {
        let Block::I64(block) = block else { unreachable!("the check allows no other elements") };
        let range = block.range();
        let [gradients, hessians, counts] = &mut block.into[..] else {
            unreachable!("a slot has three rows")
        };
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
    use crate::trees::histogram::pack;

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
        let sent = encode(&histogram, all, &starts);
        assert!(sent.2.iter().map(|group| group.bytes.len()).sum::<usize>() < 702 * 6);
        let mut found = vec![Sums::default(); 702];
        for columns in [0..300, 300..700, 700..702] {
            let own = AddHistogram.split(&sent, columns.clone()).unwrap();
            for group in &own.2 {
                decode(group, (own.0, own.1), |bin, sums| {
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
        assert_eq!(count(&[1, 2, 3]), Some(1));
        for bytes in [&[1, 2][..], &[1, 2, 128], &[0, 10, 1, 2, 3], &[255; 30]] {
            assert_eq!(count(bytes), None, "{bytes:?}");
        }
        let shape = Shape { element: ElementType::I64, columns: 9, from: 0, into: 3 };
        let group = BinGroup { bins: 0..10, bytes: Vec::new() };
        assert!(AddHistogram.check(&(0, 0, vec![group.clone()]), &shape).is_err());
        let bytes = matrix::function::pack(&group);
        assert_eq!(matrix::function::unpack(&bytes), Ok(group));
        assert!(matrix::function::unpack::<BinGroup>(&[0; 11]).is_err());
    }
}
