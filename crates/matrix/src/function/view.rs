//! The view of a partition that a function gets: the same columns of a few rows, with the number of the first column.

use std::ops::Range;

use crate::element::{Element, ElementType, Values};
use crate::function::FunctionFault;

/// Columns of some rows, for reading.
#[derive(Debug)]
pub struct Columns<'a> {
    start: u64,
    len: usize,
    rows: Vec<Values<'a>>,
}

impl<'a> Columns<'a> {
    pub(crate) fn new(start: u64, len: usize, rows: Vec<Values<'a>>) -> Self {
        Self { start, len, rows }
    }

    /// Returns the column numbers in the matrix.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start + self.len as u64
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of rows in the call.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// The element type; `None` when the call has no rows.
    pub fn element_type(&self) -> Option<ElementType> {
        self.rows.first().map(Values::element_type)
    }

    /// Returns the `i`-th row of the call.
    ///
    /// # Panics
    /// When the call has no such row; [`super::Arity`] says how many there are.
    pub fn row(&self, i: usize) -> Values<'a> {
        self.rows[i]
    }

    /// Returns the `i`-th row as a slice of one type.
    pub fn typed<E: Element>(&self, i: usize) -> Result<&'a [E], FunctionFault> {
        let row = self.row(i);
        E::slice(row).ok_or_else(|| wrong_type(row.element_type(), E::TYPE))
    }

    /// Returns all rows of the call as slices of the element type of `first`, which is the first row.
    pub fn typed_rows<E: Element>(&self, first: &'a [E]) -> Result<Vec<&'a [E]>, FunctionFault> {
        let rest = (1..self.row_count()).map(|i| self.typed(i));
        std::iter::once(Ok(first)).chain(rest).collect()
    }
}

/// A block of columns of the rows that a push function reads and writes. The runner chooses the blocks, so a function
/// must treat each column by itself.
#[derive(Debug)]
pub enum Block<'a> {
    F32(TypedBlock<'a, f32>),
    F64(TypedBlock<'a, f64>),
    I64(TypedBlock<'a, i64>),
    I32(TypedBlock<'a, i32>),
    U32(TypedBlock<'a, u32>),
}

/// A block of one element type.
#[derive(Debug)]
pub struct TypedBlock<'a, E> {
    /// Number of the first column.
    pub start: u64,
    /// Rows to read, as they were before the call. A row may also be in `into`.
    pub from: Vec<&'a [E]>,
    /// Rows to write, with their current values.
    pub into: Vec<&'a mut [E]>,
    /// Numbers of the rows of `into` in the matrix.
    pub into_rows: &'a [u32],
}

impl<E> TypedBlock<'_, E> {
    /// Number of columns.
    pub fn len(&self) -> usize {
        let from = self.from.first().map(|row| row.len());
        from.or(self.into.first().map(|row| row.len())).unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the column numbers in the matrix.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start + self.len() as u64
    }
}

/// Expands to the same expression for a block of each element type.
#[macro_export]
macro_rules! with_block {
    ($block:expr, $typed:ident => $body:expr) => {
        match $block {
            $crate::function::Block::F32($typed) => $body,
            $crate::function::Block::F64($typed) => $body,
            $crate::function::Block::I64($typed) => $body,
            $crate::function::Block::I32($typed) => $body,
            $crate::function::Block::U32($typed) => $body,
        }
    };
}
pub use with_block;

impl<'a> Block<'a> {
    pub fn element_type(&self) -> ElementType {
        fn type_of<E: Element>(_: &TypedBlock<'_, E>) -> ElementType {
            E::TYPE
        }
        with_block!(self, block => type_of(block))
    }

    /// Returns the block if its element type is `f32`.
    pub fn f32(&mut self) -> Result<&mut TypedBlock<'a, f32>, FunctionFault> {
        let actual = self.element_type();
        if let Block::F32(block) = self { Ok(block) } else { Err(wrong_type(actual, ElementType::F32)) }
    }

    /// Returns the block if its element type is `f64`.
    pub fn f64(&mut self) -> Result<&mut TypedBlock<'a, f64>, FunctionFault> {
        let actual = self.element_type();
        if let Block::F64(block) = self { Ok(block) } else { Err(wrong_type(actual, ElementType::F64)) }
    }

    /// Calls `change` for each column with its number, the values of the rows to read, and those of the rows to write.
    /// It is slower than your own loops over [`TypedBlock`], but the same code serves all element types.
    pub fn each_column(&mut self, mut change: impl FnMut(u64, &[f64], &mut [f64])) {
        with_block!(self, block => {
            let (mut from, mut into) = (vec![0.0; block.from.len()], vec![0.0; block.into.len()]);
            for i in 0..block.len() {
                from.iter_mut().zip(&block.from).for_each(|(x, row)| *x = row[i].to_f64());
                into.iter_mut().zip(&block.into).for_each(|(x, row)| *x = row[i].to_f64());
                change(block.start + i as u64, &from, &mut into);
                into.iter().zip(&mut block.into).for_each(|(x, row)| row[i] = Element::from_f64(*x));
            }
        });
    }
}

fn wrong_type(actual: ElementType, expected: ElementType) -> FunctionFault {
    FunctionFault::argument("element type of the matrix", format!("{actual:?}"), format!("{expected:?}"))
}
