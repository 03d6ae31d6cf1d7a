//! Long vectors that are stored at the partitions. They are rows of one matrix, so that all vectors have the same
//! partitions.
//!
//! Arithmetic runs at the partitions and only scalars are sent. The calls follow the consistency of the matrix: under
//! BSP a change of a vector is visible after the tick. A single task that drives the computation uses ASP.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::agent::{Agent, Keys, MatrixId, Selection};
use crate::clock::Consistency;
use crate::element::{ElementType, OwnedValues, Values};
use crate::error::Error;
use crate::function::call::call_pull;
use crate::function::extreme::{Extreme, FirstDifference, TopK};
use crate::function::map::{Map, Scalar, Set};
use crate::function::reduce::{CountNonZero, Dot, Gram, Reduce};
use crate::function::sum::even_starts;
use crate::function::vector_op::VectorOp;
use crate::function::zip::{Axpy, Combine, CopyRow, Zip};
use crate::function::{FunctionCall, FunctionFault, PullFunction, PushFunction};
use crate::initializer::Initializer;
use crate::partitioner::Partitioner;
use crate::rule::PushRule;
use crate::spec::{Axis, MatrixSpec, Storage};

/// Maximum number of values in one call: they must fit in one frame, also when all go to one lane.
const PUT_VALUE_LIMIT: usize = 4 << 20;

/// The rows of a matrix, to be used as vectors. There is one pool for each matrix. When several tasks make a pool of
/// the same matrix, they must create and release vectors in the same order, so that the vectors have the same rows.
#[derive(Clone, Debug)]
pub struct VectorPool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    matrix: MatrixId,
    name: String,
    element: ElementType,
    columns: u64,
    rows: usize,
    free: Mutex<BTreeSet<u32>>,
}

impl VectorPool {
    /// Returns the spec of a matrix of `rows` vectors: dense, with additive pushes, cut so that partial answers of sums
    /// are short.
    pub fn spec(
        name: &str,
        element: ElementType,
        rows: u32,
        columns: u64,
        partition_count: u32,
        consistency: Consistency,
    ) -> MatrixSpec {
        MatrixSpec {
            name: name.to_owned(),
            element,
            rows: u64::from(rows),
            columns,
            axis: Axis::Column,
            storage: Storage::Dense,
            partitioner: Partitioner::Explicit { starts: even_starts(columns, partition_count) },
            initializer: Initializer::Zero,
            rule: PushRule::Add,
            consistency,
            seed: 0,
        }
    }

    /// Makes a pool of all rows of a matrix that was created with `spec`. Nothing else may use these rows.
    pub fn new(matrix: MatrixId, spec: &MatrixSpec) -> Result<Self, Error> {
        spec.check_shape()?;
        if spec.axis == Axis::Row {
            let (axis, asked) = ("row", "column");
            return Err(Error::WrongAxis { matrix: spec.name.clone(), axis, asked });
        }
        let free = Mutex::new((0..spec.rows as u32).collect());
        let (name, element, columns) = (spec.name.clone(), spec.element, spec.columns);
        let rows = spec.rows as usize;
        Ok(Self { shared: Arc::new(Shared { matrix, name, element, columns, rows, free }) })
    }

    /// Number of columns of each vector.
    pub fn columns(&self) -> u64 {
        self.shared.columns
    }

    /// Number of vectors that can still be created.
    pub fn free_count(&self) -> usize {
        self.shared.free.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Creates a vector of zeros in the first free row.
    pub fn create(&self, agent: &mut (impl Agent + ?Sized)) -> Result<ServerVector, Error> {
        let taken = self.shared.free.lock().unwrap_or_else(PoisonError::into_inner).pop_first();
        let row = taken
            .ok_or_else(|| self.shared.error("create", FunctionFault::PoolFull { rows: self.shared.rows }))?;
        let mut vector = ServerVector { pool: Arc::clone(&self.shared), row, is_live: true };
        vector.set(agent, 0.0)?;
        Ok(vector)
    }

    /// Computes the inner products of all pairs in one visit. [`Gram::index`] gives the index of a pair in the result.
    pub fn gram(
        &self,
        agent: &mut (impl Agent + ?Sized),
        vectors: &[&ServerVector],
    ) -> Result<Vec<f64>, Error> {
        let rows = self.shared.rows_of("gram", vectors)?;
        call_pull(agent, self.shared.matrix, &Gram, &rows, &())
    }

    /// Runs several push functions in one visit, on rows from [`ServerVector::row`].
    pub fn run(&self, agent: &mut (impl Agent + ?Sized), steps: &[FunctionCall]) -> Result<(), Error> {
        agent.push_function(self.shared.matrix, steps)
    }
}

impl Shared {
    fn error(&self, function: &str, fault: FunctionFault) -> Error {
        Error::function(&self.name, function, fault)
    }

