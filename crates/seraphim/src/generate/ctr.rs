//! Click data of any size with a known best model.
//!
//! A record has `nonzeros` slots; slot `s` draws one feature from its own range of ids. The sizes of the ranges grow
//! geometrically from 4 and add up to `dimensions`; inside a range ids follow a power law with exponent `zipf`,
//! scattered over the range, so that hot ids are not neighbours. The true model is logistic: `bias` plus the weights of
//! the record's ids, each a standard normal of the hash of the id, times `sigma`. All values are 1.
//!
//! Every number is a hash of (seed, split, record, slot), so any number of threads can make records in any order.

use std::f64::consts::PI;

use engine::math::elementary::cos;
use engine::math::elementary::ln;
use engine::math::elementary::pow;
use engine::math::elementary::sigmoid;
use engine::math::hash::mix64;

/// Size of the first range, and minimum size of a range before rounding.
const FIRST_RANGE: f64 = 4.0;
/// Minimum size of a range.
const SMALLEST_RANGE: u64 = 2;
/// Number of bisection steps for the growth of ranges; the result has fewer bits.
const BISECTIONS: usize = 200;
/// The stride that scatters ids is about this share of the range (the golden section).
const SCATTER: f64 = 0.618;
/// Factor of the seed in the hash of weights, so that another seed gives other weights.
const WEIGHT_SEED: u64 = 0x51ED_2701;
/// Number of partial sums with which `numpy.sum` adds a row of 8 to 128 numbers.
const SUM_LANES: usize = 8;

/// Settings of the generator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CtrConfig {
    /// Number of possible features.
    pub dimensions: u64,
    /// Number of features per record.
    pub nonzeros: usize,
    /// Exponent of the power law, above 0 and not 1.
    pub zipf: f64,
    /// Standard deviation of the true weights.
    pub sigma: f64,
    /// True intercept.
    pub bias: f64,
    /// Seed of records and weights.
    pub seed: u64,
}

/// The range of ids of one slot.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slot {
    size: u64,
    start: u64,
    stride: u64,
    /// `size ^ (1 - zipf) - 1`.
    power: f64,
}

#[derive(Clone, Debug)]
pub struct CtrData {
    config: CtrConfig,
    slots: Vec<Slot>,
}

/// A generated record.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Feature ids from 0, one per slot, ascending.
    pub ids: Vec<u64>,
    /// True probability of label 1.
    pub probability: f64,
    /// 0 or 1.
    pub label: u8,
    weights: Vec<f64>,
}

