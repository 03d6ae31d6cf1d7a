//! `w = max(w, x)`.

use crate::element::Element;
use crate::rule::PreparedRule;

pub(crate) struct Max;

impl<E: Element> PreparedRule<E> for Max {
    #[inline]
    fn update_row(&self, row: &mut [E], change: &[E]) {
        for (w, &x) in row.iter_mut().zip(change) {
            if x > *w {
                *w = x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_stays() {
        let mut row = [1i64, 2];
        Max.update_row(&mut row, &[5, -6]);
        assert_eq!(row, [5, 2]);
    }
}