    /// Returns the rows of live vectors of this pool.
    fn rows_of(self: &Arc<Self>, function: &str, vectors: &[&ServerVector]) -> Result<Vec<u32>, Error> {
        let row = |vector: &&ServerVector| {
            if !Arc::ptr_eq(&vector.pool, self) {
                let (first, second) = (self.name.clone(), vector.pool.name.clone());
                return Err(self.error(function, FunctionFault::DifferentPools { first, second }));
            }
            vector.row_for(function)
        };
        vectors.iter().map(row).collect()
    }
}

/// A long vector at the partitions. Dropping it returns its row to the pool.
#[derive(Debug)]
pub struct ServerVector {
    pool: Arc<Shared>,
    row: u32,
    is_live: bool,
}

impl Drop for ServerVector {
    fn drop(&mut self) {
        self.release();
    }
}

impl ServerVector {
    /// Returns the row to the pool now. Every later call is an error.
    pub fn release(&mut self) {
        if std::mem::take(&mut self.is_live) {
            self.pool.free.lock().unwrap_or_else(PoisonError::into_inner).insert(self.row);
        }
    }

    /// Returns the row in the matrix, for functions of your own.
    pub fn row(&self) -> Result<u32, Error> {
        self.row_for("row")
    }

    fn row_for(&self, function: &str) -> Result<u32, Error> {
        if self.is_live {
            return Ok(self.row);
        }
        Err(self.pool.error(function, FunctionFault::ReleasedVector { row: self.row }))
    }

    /// Runs a pull function on this vector and `others`.
    pub fn pull_function<F: PullFunction>(
        &self,
        agent: &mut (impl Agent + ?Sized),
        function: &F,
        others: &[&ServerVector],
        argument: &F::Argument,
    ) -> Result<F::Answer, Error> {
        let mut rows = vec![self.row_for(function.name())?];
        rows.extend(self.pool.rows_of(function.name(), others)?);
        call_pull(agent, self.pool.matrix, function, &rows, argument)
    }

    /// Runs a push function on `from` and assigns its result to this vector.
    pub fn assign_function<F: PushFunction>(
        &mut self,
        agent: &mut (impl Agent + ?Sized),
        function: &F,
        from: &[&ServerVector],
        argument: &F::Argument,
    ) -> Result<(), Error> {
        let into = self.row_for(function.name())?;
        let from = self.pool.rows_of(function.name(), from)?;
        self.push_call(agent, &FunctionCall::push(function, &from, &[into], argument))
    }

    /// Does the same as [`Self::assign_function`], with this vector between `before` and `after` among the rows read.
    fn apply_function<F: PushFunction>(
        &mut self,
        agent: &mut (impl Agent + ?Sized),
        function: &F,
        before: &[&ServerVector],
        after: &[&ServerVector],
        argument: &F::Argument,
    ) -> Result<(), Error> {
        let own = self.row_for(function.name())?;
        let mut from = self.pool.rows_of(function.name(), before)?;
        from.push(own);
        from.extend(self.pool.rows_of(function.name(), after)?);
        self.push_call(agent, &FunctionCall::push(function, &from, &[own], argument))
    }

    fn push_call(&self, agent: &mut (impl Agent + ?Sized), call: &FunctionCall) -> Result<(), Error> {
        agent.push_function(self.pool.matrix, std::slice::from_ref(call))
    }

    /// `sum x y`.
    pub fn dot(&self, agent: &mut (impl Agent + ?Sized), other: &ServerVector) -> Result<f64, Error> {
        self.pull_function(agent, &Dot, &[other], &())
    }

    /// `sum x`.
    pub fn sum(&self, agent: &mut (impl Agent + ?Sized)) -> Result<f64, Error> {
        self.pull_function(agent, &Reduce::Sum, &[], &())
    }

    /// `sum |x|`.
    pub fn norm_1(&self, agent: &mut (impl Agent + ?Sized)) -> Result<f64, Error> {
        self.pull_function(agent, &Reduce::AbsoluteSum, &[], &())
    }

    /// `sqrt(sum x^2)`.
    pub fn norm_2(&self, agent: &mut (impl Agent + ?Sized)) -> Result<f64, Error> {
        self.pull_function(agent, &Reduce::Norm2, &[], &())
    }

    /// `max |x|`.
    pub fn norm_inf(&self, agent: &mut (impl Agent + ?Sized)) -> Result<f64, Error> {
        self.pull_function(agent, &Extreme::Magnitude, &[], &()).map(|(_, value)| value.abs())
    }

    /// The number of values that are not 0.
    pub fn count_non_zero(&self, agent: &mut (impl Agent + ?Sized)) -> Result<u64, Error> {
        self.pull_function(agent, &CountNonZero, &[], &())
    }

    /// The k values of largest magnitude, with their columns.
    pub fn top_k(&self, agent: &mut (impl Agent + ?Sized), k: u64) -> Result<Vec<(u64, f64)>, Error> {
        self.pull_function(agent, &TopK::Magnitude, &[], &k)
    }

    /// Whether all values are equal.
    pub fn equals(&self, agent: &mut (impl Agent + ?Sized), other: &ServerVector) -> Result<bool, Error> {
        self.pull_function(agent, &FirstDifference, &[other], &()).map(|at| at.is_none())
    }

