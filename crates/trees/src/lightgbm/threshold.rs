//! Thresholds between single and double precision.

/// A threshold above all numbers.
const ABOVE_ALL: f64 = 1e300;

/// The largest double that, rounded to single precision, is not above this number. So a double is on the same side of the new
/// threshold as its rounded value is of the old one.
pub(super) fn to_double(threshold: f32) -> f64 {
    if threshold == f32::MAX {
        return ABOVE_ALL;
    }
    let middle = f64::midpoint(threshold.into(), threshold.next_up().into());
    // A number in the middle is rounded to the neighbour whose last bit is 0.
    if middle as f32 <= threshold { middle } else { middle.next_down() }
}

/// The number of single precision for a threshold of LightGBM, which is in the middle of two neighbouring values of its training
/// data, or just above: the nearest one, so that decimal numbers, which are rounded to single precision when they are read, are
/// on the same side, also such as the middle itself. Between two values of single precision that are neighbours there, the
/// smaller one.
pub(super) fn to_single(threshold: f64) -> f32 {
    let nearest = threshold.clamp(f32::MIN.into(), f32::MAX.into()) as f32;
    let middle = f64::midpoint(nearest.next_down().into(), nearest.into());
    let is_between_neighbours = f64::from(nearest) > threshold && threshold <= middle.next_up().next_up();
    if is_between_neighbours { nearest.next_down() } else { nearest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_on_the_same_side_of_a_threshold_in_both_precisions() {
        let all = [0.1f32, -0.1, 1.0, 3.5, -2.0, 1e-40, 0.0, 1e30, 16_777_217.0, f32::MIN];
        for threshold in
            all.into_iter().flat_map(|x| [x, x.next_up(), x.next_down()]).filter(|x| x.is_finite())
        {
            let double = to_double(threshold);
            assert_eq!(to_single(double), threshold);
            assert!(double as f32 <= threshold && double.next_up() as f32 > threshold, "{threshold}");
        }
        assert_eq!((to_single(to_double(f32::MAX)), to_double(f32::MAX)), (f32::MAX, 1e300));
    }

    #[test]
    fn thresholds_in_the_middle_of_decimal_numbers_divide_them_as_their_rounded_values() {
        for (a, b) in [(0.644, 0.645), (0.1, 0.2), (-7.3, -7.1), (3.0, 4.0), (1e-3, 2e-3)] {
            let middle = f64::midpoint(a, b);
            for threshold in [middle, middle.next_up()] {
                let single = to_single(threshold);
                assert!(a as f32 <= single && middle as f32 <= single && b as f32 > single, "{a} {b}");
            }
        }
        let (a, b) = (0.7f32, 0.7f32.next_up());
        let middle = f64::midpoint(a.into(), b.into());
        assert_eq!([middle, middle.next_up()].map(to_single), [a, a]);
        assert_eq!([1e300, -1e300].map(to_single), [f32::MAX, f32::MIN]);
    }
}
