//! What a function sees of a partition: the same columns of a few rows, with the number of the first.

use std::ops::Range;

use crate::element::{Element, ElementType, Values};
use crate::function::FunctionFault;

/// Columns of some rows, to read.
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

    /// The numbers of the columns in the matrix.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start + self.len as u64
    }

    /// The number of columns.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no column.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of rows in the call.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// The type of the elements.
    pub fn element_type(&self) -> Option<ElementType> {
        self.rows.first().map(Values::element_type)
    }

    /// The `i`-th row of the call.
    ///
    /// # Panics
    /// When the call has no such row; [`super::Arity`] says how many there are.
    pub fn row(&self, i: usize) -> Values<'a> {
        self.rows[i]
    }

    /// As [`Self::row`], of one type.
    pub fn typed<E: Element>(&self, i: usize) -> Result<&'a [E], FunctionFault> {
        let row = self.row(i);
        E::slice(row).ok_or_else(|| wrong_type(row.element_type(), E::TYPE))
    }

    /// All rows of the call, of the type of its first.
    pub(crate) fn typed_rows<E: Element>(&self, first: &'a [E]) -> Result<Vec<&'a [E]>, FunctionFault> {
        let rest = (1..self.row_count()).map(|i| self.typed(i));
        std::iter::once(Ok(first)).chain(rest).collect()
    }
}

/// A block of columns of the rows that a push function reads and writes. The runner chooses the blocks, so that a
/// function treats each column by itself.
#[derive(Debug)]
pub enum Block<'a> {
    /// Of an `f32` matrix.
    F32(TypedBlock<'a, f32>),
    /// Of an `f64` matrix.
    F64(TypedBlock<'a, f64>),
    /// Of an `i64` matrix.
    I64(TypedBlock<'a, i64>),
}

/// A block of one element type.
#[derive(Debug)]
pub struct TypedBlock<'a, E> {
    /// The number of the first column.
    pub start: u64,
    /// The rows to read, as they were before the call. A row may also stand in `into`.
    pub from: Vec<&'a [E]>,
    /// The rows to write, with the values that they have.
    pub into: Vec<&'a mut [E]>,
    /// The numbers of the rows of `into` in the matrix.
    pub into_rows: &'a [u32],
}

impl<E> TypedBlock<'_, E> {
    /// The number of columns.
    pub fn len(&self) -> usize {
        let from = self.from.first().map(|row| row.len());
        from.or(self.into.first().map(|row| row.len())).unwrap_or(0)
    }

    /// Whether there is no column.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers of the columns in the matrix.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start + self.len() as u64
    }
}

/// The same expression on a block of each element type.
macro_rules! with_block {
    ($block:expr, $typed:ident => $body:expr) => {
        match $block {
            $crate::function::Block::F32($typed) => $body,
            $crate::function::Block::F64($typed) => $body,
            $crate::function::Block::I64($typed) => $body,
        }
    };
}
pub(crate) use with_block;

impl<'a> Block<'a> {
    /// The type of the elements.
    pub fn element_type(&self) -> ElementType {
        match self {
            Block::F32(_) => ElementType::F32,
            Block::F64(_) => ElementType::F64,
            Block::I64(_) => ElementType::I64,
        }
    }

    /// The block, if it is of `f32`.
    pub fn f32(&mut self) -> Result<&mut TypedBlock<'a, f32>, FunctionFault> {
        let actual = self.element_type();
        if let Block::F32(block) = self { Ok(block) } else { Err(wrong_type(actual, ElementType::F32)) }
    }

    /// The block, if it is of `f64`.
    pub fn f64(&mut self) -> Result<&mut TypedBlock<'a, f64>, FunctionFault> {
        let actual = self.element_type();
        if let Block::F64(block) = self { Ok(block) } else { Err(wrong_type(actual, ElementType::F64)) }
    }

    /// Calls `change` for each column: its number, the values of the rows to read, those of the rows to write. Slower than
    /// loops of your own over [`TypedBlock`], and the same for all element types.
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
