//! `w += x`.

use crate::element::Element;
use crate::rule::PreparedRule;

pub(crate) struct Add;

impl<E: Element> PreparedRule<E> for Add {
    #[inline]
    fn update_row(&self, row: &mut [E], change: &[E]) {
        for (w, &x) in row.iter_mut().zip(change) {
            *w = w.plus(x);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_summed() {
        let mut row = [1i64, i64::MAX];
        Add.update_row(&mut row, &[5, 1]);
        assert_eq!(row, [6, i64::MIN], "integers wrap, so that the order of pushes never matters");
        let mut row = [0.5f32];
        Add.update_row(&mut row, &[0.25]);
        assert_eq!(row, [0.75]);
    }
}