    /// Sets all values to `value`.
    pub fn set(&mut self, agent: &mut (impl Agent + ?Sized), value: f64) -> Result<(), Error> {
        self.assign_function(agent, &Set, &[], &value)
    }

    /// Copies the values of another vector.
    pub fn copy_from(
        &mut self,
        agent: &mut (impl Agent + ?Sized),
        other: &ServerVector,
    ) -> Result<(), Error> {
        self.assign_function(agent, &CopyRow, &[other], &())
    }

    /// Each value x of this vector becomes `f(x)`.
    pub fn map(&mut self, agent: &mut (impl Agent + ?Sized), map: Map) -> Result<(), Error> {
        self.apply_function(agent, &map, &[], &[], &())
    }

    /// Each value x of this vector becomes `f(x, a)`.
    pub fn scalar(&mut self, agent: &mut (impl Agent + ?Sized), scalar: Scalar, a: f64) -> Result<(), Error> {
        self.apply_function(agent, &scalar, &[], &[], &a)
    }

    /// Each value x of this vector becomes `f(x, y)`, where y is the value of the other vector.
    pub fn zip(
        &mut self,
        agent: &mut (impl Agent + ?Sized),
        zip: Zip,
        other: &ServerVector,
    ) -> Result<(), Error> {
        self.apply_function(agent, &zip, &[], &[other], &())
    }

    /// Adds `a x` to this vector.
    pub fn axpy(&mut self, agent: &mut (impl Agent + ?Sized), a: f64, x: &ServerVector) -> Result<(), Error> {
        self.apply_function(agent, &Axpy, &[x], &[], &a)
    }

    /// Sets this vector to the sum of all `a x`, in one visit.
    pub fn combine(
        &mut self,
        agent: &mut (impl Agent + ?Sized),
        terms: &[(f64, &ServerVector)],
    ) -> Result<(), Error> {
        let (factors, vectors): (Vec<f64>, Vec<&ServerVector>) = terms.iter().copied().unzip();
        self.assign_function(agent, &Combine, &vectors, &factors)
    }

    /// Sets all values. `values` has the element type of the matrix. A long vector is sent in several calls.
    pub fn put(&mut self, agent: &mut (impl Agent + ?Sized), values: Values<'_>) -> Result<(), Error> {
        self.check_len("set_vector", values)?;
        for start in (0..values.len()).step_by(PUT_VALUE_LIMIT) {
            let part = values.slice(start..values.len().min(start + PUT_VALUE_LIMIT));
            self.assign_function(agent, &VectorOp::Set, &[], &(start as u64, part.to_owned_values(), 1.0))?;
        }
        Ok(())
    }

    /// Returns all values.
    pub fn pull(&self, agent: &mut (impl Agent + ?Sized)) -> Result<OwnedValues, Error> {
        self.pull_keys(agent, Keys::Range(0, self.pool.columns), self.pool.columns as usize)
    }

    /// Returns the values of some columns, which are strictly ascending.
    pub fn pull_at(&self, agent: &mut (impl Agent + ?Sized), columns: &[u64]) -> Result<OwnedValues, Error> {
        self.pull_keys(agent, Keys::Sorted(columns), columns.len())
    }

    fn pull_keys(
        &self,
        agent: &mut (impl Agent + ?Sized),
        keys: Keys<'_>,
        count: usize,
    ) -> Result<OwnedValues, Error> {
        let row = self.row_for("pull")?;
        let mut out = OwnedValues::zeros(self.pool.element, count);
        agent.pull(self.pool.matrix, Selection::Columns { row, keys }, out.slice_mut(0..count))?;
        Ok(out)
    }

    /// Merges a value for each column by the push rule of the matrix; the rule of [`VectorPool::spec`] adds them.
    pub fn push(&mut self, agent: &mut (impl Agent + ?Sized), values: Values<'_>) -> Result<(), Error> {
        self.check_len("push", values)?;
        let row = self.row_for("push")?;
        let part = Selection::Columns { row, keys: Keys::Range(0, self.pool.columns) };
        agent.push(self.pool.matrix, part, values)
    }

    /// Does the same as [`Self::push`] for some columns, which are strictly ascending.
    pub fn push_at(
        &mut self,
        agent: &mut (impl Agent + ?Sized),
        columns: &[u64],
        values: Values<'_>,
    ) -> Result<(), Error> {
        let row = self.row_for("push")?;
        if values.len() != columns.len() {
            let (matrix, expected, actual) = (self.pool.name.clone(), columns.len(), values.len());
            return Err(Error::ValueCount { matrix, expected, actual });
        }
        agent.push(self.pool.matrix, Selection::Columns { row, keys: Keys::Sorted(columns) }, values)
    }

    fn check_len(&self, function: &str, values: Values<'_>) -> Result<(), Error> {
        if values.len() as u64 == self.pool.columns {
            return Ok(());
        }
        let actual = format!("{} values", values.len());
        let fault = FunctionFault::argument("vector", actual, format!("{}, one a column", self.pool.columns));
        Err(self.pool.error(function, fault))
    }
}
