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

/// The largest number of single precision that is not above this one. Numbers of single precision are on the same side of both.
pub(super) fn to_single(threshold: f64) -> f32 {
    let nearest = threshold as f32;
    let below = if f64::from(nearest) > threshold { nearest.next_down() } else { nearest };
    below.clamp(f32::MIN, f32::MAX)
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
    fn doubles_between_two_numbers_become_the_smaller_one() {
        for (double, single) in
            [(0.1, 0.1f32.next_down()), (f64::from(0.1f32), 0.1), (1e300, f32::MAX), (-1e300, f32::MIN)]
        {
            assert_eq!(to_single(double), single);
        }
    }
}
