//! The records of a task in memory, and their distances from centres.

use std::borrow::Borrow;
use std::ops::Range;

use data::{Batch, BatchStream};
use matrix::{Agent, Values, ValuesMut};
use multiversion::multiversion;

use super::model::Model;
use super::params::Distance;
use algo::error::Error;
use algo::rows::{ONE_ROW, rows_of};

/// Records are kept as dense rows if at least this share of their values is not 0.
const DENSE_SHARE: f64 = 0.2;
/// Up to this number of centres, products are computed one by one: the product of matrices would first copy the records.
const FEW_CENTRES: usize = 12;
/// Records of a block, whose products with the centres are computed together.
pub(super) const BLOCK: usize = 256;

/// A record by itself: ascending keys and their values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SparsePoint {
    pub(super) keys: Vec<u64>,
    pub(super) values: Vec<f32>,
}

/// Records over the features that occur in them.
#[derive(Clone, Debug, Default)]
pub(super) struct Points {
    /// The features, ascending. A column is a position in this list.
    pub(super) features: Vec<u64>,
    rows: Rows,
    /// One weight per record; empty if all are 1.
    pub(super) weights: Vec<f32>,
    /// `|x|^2` of each record.
    pub(super) squares: Vec<f64>,
}

#[derive(Clone, Debug)]
enum Rows {
    /// Records x columns.
    Dense(Vec<f32>),
    /// Compressed sparse rows.
    Sparse(SparseRows),
}

#[derive(Clone, Debug, Default)]
struct SparseRows {
    offsets: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl Default for Rows {
    fn default() -> Self {
        Self::Sparse(SparseRows { offsets: vec![0], ..SparseRows::default() })
    }
}

/// Centres over the columns of some [`Points`].
#[derive(Clone, Debug, Default)]
pub(super) struct Centres {
    /// Columns x k.
    pub(super) values: Vec<f32>,
    /// `|c|^2` of each centre over all features, also those that the points lack; infinite for a centre that no record
    /// may be assigned to.
    pub(super) squares: Vec<f64>,
}

impl Centres {
    pub(super) fn count(&self) -> usize {
        self.squares.len()
    }

    /// Reads the centres of the model over these features.
    pub(super) fn pull(agent: &mut dyn Agent, features: &[u64], k: usize) -> Result<Self, Error> {
        let mut centres = Self { values: vec![0.0; features.len() * k], squares: vec![0.0; k] };
        agent.pull(Model::CENTRES, rows_of(features), ValuesMut::F32(&mut centres.values))?;
        agent.pull(Model::NORMS, ONE_ROW, ValuesMut::F64(&mut centres.squares))?;
        Ok(centres)
    }

    /// The features that this task owns, and the centres over them.
    pub(super) fn owned(&self, features: &[u64], is_owner: &[bool]) -> (Vec<u64>, Self) {
        let owned = || (0..features.len()).filter(|f| is_owner[*f]);
        let row = |f| &self.values[f * self.count()..][..self.count()];
        let values = owned().flat_map(row).copied().collect();
        (owned().map(|f| features[f]).collect(), Self { values, squares: self.squares.clone() })
    }

    /// Writes the centres over the features that this task owns, and at task 0 their norms. Afterwards every task can read
    /// those of all.
    pub(super) fn push(&self, agent: &mut dyn Agent, features: &[u64]) -> Result<(), Error> {
        if !features.is_empty() {
            agent.push(Model::CENTRES, rows_of(features), Values::F32(&self.values))?;
        }
        if agent.task() == 0 {
            agent.push(Model::NORMS, ONE_ROW, Values::F64(&self.squares))?;
        }
        Ok(agent.barrier()?)
    }

    /// These points as centres of points with these features.
    pub(super) fn of_points(points: &[SparsePoint], features: &[u64]) -> Self {
        let k = points.len();
        let mut values = vec![0.0; features.len() * k];
        for (c, point) in points.iter().enumerate() {
            for (key, value) in point.keys.iter().zip(&point.values) {
                if let Ok(column) = features.binary_search(key) {
                    values[column * k + c] = *value;
                }
            }
        }
        Self { values, squares: points.iter().map(|point| square(&point.values)).collect() }
    }
}

/// The factor from the sum of the records of a cluster to its centre. `square` is that of the sum.
pub(super) fn factor(distance: Distance, count: f64, square: f64) -> f64 {
    match distance {
        Distance::Euclidean => 1.0 / count,
        Distance::Cosine if square > 0.0 => 1.0 / square.sqrt(),
        // The records of the cluster cancel each other out: its centre has no direction.
        Distance::Cosine => 0.0,
    }
}

/// The sum of squares.
pub(super) fn square(values: &[f32]) -> f64 {
    /// Sums that are independent of each other, so that they are computed side by side.
    const LANES: usize = 8;
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut sums = [0f64; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            sums[lane] += f64::from(chunk[lane]) * f64::from(chunk[lane]);
        }
    }
    let rest: f64 = rest.iter().map(|&value| f64::from(value) * f64::from(value)).sum();
    sums.iter().sum::<f64>() + rest
}

