//! `w = min(w, x)`.

use crate::element::Element;
use crate::rule::PreparedRule;

pub(crate) struct Min;

impl<E: Element> PreparedRule<E> for Min {
    #[inline]
    fn update_row(&self, row: &mut [E], change: &[E]) {
        for (w, &x) in row.iter_mut().zip(change) {
            if x < *w {
                *w = x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_stays() {
        let mut row = [1.0f32, 2.0];
        Min.update_row(&mut row, &[5.0, -6.0]);
        assert_eq!(row, [1.0, -6.0]);
    }
}
