//! Functions as calls of a task. A push function adds to the counters of the task, and a pull function reads all
//! counters. The checker treats them as a push and a pull.

use matrix::function::extreme::TopK;
use matrix::function::map::{Map, Scalar};
use matrix::function::unpack;
use matrix::function::vector_op::VectorOp;
use matrix::{Element, FunctionCall, Keys, MatrixSpec, Selection, with_elements};

use crate::cluster::Cluster;
use crate::task::values;

/// Selects rows of a matrix by row, or columns of the only row of a matrix by column.
pub(crate) fn part<'a>(spec: &MatrixSpec, keys: &'a [u64]) -> Selection<'a> {
    match spec.axis {
        matrix::Axis::Row => Selection::Rows(Keys::Sorted(keys)),
        matrix::Axis::Column => Selection::Columns { row: 0, keys: Keys::Sorted(keys) },
    }
}

/// Adds `amount` to these columns. The argument is a vector that reaches from the first of them to the last.
pub(crate) fn push_call(spec: &MatrixSpec, keys: &[u64], amount: i64) -> FunctionCall {
    let start = keys.first().copied().unwrap_or(0);
    let len = keys.last().map_or(0, |last| last + 1 - start) as usize;
    let mut sent = values(spec.element, 0, len);
    for key in keys {
        let at = (key - start) as usize;
        with_elements!(OwnedValues, &mut sent, values => values[at] = Element::from_f64(amount as f64));
    }
    FunctionCall::push(&VectorOp::Add, &[], &[0], &(start, sent, 1.0))
}

/// Whether a function that is called may fail. It cannot where pushes are staged, nor for integers, which have no
/// roots.
pub(crate) fn may_fail(spec: &MatrixSpec) -> bool {
    !spec.consistency.stages_pushes() && !spec.element.is_integer()
}

/// Changes nothing, but is declared as a function that may fail: it is tried at all lanes before it is pushed.
pub(crate) fn tried_call() -> FunctionCall {
    FunctionCall::push(&Scalar::Power, &[0], &[0], &1.0)
}

/// Fails where `key` lies, and would take the root of all counters elsewhere.
pub(crate) fn failing_calls(spec: &MatrixSpec, key: u64) -> [FunctionCall; 2] {
    let below_zero = (key, values(spec.element, -1, 1), 1.0);
    let put = FunctionCall::push(&VectorOp::Set, &[], &[0], &below_zero);
    [put, FunctionCall::push(&Map::Sqrt, &[0], &[0], &())]
}

/// Pulls all values of the row with their columns.
pub(crate) fn pull_call(spec: &MatrixSpec) -> FunctionCall {
    FunctionCall::pull(&TopK::Value, &[0], &spec.columns)
}

impl Cluster {
    /// Records the answer of a pull function.
    pub(crate) fn answered(&mut self, at: usize, matrix: usize, begun: u64, answer: &[u8]) {
        let all: Vec<(u64, f64)> = unpack(answer).expect("the answer of that function");
        let spec = &self.scenario.counters[matrix].spec;
        assert_eq!(all.len() as u64, spec.columns, "each column once");
        let mut row = vec![0; all.len()];
        for (column, value) in &all {
            row[*column as usize] = *value as i64;
        }
        let cells = self.cells(matrix, u64::MAX);
        let values = cells.iter().map(|cell| row[cell.0 as usize]).collect::<Vec<i64>>();
        self.history.facts.function_pulls += 1;
        self.note_pulled(at, matrix, begun, &cells, &values);
    }
}