/// The nearest centre of a record, and the distances of the two nearest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Nearest {
    pub(super) centre: u32,
    /// Squared distance from the nearest centre.
    pub(super) first: f64,
    /// Squared distance from the second nearest; infinite if there is one centre.
    pub(super) second: f64,
}

/// Finds the nearest centres from the products of a record with the centres. Of equal ones the first is taken.
pub(super) fn nearest(products: &[f32], centre_squares: &[f64], square: f64) -> Nearest {
    let mut nearest = Nearest { centre: 0, first: f64::INFINITY, second: f64::INFINITY };
    for (c, (&product, &centre_square)) in products.iter().zip(centre_squares).enumerate() {
        let distance = centre_square - 2.0 * f64::from(product);
        if distance < nearest.first {
            nearest = Nearest { centre: c as u32, first: distance, second: nearest.first };
        } else if distance < nearest.second {
            nearest.second = distance;
        }
    }
    // Rounding may make the distance of a record from itself negative.
    nearest.first = (nearest.first + square).max(0.0);
    nearest.second = (nearest.second + square).max(0.0);
    nearest
}

impl Points {
    /// Reads a task's share of the data.
    ///
    /// # Errors
    /// [`Error::UnsuitableData`] for a record without a direction, if the distance is that of directions.
    pub(super) fn read(data: &mut dyn BatchStream, distance: Distance) -> Result<Self, Error> {
        let mut batches = Vec::new();
        data.start_epoch(0)?;
        while let Some(batch) = data.next()? {
            batches.push(batch.clone());
        }
        data.release_cache();
        Self::of_batches(batches, distance)
    }

    /// The records of batches, which are let go one by one if they are owned.
    pub(super) fn of_batches<B: Borrow<Batch>>(batches: Vec<B>, distance: Distance) -> Result<Self, Error> {
        let all = || batches.iter().map(Borrow::borrow);
        let mut features: Vec<u64> = all().flat_map(|batch| batch.columns.iter().copied()).collect();
        features.sort_unstable();
        features.dedup();
        let count = |of: fn(&Batch) -> usize| all().map(of).sum::<usize>();
        let (records, entries) = (count(Batch::record_count), count(Batch::entry_count));
        let is_weighted = all().any(|batch| !batch.weights.is_empty());
        let is_dense = entries as f64 >= DENSE_SHARE * (records * features.len()) as f64;
        let mut points = Self { features, ..Self::default() };
        if is_dense {
            points.rows = Rows::Dense(Vec::with_capacity(records * points.features.len()));
        }
        for batch in batches {
            let batch: &Batch = batch.borrow();
            if is_weighted {
                points.weights.extend((0..batch.record_count()).map(|r| batch.weight(r)));
            }
            points.append(batch, distance)?;
        }
        Ok(points)
    }

    #[cfg(test)]
    pub(super) fn is_dense(&self) -> bool {
        matches!(self.rows, Rows::Dense(_))
    }

    fn append(&mut self, batch: &Batch, distance: Distance) -> Result<(), Error> {
        let column =
            |key: &u64| self.features.binary_search(key).expect("the features of all batches") as u32;
        let columns: Vec<u32> = batch.columns.iter().map(column).collect();
        let width = self.features.len();
        let mut values = Vec::new();
        for r in 0..batch.record_count() {
            let entries = batch.entries(r);
            let indices = &batch.indices[entries.clone()];
            values.clear();
            values.extend_from_slice(batch.values.get(entries).unwrap_or(&[]));
            values.resize(indices.len(), 1.0);
            let mut squared = square(&values);
            if distance == Distance::Cosine {
                if squared == 0.0 {
                    return Err(zero_record(self.squares.len() + 1));
                }
                let factor = (1.0 / squared.sqrt()) as f32;
                for value in &mut values {
                    *value *= factor;
                }
                squared = square(&values);
            }
            self.squares.push(squared);
            match &mut self.rows {
                Rows::Dense(rows) => {
                    let start = rows.len();
                    rows.resize(start + width, 0.0);
                    let row = &mut rows[start..];
                    for (index, value) in indices.iter().zip(&values) {
                        row[columns[*index as usize] as usize] = *value;
                    }
                }
                Rows::Sparse(rows) => {
                    rows.columns.extend(indices.iter().map(|index| columns[*index as usize]));
                    rows.values.extend_from_slice(&values);
                    rows.offsets.push(rows.values.len());
                }
            }
        }
        Ok(())
    }

