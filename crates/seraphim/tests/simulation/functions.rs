//! Functions as calls of a task. A push function adds to the counters of the task, a pull function reads all counters: they
//! mean what a push and a pull mean, and the checker takes them for such.

use matrix::function::extreme::TopK;
use matrix::function::map::{Map, Scalar};
use matrix::function::unpack;
use matrix::function::vector_op::VectorOp;
use matrix::{ElementType, FunctionCall, Keys, MatrixSpec, OwnedValues, Selection};

use crate::cluster::Cluster;
use crate::task::values;

/// Rows of a matrix by row, columns of the only row of one by column.
pub(crate) fn part<'a>(spec: &MatrixSpec, keys: &'a [u64]) -> Selection<'a> {
    match spec.axis {
        matrix::Axis::Row => Selection::Rows(Keys::Sorted(keys)),
        matrix::Axis::Column => Selection::Columns { row: 0, keys: Keys::Sorted(keys) },
    }
}

/// Adds `amount` to these columns, by a vector that is sent along and reaches from the first of them to the last.
pub(crate) fn push_call(spec: &MatrixSpec, keys: &[u64], amount: i64) -> FunctionCall {
    let start = keys.first().copied().unwrap_or(0);
    let len = keys.last().map_or(0, |last| last + 1 - start) as usize;
    let mut sent = values(spec.element, 0, len);
    for key in keys {
        let at = (key - start) as usize;
        match &mut sent {
            OwnedValues::F32(values) => values[at] = amount as f32,
            OwnedValues::F64(values) => values[at] = amount as f64,
            OwnedValues::I64(values) => values[at] = amount,
        }
    }
    FunctionCall::push(&VectorOp::Add, &[], &[0], &(start, sent, 1.0))
}

/// Whether functions are known to fail when they are called: not where they are staged, nor where numbers have no roots.
pub(crate) fn may_fail(spec: &MatrixSpec) -> bool {
    !spec.consistency.stages_pushes() && spec.element != ElementType::I64
}

/// Does nothing, and says that it may fail: it is tried at all lanes before it is pushed.
pub(crate) fn tried_call() -> FunctionCall {
    FunctionCall::push(&Scalar::Power, &[0], &[0], &1.0)
}

/// Fails where `key` lies, and would take the root of all counters elsewhere.
pub(crate) fn failing_calls(spec: &MatrixSpec, key: u64) -> [FunctionCall; 2] {
    let below_zero = (key, values(spec.element, -1, 1), 1.0);
    let put = FunctionCall::push(&VectorOp::Put, &[], &[0], &below_zero);
    [put, FunctionCall::push(&Map::Sqrt, &[0], &[0], &())]
}

/// Asks for all values of the row with their columns.
pub(crate) fn pull_call(spec: &MatrixSpec) -> FunctionCall {
    FunctionCall::pull(&TopK::Value, &[0], &spec.columns)
}

impl Cluster {
    /// A pull function has been answered.
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
