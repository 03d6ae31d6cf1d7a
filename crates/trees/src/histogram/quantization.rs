//! Gradients and hessians as integers ("Quantized training of gradient boosting decision trees", Shi et al., 2022):
//! sums of integers are the same in any order.

use math::random::{NamedDraws, Purpose};

use super::sums::pack;

/// Bits of a gradient with its sign, and of a hessian, that are rounded to the nearest integer.
pub(in super::super) const EXACT_BITS: u32 = 15;

/// How the gradients of a tree become integers.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Quantizer {
    /// From [`EXACT_BITS`] on to the nearest integer; fewer at random up or down, so that sums are right on average.
    pub(in super::super) bits: u32,
    pub(in super::super) seed: u64,
    pub(in super::super) tree: u64,
    /// Records of the tasks before this one.
    pub(in super::super) records_before: u64,
}

impl Quantizer {
    /// The values of a step, for the largest gradient and the largest hessian of all records.
    pub(in super::super) fn units(&self, most: [f64; 2]) -> [f64; 2] {
        let bits = i32::try_from(self.bits).expect("there are few bits");
        // Steps of a gradient, which has a sign, and of a hessian.
        let steps = [2f64.powi(bits - 1) - 1.0, 2f64.powi(bits) - 1.0];
        [0, 1].map(|i| if most[i] > 0.0 { most[i] / steps[i] } else { 1.0 })
    }

    /// Sets `packed` to a word for each record.
    pub(in super::super) fn pack(
        &self,
        gradients: &[f64],
        hessians: &[f64],
        units: [f64; 2],
        packed: &mut Vec<u64>,
    ) {
        packed.resize(gradients.len(), 0);
        let scales = units.map(|unit| 1.0 / unit);
        if self.bits >= EXACT_BITS {
            return pack(gradients, hessians, (scales[0], scales[1]), packed);
        }
        let draws = NamedDraws::new(self.seed, Purpose::Rounding, self.tree);
        let mut random = (self.records_before..).map(|record| draws.of(record));
        // Half a step less and a random part of a step more: the nearest integer is then above or below.
        let (gradients, hessians): (Vec<f64>, Vec<f64>) = gradients
            .iter()
            .zip(hessians)
            .map(|(gradient, hessian)| {
                let mut draw = random.next().expect("there is a draw for every record");
                let mut round = |x: f64| x + draw.uniform() - 0.5;
                (round(gradient * scales[0]), round(hessian * scales[1]).max(0.0))
            })
            .unzip();
        pack(&gradients, &hessians, (1.0, 1.0), packed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::total;

    #[test]
    fn sums_of_few_bits_are_right_on_average_and_follow_the_records() {
        let gradients: Vec<f64> = (0..20_000).map(|i| f64::from(i % 7) / 7.0 - 0.4).collect();
        let hessians: Vec<f64> = (0..20_000).map(|i| f64::from(i % 11) / 11.0).collect();
        let most = [0.6, 1.0];
        let all: Vec<u32> = (0..20_000).collect();
        for (bits, error) in [(15, 1e-4), (8, 2e-3), (4, 2e-2)] {
            let whole = Quantizer { bits, seed: 1, tree: 2, records_before: 0 };
            let units = whole.units(most);
            let mut packed = Vec::new();
            whole.pack(&gradients, &hessians, units, &mut packed);
            let sums = total(&all, &packed);
            let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / 20_000.0;
            assert!((sums.gradient as f64 * units[0] / 20_000.0 - mean(&gradients)).abs() < error);
            assert!((sums.hessian as f64 * units[1] / 20_000.0 - mean(&hessians)).abs() < error);
            let (mut part, cut) = (Vec::new(), 12_345);
            let rest = Quantizer { records_before: cut as u64, ..whole };
            rest.pack(&gradients[cut..], &hessians[cut..], units, &mut part);
            assert_eq!(part, packed[cut..]);
        }
    }
}