    /// These points, each with a weight.
    pub(super) fn of_points(points: &[SparsePoint], weights: Vec<f32>) -> Self {
        let mut features: Vec<u64> = points.iter().flat_map(|point| point.keys.iter().copied()).collect();
        features.sort_unstable();
        features.dedup();
        let mut rows = SparseRows { offsets: vec![0], ..SparseRows::default() };
        for point in points {
            let column = |key| features.binary_search(key).expect("the features of all points") as u32;
            rows.columns.extend(point.keys.iter().map(column));
            rows.values.extend(&point.values);
            rows.offsets.push(rows.values.len());
        }
        let squares = points.iter().map(|point| square(&point.values)).collect();
        Self { features, rows: Rows::Sparse(rows), weights, squares }
    }

    pub(super) fn count(&self) -> usize {
        self.squares.len()
    }

    pub(super) fn width(&self) -> usize {
        self.features.len()
    }

    pub(super) fn weight(&self, i: usize) -> f64 {
        self.weights.get(i).map_or(1.0, |&weight| f64::from(weight))
    }

    /// The weights of all records.
    pub(super) fn all_weights(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        (0..self.count()).map(|i| self.weight(i))
    }

    /// All records.
    pub(super) fn all(&self) -> Vec<u32> {
        (0..self.count() as u32).collect()
    }

    /// Record `i` by itself.
    pub(super) fn get(&self, i: usize) -> SparsePoint {
        let mut point = SparsePoint::default();
        self.for_each_value(i, |column, value| {
            point.keys.push(self.features[column]);
            point.values.push(value);
        });
        // The columns of a sparse row have the order of their input.
        if !point.keys.is_sorted() {
            let mut pairs: Vec<_> = point.keys.into_iter().zip(point.values).collect();
            pairs.sort_unstable_by_key(|(key, _)| *key);
            (point.keys, point.values) = pairs.into_iter().unzip();
        }
        point
    }

    /// The points as centres of themselves.
    pub(super) fn as_centres(&self) -> Centres {
        let k = self.count();
        let mut values = vec![0.0; self.width() * k];
        for c in 0..k {
            self.for_each_value(c, |column, value| values[column * k + c] = value);
        }
        Centres { values, squares: self.squares.clone() }
    }

    /// Calls `visit` with each column and value of record `i` that is not 0.
    fn for_each_value(&self, i: usize, mut visit: impl FnMut(usize, f32)) {
        match &self.rows {
            Rows::Dense(rows) => {
                let row = &rows[i * self.width()..][..self.width()];
                row.iter().enumerate().filter(|(_, value)| **value != 0.0).for_each(|(c, v)| visit(c, *v));
            }
            Rows::Sparse(rows) => {
                for i in rows.offsets[i]..rows.offsets[i + 1] {
                    visit(rows.columns[i] as usize, rows.values[i]);
                }
            }
        }
    }

