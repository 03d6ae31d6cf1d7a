//! The tensors of a matrix in the files of a model, planned from the numbers of its rows before any row is read.

use std::borrow::Cow;

use matrix::{ElementType, Initializer, Lists, MatrixSpec, OwnedValues, RowBlock, RowCounts, Storage};

use super::manifest::MatrixEntry;
use super::names::{OPTIMIZER_FILE, WEIGHTS_FILE, entries_tensor, keys_tensor, lengths_tensor};
use super::tensor_file::{PlannedTensor, TensorFile};
use super::tensors::Dtype;
use crate::error::Error;

/// Size of a key.
const KEY_BYTES: usize = size_of::<u64>();

/// A matrix that is written.
pub(crate) struct MatrixPlan<'a> {
    spec: &'a MatrixSpec,
    counts: RowCounts,
    /// Rows in the file of weights.
    stored_rows: u64,
    /// Rows that are zero are left out.
    skips_zeros: bool,
    /// The file of weights has the keys of its rows; otherwise it has all rows in order.
    has_keys: bool,
    /// Names and widths of the slots that are written.
    slots: Vec<(&'static str, usize)>,
}

impl<'a> MatrixPlan<'a> {
    pub(crate) fn new(spec: &'a MatrixSpec, counts: RowCounts, keep_optimizer: bool) -> Self {
        let columns = spec.columns as usize;
        let is_complete = counts.rows == spec.rows && spec.storage == Storage::Dense;
        let zero_is_absent = spec.initializer == Initializer::Zero;
        let kept_rows = if zero_is_absent { counts.nonzero_rows } else { counts.rows };
        // Zero rows are left out when that takes less space.
        let width = (columns * spec.element.size()) as u64;
        let has_keys = spec.storage.has_lists()
            || !is_complete
            || kept_rows * (KEY_BYTES as u64 + width) < counts.rows * width;
        let slots = if keep_optimizer { spec.rule.slots() } else { &[] };
        Self {
            spec,
            counts,
            stored_rows: if has_keys { kept_rows } else { counts.rows },
            skips_zeros: has_keys && zero_is_absent,
            has_keys,
            slots: slots.iter().map(|slot| (slot.name, slot.width(columns))).collect(),
        }
    }

    /// The tensors in the file of weights.
    pub(crate) fn weights(&self) -> Vec<PlannedTensor> {
        let rows = self.stored_rows as usize;
        if self.spec.storage.has_lists() {
            let entries = self.counts.entries as usize;
            let numbers = |name, count| PlannedTensor { name, dtype: Dtype::U64, shape: vec![count] };
            let (name, dtype) = (self.spec.name.clone(), dtype_of(self.spec.element));
            let values = PlannedTensor { name, dtype, shape: vec![entries, self.spec.columns as usize] };
            let lists = [
                numbers(keys_tensor(&self.spec.name), rows),
                numbers(lengths_tensor(&self.spec.name), rows),
                numbers(entries_tensor(&self.spec.name), entries),
            ];
            return lists.into_iter().chain([values]).collect();
        }
        let (dtype, shape) = (dtype_of(self.spec.element), vec![rows, self.spec.columns as usize]);
        let keys = PlannedTensor { name: keys_tensor(&self.spec.name), dtype: Dtype::U64, shape: vec![rows] };
        let values = PlannedTensor { name: self.spec.name.clone(), dtype, shape };
        self.has_keys.then_some(keys).into_iter().chain([values]).collect()
    }

    /// The tensors in the file of the optimizer. It has all rows, with keys only if they differ from those of the
    /// weights.
    pub(crate) fn optimizer(&self) -> Vec<PlannedTensor> {
        if self.slots.is_empty() {
            return Vec::new();
        }
        let rows = self.counts.rows as usize;
        let keys = PlannedTensor { name: keys_tensor(&self.spec.name), dtype: Dtype::U64, shape: vec![rows] };
        let slot = |&(name, width): &(&str, usize)| PlannedTensor {
            name: format!("{}.{name}", self.spec.name),
            dtype: dtype_of(self.spec.element),
            shape: vec![rows, if rows == 0 { 0 } else { width }],
        };
        self.optimizer_has_keys().then_some(keys).into_iter().chain(self.slots.iter().map(slot)).collect()
    }