/// Returns a uniform number in `[0, 1)` from 53 bits of the mixed number.
fn uniform(x: u64) -> f64 {
    (mix64(x) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

impl CtrData {
    /// Computes the ranges of the slots.
    ///
    /// # Panics
    /// When a slot would have fewer than two ids: `dimensions` must be at least `4 * nonzeros`.
    pub fn new(config: CtrConfig) -> Self {
        let sizes = slot_sizes(config.dimensions, config.nonzeros);
        let mut start = 0;
        let slots = sizes
            .into_iter()
            .map(|size| {
                let power = pow(size as f64, 1.0 - config.zipf) - 1.0;
                let slot = Slot { size, start, stride: stride(size), power };
                start += size;
                slot
            })
            .collect();
        Self { config, slots }
    }

    /// Number of features per record.
    pub fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// Sizes of the ranges of all slots.
    pub fn slot_sizes(&self) -> Vec<u64> {
        self.slots.iter().map(|slot| slot.size).collect()
    }

    /// Computes record `row` of a split (0 train, 1 test).
    pub fn record(&self, split: u64, row: u64, out: &mut Record) {
        let config = &self.config;
        let base = (config.seed << 40) ^ (split << 36);
        let first = row.wrapping_mul(self.slots.len() as u64 + 1).wrapping_add(base);
        let draw = |slot: u64| uniform(mix64(first.wrapping_add(slot)) ^ base);
        let exponent = 1.0 / (1.0 - config.zipf);
        out.ids.clear();
        out.weights.clear();
        for (s, slot) in (0u64..).zip(&self.slots) {
            let rank = pow(slot.power * draw(s) + 1.0, exponent).floor() as i64 - 1;
            let rank = rank.clamp(0, slot.size as i64 - 1) as u64;
            let id = slot.start + rank.wrapping_mul(slot.stride) % slot.size;
            out.ids.push(id);
            out.weights.push(self.weight(id));
        }
        let logit = config.bias + sum(&out.weights);
        out.probability = sigmoid(logit);
        out.label = u8::from(draw(self.slots.len() as u64) < out.probability);
    }

    /// Returns the true weight of a feature: normal by Box and Muller (1958) from two hashes of the id.
    fn weight(&self, id: u64) -> f64 {
        let at = id.wrapping_mul(2).wrapping_add(self.config.seed.wrapping_mul(WEIGHT_SEED));
        let (u, v) = (uniform(at), uniform(at.wrapping_add(1)));
        self.config.sigma * (-2.0 * ln(1.0 - u)).sqrt() * cos(2.0 * PI * v)
    }
}

/// Returns geometric sizes from 4 upwards, whose sum is `dimensions`.
fn slot_sizes(dimensions: u64, nonzeros: usize) -> Vec<u64> {
    let total = |ratio: f64| (0..nonzeros).map(|s| FIRST_RANGE * pow(ratio, s as f64)).sum::<f64>();
    let (mut low, mut high) = (1.0, 10.0);
    for _ in 0..BISECTIONS {
        let middle = f64::midpoint(low, high);
        if total(middle) < dimensions as f64 {
            low = middle;
        } else {
            high = middle;
        }
    }
    let size = |s: usize| ((FIRST_RANGE * pow(low, s as f64)) as u64).max(SMALLEST_RANGE);
    let mut sizes: Vec<u64> = (0..nonzeros).map(size).collect();
    let others: u64 = sizes.iter().rev().skip(1).sum();
    let last = sizes.last_mut().expect("a record has at least one slot");
    assert!(others + SMALLEST_RANGE <= dimensions, "{dimensions} dimensions do not fill {nonzeros} slots");
    *last = dimensions - others;
    sizes
}

/// Returns the first odd number from the golden section upwards that has no common divisor with `size`.
fn stride(size: u64) -> u64 {
    let mut stride = (size as f64 * SCATTER) as u64 | 1;
    while gcd(stride, size) != 1 {
        stride += 2;
    }
    stride
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Sums in the order in which numpy sums a contiguous row, so that the result has the same bits as the reference
/// generator.
fn sum(items: &[f64]) -> f64 {
    if items.len() < SUM_LANES {
        return items.iter().fold(0.0, |sum, x| sum + x);
    }
    let (chunks, rest) = items.as_chunks::<SUM_LANES>();
    let mut r = chunks[0];
    for chunk in &chunks[1..] {
        r.iter_mut().zip(chunk).for_each(|(r, x)| *r += x);
    }
    let folded = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    rest.iter().fold(folded, |sum, x| sum + x)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: CtrConfig =
        CtrConfig { dimensions: 10_000_000, nonzeros: 40, zipf: 1.1, sigma: 0.22, bias: -1.5, seed: 1 };

    #[test]
    fn ranges_add_up_and_grow_as_in_the_reference_generator() {
        let sizes = CtrData::new(CONFIG).slot_sizes();
        assert_eq!(sizes.iter().sum::<u64>(), CONFIG.dimensions);
        assert_eq!(sizes[..8], [4, 5, 7, 11, 15, 22, 31, 45]);
        assert_eq!(sizes[36..], [1_035_741, 1_464_259, 2_070_067, 2_926_535]);
    }

    #[test]
    fn ids_lie_in_the_range_of_their_slot() {
        let data = CtrData::new(CONFIG);
        let mut record = Record::default();
        for row in 0..1000 {
            data.record(1, row, &mut record);
            for (id, slot) in record.ids.iter().zip(&data.slots) {
                assert!((slot.start..slot.start + slot.size).contains(id));
            }
        }
    }

    #[test]
    fn a_record_hangs_on_its_number_alone() {
        let data = CtrData::new(CONFIG);
        let (mut a, mut b) = (Record::default(), Record::default());
        data.record(0, 77, &mut a);
        data.record(0, 5, &mut b);
        data.record(0, 77, &mut b);
        assert_eq!((a.ids, a.label, a.probability), (b.ids, b.label, b.probability));
    }

    #[test]
    fn records_are_those_of_the_reference_generator() {
        // The other library has another logarithm.
        const ROUNDING: f64 = 1e-12;
        let few = CtrConfig { dimensions: 1000, nonzeros: 5, zipf: 0.7, sigma: 0.5, bias: 0.25, seed: 3 };
        let smallest = CtrConfig { dimensions: 32, nonzeros: 8, zipf: 1.1, sigma: 0.5, bias: 0.0, seed: 2 };
        let cases = [
            (few, 0, 12345, vec![0, 12, 36, 133, 924], 0.5721205202291824, 1),
            (smallest, 1, 3, vec![2, 4, 8, 12, 16, 22, 26, 28], 0.31555145531639134, 1),
            (CONFIG, 1, 77, vec![0, 7, 9, 16, 27, 42, 64, 105], 0.10645170436434806, 0),
        ];
        for (config, split, row, ids, probability, label) in cases {
            let data = CtrData::new(config);
            let mut record = Record::default();
            data.record(split, row, &mut record);
            assert_eq!((record.ids.len(), data.slot_count()), (config.nonzeros, config.nonzeros));
            assert_eq!((&record.ids[..ids.len()], record.label), (&ids[..], label), "row {row}");
            assert!((record.probability - probability).abs() < ROUNDING, "{}", record.probability);
        }
    }

    #[test]
    fn sums_have_the_bits_of_numpy() {
        let term = |i: u32| {
            let sign = if i.is_multiple_of(3) { 1.0 } else { -1.0 };
            f64::from(i * i + 1) / 7.0 * sign * 10f64.powi((i % 5) as i32)
        };
        // Of numpy 2: the order of the terms decides on the last bits.
        let expected = [
            (3, -74.14285714285714),
            (8, -23596.42857142857),
            (11, 84246.28571428571),
            (16, -219538.57142857142),
            (27, 46397.57142857153),
        ];
        for (count, value) in expected {
            assert_eq!(sum(&(0..count).map(term).collect::<Vec<_>>()), value, "{count} terms");
        }
    }

    #[test]
    #[should_panic(expected = "7 dimensions do not fill 3 slots")]
    fn a_slot_has_two_ids_at_least() {
        slot_sizes(7, 3);
    }

    #[test]
    fn strides_reach_every_id() {
        for size in [2, 3, 4, 90, 1439, 2_926_535] {
            let stride = stride(size);
            assert_eq!(
                (2..=size).find(|n| stride.is_multiple_of(*n) && size.is_multiple_of(*n)),
                None,
                "{stride} and {size}"
            );
        }
    }
}
