use proptest::prelude::*;

use super::*;

const ROUNDED: [WireType; 2] = [WireType::Bf16, WireType::Int8];

fn rounded(values: &[f32], wire: WireType) -> Vec<f32> {
    match WireValues::encode(OwnedValues::F32(values.to_vec()), wire).into_values() {
        OwnedValues::F32(values) => values,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bf16_is_the_nearest_and_ties_go_to_even() {
    let one = |value: f32| rounded(&[value], WireType::Bf16)[0];
    let ulp = 1.0 / 128.0;
    assert_eq!(one(1.0), 1.0);
    assert_eq!(one(1.0 + ulp / 2.0), 1.0, "a tie, to the even one below");
    assert_eq!(one(1.0 + 1.5 * ulp), 1.0 + 2.0 * ulp, "a tie, to the even one above");
    assert_eq!(one(1.0 + 0.51 * ulp), 1.0 + ulp);
    assert_eq!(one(-1.0 - 0.51 * ulp), -1.0 - ulp);
    assert_eq!(one(-0.0).to_bits(), (-0.0f32).to_bits());
    assert_eq!(one(f32::from_bits(0x8000)), 0.0, "half of the least subnormal, a tie to even");
    assert_eq!(one(f32::from_bits(0x8001)), f32::from_bits(0x1_0000), "the least subnormal");
}

#[test]
fn the_largest_values_stay_finite_and_others_stay_what_they_are() {
    let largest = f32::from_bits(0x7F7F_0000);
    assert_eq!(rounded(&[f32::MAX, -f32::MAX], WireType::Bf16), [largest, -largest]);
    let back = rounded(&[f32::INFINITY, f32::NEG_INFINITY], WireType::Bf16);
    assert_eq!(back, [f32::INFINITY, f32::NEG_INFINITY]);
    // The upper half of this NaN alone would be an infinity.
    assert!(rounded(&[f32::from_bits(0x7F80_0001)], WireType::Bf16)[0].is_nan());
    let back = rounded(&[f32::MAX, -f32::MAX, 1.0], WireType::Int8);
    assert!(back.iter().all(|value| value.is_finite()), "{back:?}");
    assert!(back[0] > 0.99 * f32::MAX && back[1] == -back[0]);
    for bad in [f32::NAN, f32::INFINITY] {
        let mut values = vec![1.0; 300];
        values[7] = bad;
        let back = rounded(&values, WireType::Int8);
        assert!(back[..int8::BLOCK].iter().all(|value| value.is_nan()), "the whole block is NaN");
        assert_eq!(back[int8::BLOCK..], values[int8::BLOCK..], "the next is not");
    }
}

#[test]
fn an_int8_block_has_the_scale_of_its_own_largest_value() {
    let mut values = vec![127.0; int8::BLOCK];
    values[1] = -3.0;
    values[2] = 2.5;
    values[3] = 3.5;
    values.push(0.127);
    values.push(0.001);
    let back = rounded(&values, WireType::Int8);
    assert_eq!(back[..5], [127.0, -3.0, 2.0, 4.0, 127.0], "ties to even");
    assert!((back[int8::BLOCK + 1] - 0.001).abs() < 1e-8, "a block of small values keeps them");
    let section = WireValues::encode(OwnedValues::F32(values.clone()), WireType::Int8);
    assert_eq!(section.byte_count(), values.len() + 2 * 4);
    assert_eq!(rounded(&[int8::SMALLEST / 2.0, 1e-40, 0.0], WireType::Int8), [0.0; 3]);
    assert_ne!(rounded(&[int8::SMALLEST], WireType::Int8), [0.0]);
}

#[test]
fn only_values_of_f32_are_rounded() {
    for wire in WireType::ALL {
        for values in [OwnedValues::F64(vec![0.1]), OwnedValues::I64(vec![3])] {
            assert_eq!(WireValues::encode(values.clone(), wire), WireValues::Exact(values));
        }
        assert_eq!(WireType::from_name(wire.name()), Some(wire));
    }
    assert_eq!(WireType::from_name("f16"), None);
}

/// All finite floats, with a preference for those of ordinary magnitude.
fn finite() -> impl Strategy<Value = f32> {
    let any = any::<u32>().prop_map(f32::from_bits).prop_filter("finite", |value| value.is_finite());
    prop_oneof![any, -2.0f32..2.0]
}

/// Whole numbers of which most are 0 or small.
fn counts() -> impl Strategy<Value = Vec<i32>> {
    prop::collection::vec(prop_oneof![8 => Just(0), 4 => -3i32..4, 1 => any::<i32>()], 0..600)
}

fn packed(bytes: &[u8]) -> packed::Numbers {
    let mut numbers = packed::Numbers::with_room(bytes.len());
    numbers.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
    assert!(numbers.trim(bytes.len()));
    numbers
}

#[test]
fn packed_zeros_cost_nothing_and_numbers_that_would_grow_stay_as_they_are() {
    let mut row = vec![0; 100_000];
    let section = WireValues::encode(OwnedValues::I32(row.clone()), WireType::Packed);
    assert_eq!((section.byte_count(), section.len()), (4, 100_000));
    (row[31], row[50_000], row[50_001]) = (1, -1, 40);
    let section = WireValues::encode(OwnedValues::I32(row.clone()), WireType::Packed);
    // 31 zeros fit a byte, 49,968 take three, and 40 follows its head.
    assert_eq!(section.byte_count(), 4 + 1 + 3 + 2);
    assert_eq!(section.into_values(), OwnedValues::I32(row));
    for values in [vec![], vec![0], vec![i32::MIN; 9]] {
        let values = OwnedValues::I32(values);
        assert_eq!(WireValues::encode(values.clone(), WireType::Packed), WireValues::Exact(values));
    }
}

#[test]
fn packed_bytes_that_no_numbers_have_are_refused() {
    let good = [9, 0, 0, 0, 2 << 2 | 3, 0x80, 1, 5 << 2];
    assert!(packed(&good).is_valid());
    assert_eq!(packed(&good).unpack(), [0, 0, 64, 0, 0, 0, 0, 0, 1]);
    for (bad, why) in [
        (&good[..3], "no number of values"),
        (&good[..5], "no value behind the head"),
        (&good[..6], "a varint without an end"),
        (&[8, 0, 0, 0, 2 << 2 | 3, 0x80, 1, 5 << 2][..], "a value behind the last"),
        (&[9, 0, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x10][..], "a varint of more than 32 bits"),
        (&[0, 0, 0, 0x7F][..], "more values than a frame has"),
    ] {
        assert!(!packed(bad).is_valid(), "{why}");
    }
}

proptest! {
    #[test]
    fn packed_numbers_come_back(values in counts()) {
        let sent = WireValues::encode(OwnedValues::I32(values.clone()), WireType::Packed);
        prop_assert!(sent.byte_count() <= 4 * values.len() && sent.len() == values.len());
        prop_assert_eq!(sent.into_values(), OwnedValues::I32(values));
    }

    #[test]
    fn random_bytes_are_refused_or_unpacked(len in 0u8..100, bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let numbers = packed(&[&[len, 0, 0, 0][..], &bytes].concat());
        prop_assert!(!numbers.is_valid() || numbers.unpack().len() == usize::from(len));
    }

    #[test]
    fn a_value_is_its_rounded_self_plus_its_rest_exactly(values in prop::collection::vec(finite(), 0..600)) {
        for wire in ROUNDED {
            let mut rest = values.clone();
            let sent = WireValues::split(&mut rest, wire);
            prop_assert_eq!(&sent, &WireValues::encode(OwnedValues::F32(values.clone()), wire));
            let OwnedValues::F32(arrived) = sent.into_values() else { panic!() };
            for ((value, rest), arrived) in values.iter().zip(&rest).zip(&arrived) {
                prop_assert!(arrived.is_finite());
                prop_assert_eq!(f64::from(*value), f64::from(*arrived) + f64::from(*rest));
            }
        }
    }

    #[test]
    fn rounding_moves_a_value_by_no_more_than_is_said(values in prop::collection::vec(finite(), 1..600)) {
        // Quotient and product round by up to 127 times 2^-24 scales each, half a scale being the bound; the scale
        // rounds by 2^-24.
        const SLACK: f64 = 1.0 + 509.0 / (1 << 24) as f64;
        for (value, back) in values.iter().zip(rounded(&values, WireType::Bf16)) {
            let (value, back) = (f64::from(*value), f64::from(back));
            let bound = if value.abs() > 3.389e38 { value.abs() / 128.0 } else { value.abs() / 256.0 };
            prop_assert!((value - back).abs() <= bound.max(2f64.powi(-134)), "{value} {back}");
        }
        let back = rounded(&values, WireType::Int8);
        for (values, back) in values.chunks(int8::BLOCK).zip(back.chunks(int8::BLOCK)) {
            let largest = values.iter().fold(0f32, |most, value| most.max(value.abs()));
            let bound = f64::from(largest) / 254.0 * SLACK;
            let bound = if largest < int8::SMALLEST { f64::from(largest) } else { bound };
            for (value, back) in values.iter().zip(back) {
                prop_assert!((f64::from(*value) - f64::from(*back)).abs() <= bound, "{value} {back} {largest}");
            }
        }
    }
}