    fn optimizer_has_keys(&self) -> bool {
        self.stored_rows < self.counts.rows || !self.has_keys
    }

    /// Writes a block of rows.
    pub(crate) fn write(
        &self,
        rows: &RowBlock,
        weights: &mut TensorFile<'_>,
        optimizer: Option<&mut TensorFile<'_>>,
    ) -> Result<(), Error> {
        if let Some(Lists { lengths, entries }) = &rows.lists {
            let name = &self.spec.name;
            weights.append(&keys_tensor(name), bytemuck::cast_slice(&rows.keys))?;
            weights.append(&lengths_tensor(name), bytemuck::cast_slice(lengths))?;
            weights.append(&entries_tensor(name), bytemuck::cast_slice(entries))?;
            return weights.append(name, rows.values.as_values().bytes());
        }
        let columns = self.spec.columns as usize;
        let nonzero_rows: Option<Vec<usize>> = self
            .skips_zeros
            .then(|| (0..rows.keys.len()).filter(|row| !is_zero(&rows.values, *row, columns)).collect());
        let keys: &[u8] = bytemuck::cast_slice(&rows.keys);
        if self.has_keys {
            weights
                .append(&keys_tensor(&self.spec.name), &select(keys, nonzero_rows.as_deref(), KEY_BYTES))?;
        }
        let row_bytes = columns * self.spec.element.size();
        weights.append(
            &self.spec.name,
            &select(rows.values.as_values().bytes(), nonzero_rows.as_deref(), row_bytes),
        )?;
        let Some(optimizer) = optimizer.filter(|_| !self.slots.is_empty()) else { return Ok(()) };
        if self.optimizer_has_keys() {
            optimizer.append(&keys_tensor(&self.spec.name), keys)?;
        }
        for (name, values) in &rows.slots {
            optimizer.append(&format!("{}.{name}", self.spec.name), values.as_values().bytes())?;
        }
        Ok(())
    }

    /// The entry of the matrix in the manifest.
    pub(crate) fn entry(&self) -> MatrixEntry {
        MatrixEntry {
            name: self.spec.name.clone(),
            file: WEIGHTS_FILE.into(),
            keys: self.has_keys.then(|| keys_tensor(&self.spec.name)),
            rows: self.spec.rows,
            columns: self.spec.columns,
            stored_rows: self.stored_rows,
            dtype: self.spec.element,
            storage: self.spec.storage,
            optimizer_file: (!self.slots.is_empty()).then(|| OPTIMIZER_FILE.into()),
            slots: self.slots.iter().map(|(name, _)| (*name).to_owned()).collect(),
            spec: self.spec.clone(),
        }
    }
}

pub(crate) fn dtype_of(element: ElementType) -> Dtype {
    match element {
        ElementType::F32 => Dtype::F32,
        ElementType::F64 => Dtype::F64,
        ElementType::I64 => Dtype::I64,
        ElementType::I32 => Dtype::I32,
        ElementType::U32 => Dtype::U32,
    }
}

/// The rows of `bytes` at these positions, or all; a row has `width` bytes.
fn select<'a>(bytes: &'a [u8], positions: Option<&[usize]>, width: usize) -> Cow<'a, [u8]> {
    let Some(positions) = positions.filter(|positions| positions.len() * width < bytes.len()) else {
        return Cow::Borrowed(bytes);
    };
    let mut selected = Vec::with_capacity(positions.len() * width);
    for &position in positions {
        selected.extend_from_slice(&bytes[position * width..][..width]);
    }
    Cow::Owned(selected)
}

/// Whether a row has zeros only.
pub(crate) fn is_zero(values: &OwnedValues, row: usize, columns: usize) -> bool {
    values.as_values().slice(row * columns..(row + 1) * columns).are_zero()
}