    /// Adds `factor` x record `i` to `sums`, one number per column.
    pub(super) fn add_to(&self, i: usize, factor: f64, sums: &mut [f64]) {
        match &self.rows {
            Rows::Dense(rows) => {
                let row = &rows[i * self.width()..][..self.width()];
                sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += factor * f64::from(value));
            }
            Rows::Sparse(rows) => {
                for i in rows.offsets[i]..rows.offsets[i + 1] {
                    sums[rows.columns[i] as usize] += factor * f64::from(rows.values[i]);
                }
            }
        }
    }

    /// Sets `products` (records x k) to the inner products of these records with the centres. `gathered` is scratch
    /// memory.
    pub(super) fn products(
        &self,
        records: &[u32],
        centres: &Centres,
        gathered: &mut Vec<f32>,
        products: &mut Vec<f32>,
    ) {
        let k = centres.count();
        products.clear();
        products.resize(records.len() * k, 0.0);
        match &self.rows {
            Rows::Dense(rows) => {
                let width = self.width();
                let block = if let Some(range) = contiguous(records) {
                    &rows[range.start * width..range.end * width]
                } else {
                    gathered.clear();
                    for &i in records {
                        gathered.extend_from_slice(&rows[i as usize * width..][..width]);
                    }
                    gathered.as_slice()
                };
                if k <= FEW_CENTRES {
                    multiply_few(block, &transposed(&centres.values, k), products, width, k);
                } else {
                    multiply(block, &centres.values, products, width, k);
                }
            }
            Rows::Sparse(rows) => {
                for (&i, out) in records.iter().zip(products.chunks_exact_mut(k)) {
                    for i in rows.offsets[i as usize]..rows.offsets[i as usize + 1] {
                        let centre_values = &centres.values[rows.columns[i] as usize * k..][..k];
                        let value = rows.values[i];
                        out.iter_mut().zip(centre_values).for_each(|(out, &c)| *out += value * c);
                    }
                }
            }
        }
    }

    /// Calls `visit` with the nearest centre of each of these records, in order.
    pub(super) fn for_each_nearest(
        &self,
        records: &[u32],
        centres: &Centres,
        mut visit: impl FnMut(usize, Nearest),
    ) {
        let (mut gathered, mut products) = (Vec::new(), Vec::new());
        for block in records.chunks(BLOCK) {
            self.products(block, centres, &mut gathered, &mut products);
            for (&i, products) in block.iter().zip(products.chunks_exact(centres.count())) {
                visit(i as usize, nearest(products, &centres.squares, self.squares[i as usize]));
            }
        }
    }
}

fn zero_record(number: usize) -> Error {
    let reason = format!(
        "record {number} of a task has only zeros, and distance=cosine compares directions: leave such records out, or \
         choose distance=euclidean"
    );
    Error::UnsuitableData { reason }
}

/// The range of `records` if they follow one another.
fn contiguous(records: &[u32]) -> Option<Range<usize>> {
    let (first, last) = (*records.first()? as usize, *records.last()? as usize);
    (last - first + 1 == records.len()).then_some(first..last + 1)
}

/// The columns of `values` (rows x k), one after the other.
pub(super) fn transposed<T: Copy>(values: &[T], k: usize) -> Vec<T> {
    (0..k).flat_map(|c| values.iter().skip(c).step_by(k).copied()).collect()
}

/// The sum of squares of each column of `values` (rows x k).
pub(super) fn squares_of<T: Copy + Into<f64>>(values: &[T], k: usize) -> Vec<f64> {
    let mut squares = vec![0.0; k];
    for row in values.chunks_exact(k) {
        squares.iter_mut().zip(row).for_each(|(square, &value)| *square += value.into() * value.into());
    }
    squares
}

/// `products = block x centres` for few centres, which are given one after the other.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2+fma"))]
fn multiply_few(block: &[f32], centres: &[f32], products: &mut [f32], width: usize, k: usize) {
    /// Sums that are independent of each other, so that they are computed side by side.
    const LANES: usize = 32;
    for (row, out) in block.chunks_exact(width.max(1)).zip(products.chunks_exact_mut(k)) {
        for (centre, out) in centres.chunks_exact(width.max(1)).zip(out) {
            let mut sums = [0f32; LANES];
            let (rows, rest) = row.as_chunks::<LANES>();
            let (values, more) = centre.as_chunks::<LANES>();
            for (row, centre) in rows.iter().zip(values) {
                for i in 0..LANES {
                    sums[i] = row[i].mul_add(centre[i], sums[i]);
                }
            }
            let tail: f32 = rest.iter().zip(more).map(|(a, b)| a * b).sum();
            *out = sums.iter().sum::<f32>() + tail;
        }
    }
}

/// `products = block x centres`: (records x width) x (width x k), all row by row.
fn multiply(block: &[f32], centres: &[f32], products: &mut [f32], width: usize, k: usize) {
    let records = products.len() / k.max(1);
    assert!(block.len() == records * width && centres.len() == width * k, "the shapes fit");
    if width == 0 {
        return;
    }
    // SAFETY: the lengths were compared with the shapes, and the strides are those of rows that follow one another.
    #[allow(unsafe_code, reason = "the product of matrices has an interface of pointers")]
    unsafe {
        matrixmultiply::sgemm(
            records,
            width,
            k,
            1.0,
            block.as_ptr(),
            width as isize,
            1,
            centres.as_ptr(),
            k as isize,
            1,
            0.0,
            products.as_mut_ptr(),
            k as isize,
            1,
        );
    }
}
