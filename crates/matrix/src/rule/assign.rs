//! `w = x`.

use crate::element::Element;
use crate::rule::PreparedRule;

pub(crate) struct Assign;

impl<E: Element> PreparedRule<E> for Assign {
    #[inline]
    fn update_row(&self, row: &mut [E], change: &[E]) {
        for (w, &x) in row.iter_mut().zip(change) {
            *w = x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_wins() {
        let mut row = [1.0f64, 2.0];
        Assign.update_row(&mut row, &[5.0, 6.0]);
        Assign.update_row(&mut row, &[7.0, 8.0]);
        assert_eq!(row, [7.0, 8.0]);
    }
}
