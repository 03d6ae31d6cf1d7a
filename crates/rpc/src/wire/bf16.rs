//! bf16: sign, exponent and the upper 7 bits of the fraction of an `f32`. Values are rounded to the nearest, ties to
//! even, so a normal value changes by at most 2^-8 of itself, and a subnormal one by at most 2^-134. A value beyond the
//! largest finite bf16 (3.39e38) becomes that value, not an infinity. NaN and infinities stay what they are.

/// Bits of an infinity.
const INFINITY: u32 = 0x7F80_0000;
/// The largest finite bf16, as bits of an `f32`.
const LARGEST: u32 = 0x7F7F_0000;
const SIGN: u32 = 0x8000_0000;
/// The bit of a quiet NaN.
const QUIET: u32 = 0x0040_0000;

/// The rounded value, as the bits of an `f32` whose lower half is 0.
#[inline]
fn rounded(value: f32) -> u32 {
    let bits = value.to_bits();
    let (sign, size) = (bits & SIGN, bits & !SIGN);
    let nearest = (size + 0x7FFF + (size >> 16 & 1)) & 0xFFFF_0000;
    let finite = nearest.min(LARGEST);
    let other = if size == INFINITY { INFINITY } else { (size | QUIET) & 0xFFFF_0000 };
    sign | if size < INFINITY { finite } else { other }
}

/// Rounds each of n values to the bits of a bf16.
pub fn round(values: &[f32]) -> Vec<u16> {
    values.iter().map(|value| (rounded(*value) >> 16) as u16).collect()
}

/// Rounds each value and leaves the rounding error in `values`; it is exact for finite values.
pub fn split(values: &mut [f32]) -> Vec<u16> {
    let mut bits = vec![0; values.len()];
    for (bits, value) in bits.iter_mut().zip(values) {
        let nearest = rounded(*value);
        *bits = (nearest >> 16) as u16;
        *value -= f32::from_bits(nearest);
    }
    bits
}

/// Converts bf16 bits to values.
pub fn widen(bits: &[u16]) -> Vec<f32> {
    bits.iter().map(|bits| f32::from_bits(u32::from(*bits) << 16)).collect()
}
