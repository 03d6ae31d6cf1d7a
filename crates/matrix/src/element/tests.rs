use super::*;

#[test]
fn a_non_finite_value_is_found_wherever_it_stands() {
    for len in [1usize, 63, 64, 65, 200] {
        assert_eq!(f32::first_non_finite(&vec![f32::MAX; len]), None, "large is not infinite");
        for at in 0..len {
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut values = vec![1.0; len];
                values[at] = bad;
                assert_eq!(f32::first_non_finite(&values), Some(at));
            }
        }
    }
    assert_eq!(f64::first_non_finite(&[0.0, f64::NAN]), Some(1));
    assert_eq!(i64::first_non_finite(&[i64::MAX]), None);
    assert_eq!(i32::first_non_finite(&[i32::MAX, 3, i32::MIN]), Some(2));
}

#[test]
fn a_count_that_has_overflowed_stays_so() {
    assert_eq!(i32::MAX.plus(1), i32::MIN);
    assert_eq!(i32::MIN.plus(5), i32::MIN);
    assert_eq!((i32::MIN + 1).plus(-1), i32::MIN, "the marker itself is no number");
    assert_eq!(u32::MAX.plus(0), u32::MAX);
    assert_eq!((u32::MAX - 1).plus(1), u32::MAX);
    assert_eq!((3i32.plus(-4), 3u32.plus(4)), (-1, 7));
    assert_eq!((i32::from_f64(3e9), i32::from_f64(-1.9), u32::from_f64(-1.0)), (i32::MIN, -1, u32::MAX));
}

#[test]
fn values_know_their_type_and_length() {
    let owned = f64::owned(vec![1.0, 2.0]);
    assert_eq!((owned.element_type(), owned.len()), (ElementType::F64, 2));
    assert_eq!(f64::slice(owned.as_values()), Some(&[1.0, 2.0][..]));
    assert_eq!(f32::slice(owned.as_values()), None);
}
