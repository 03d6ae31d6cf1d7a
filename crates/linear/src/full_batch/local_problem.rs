//! A task's share of the objective: loss and gradient at the point.
//!
//! The task holds weight, gradient and scale for each feature of its share. Once per pass it pulls the point and pushes
//! the gradient, each feature once. For each batch it gathers the columns of the batch, so that the inner loops work on
//! arrays that stay in the cache.

use std::ops::Range;

use data::Batch;
use matrix::{Agent, ElementType, Keys, Selection, Values, ValuesMut};

use super::super::model::Model;
use super::super::train::weigh;
use super::features::LocalFeatures;
use crate::descent::Settings;
use crate::descent::vectors::{GRADIENT, SCALE, VectorLayout};
use algo::batch_loop::check_classes;
use algo::coordinator::StepDecision;
use algo::csr::{CsrRows, normalize};
use algo::error::{Error, FeatureLabel};
use algo::family::Model as _;
use algo::job::TrainTask;
use algo::loss::Loss;
use algo::metric::{MetricAccumulator, add_losses, add_to_metrics};
use algo::rows::rows_of;
use algo::scaling::{IDENTITY_SCALE, MOMENT_COLUMNS, apply_scales};

/// The results of a pass.
pub(super) struct PassResult {
    pub(super) loss_sum: f64,
    pub(super) positive_count: u64,
    pub(super) parts: MetricAccumulator,
    detail: Detail,
    pub(super) flow: StepDecision,
}

/// Which metrics a pass computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// All that the model has, for a point that somebody looks at.
    All,
    /// The loss alone.
    Loss,
}

/// The results of a pass, summed over all tasks.
pub(super) struct PassSums {
    pub(super) loss: f64,
    pub(super) record_count: f64,
    positive_count: f64,
    /// Whether any task was told to stop.
    pub(super) flow: StepDecision,
}

impl PassResult {
    fn new(model: &Model, detail: Detail) -> Self {
        let parts = model.metric_accumulator();
        Self { loss_sum: 0.0, positive_count: 0, parts, detail, flow: StepDecision::Continue }
    }

    /// The sums over all tasks; `more` becomes sums too.
    pub(super) fn sum_over_tasks(&self, agent: &mut dyn Agent, more: &mut [f64]) -> Result<PassSums, Error> {
        let stopped = f64::from(u8::from(self.flow == StepDecision::Stop));
        let records = self.parts.record_count() as f64;
        let mut sums = vec![self.loss_sum, stopped, records, self.positive_count as f64];
        sums.extend_from_slice(more);
        agent.all_reduce(&mut sums)?;
        more.copy_from_slice(&sums[4..]);
        let flow = if sums[1] > 0.0 { StepDecision::Stop } else { StepDecision::Continue };
        Ok(PassSums { loss: sums[0], record_count: sums[2], positive_count: sums[3], flow })
    }
}

impl PassSums {
    /// Refuses records of one class for a loss of two. Of a pass that was stopped nothing is known.
    pub(super) fn check_classes(&self, loss: Loss) -> Result<(), Error> {
        match self.flow {
            StepDecision::Stop => Ok(()),
            StepDecision::Continue => {
                check_classes(self.record_count as u64, self.positive_count as u64, loss)
            }
        }
    }

    /// Checks the first pass.
    pub(super) fn check_start(&self, loss: Loss) -> Result<(), Error> {
        self.check_classes(loss)?;
        if self.flow == StepDecision::Continue && !self.loss.is_finite() {
            return Err(Error::NonFiniteStart { loss: self.loss });
        }
        Ok(())
    }
}

/// The share of a task. "Local" vectors contain the features by local index x width, then the intercept.
pub(super) struct LocalProblem<'a> {
    model: &'a Model,
    class_weights: Vec<f64>,
    pub(super) features: LocalFeatures,
    layout: VectorLayout,
    /// Columns in the matrix of vectors, local, ascending.
    columns: Vec<u64>,
    /// Local.
    scales: Vec<f64>,
    /// Local: scale x point.
    pub(super) weights: Vec<f64>,
    /// Local.
    pub(super) gradient: Vec<f64>,
    /// Shift and factor of each feature, if columns are standardized.
    moments: Vec<(f64, f64)>,
    scratch: Scratch,
}

/// Scratch memory for a batch.
#[derive(Default)]
struct Scratch {
    indices: Vec<u32>,
    weights: Vec<f64>,
    sums: Vec<f64>,
    scales: Vec<(f64, f64)>,
    values: Vec<f32>,
    scores: Vec<f64>,
    slopes: Vec<f64>,
    f32_values: Vec<f32>,
}

impl<'a> LocalProblem<'a> {
    pub(super) fn new(
        settings: &Settings,
        model: &'a Model,
        class_weights: Vec<f64>,
        features: LocalFeatures,
    ) -> Self {
        let width = model.width();
        let intercept = model.intercept.then(|| super::penalized_columns(model));
        let columns = features.columns(width, intercept);
        Self {
            model,
            class_weights,
            layout: super::vector_layout(model, settings),
            scales: Vec::new(),
            weights: Vec::new(),
            gradient: Vec::new(),
            moments: Vec::new(),
            scratch: Scratch::default(),
            features,
            columns,
        }
    }

    /// Pulls the moments and computes shifts and factors of standardized columns.
    pub(super) fn read_moments(&mut self, agent: &mut dyn Agent) -> Result<(), Error> {
        let (Some(scaling), Some(id)) = (self.model.scaling(), self.model.moments_id()) else {
            return Ok(());
        };
        let all = self.features.keys();
        let keys = scaling.keys(&all);
        let mut moments = vec![0f64; keys.len() * MOMENT_COLUMNS as usize];
        if !keys.is_empty() {
            agent.pull(id, rows_of(keys), ValuesMut::F64(&mut moments))?;
        }
        self.moments = vec![IDENTITY_SCALE; all.len()];
        let rows = moments.as_chunks::<{ MOMENT_COLUMNS as usize }>().0;
        for (rank, (key, row)) in keys.iter().zip(rows).enumerate() {
            self.moments[self.features.local_index(rank)] = scaling.scale(*key, row);
        }
        Ok(())
    }

    /// Pulls the scales, once they have been computed.
    pub(super) fn read_scales(&mut self, agent: &mut dyn Agent) -> Result<(), Error> {
        self.pull(agent, SCALE)?;
        self.scales = self.weights.clone();
        Ok(())
    }

    /// Pulls the local part of a row into `weights`.
    fn pull(&mut self, agent: &mut dyn Agent, row: u32) -> Result<(), Error> {
        self.weights.resize(self.columns.len(), 0.0);
        if self.columns.is_empty() {
            return Ok(());
        }
        let part = Selection::Columns { row, keys: Keys::Sorted(&self.columns) };
        if self.layout.element() == ElementType::F64 {
            agent.pull(self.layout.id, part, ValuesMut::F64(&mut self.weights))?;
        } else {
            let singles = &mut self.scratch.f32_values;
            singles.resize(self.columns.len(), 0.0);
            agent.pull(self.layout.id, part, ValuesMut::F32(singles))?;
            self.weights.iter_mut().zip(singles).for_each(|(wide, single)| *wide = f64::from(*single));
        }
        Ok(())
    }

    /// Pulls the point in `row` and converts it to weights.
    pub(super) fn pull_weights(&mut self, agent: &mut dyn Agent, row: u32) -> Result<(), Error> {
        self.pull(agent, row)?;
        self.weights.iter_mut().zip(&self.scales).for_each(|(weight, scale)| *weight *= scale);
        Ok(())
    }

    /// The local part of the point in `row`.
    pub(super) fn pull_point(&mut self, agent: &mut dyn Agent, row: u32) -> Result<Vec<f64>, Error> {
        self.pull(agent, row)?;
        Ok(self.weights.clone())
    }

    /// Sets the weights from a local point.
    pub(super) fn set_weights(&mut self, point: &[f64]) {
        self.weights.clear();
        self.weights.extend(point.iter().zip(&self.scales).map(|(x, scale)| x * scale));
    }

    /// Adds local `values` to a row.
    pub(super) fn push(&self, agent: &mut dyn Agent, row: u32, values: &[f64]) -> Result<(), Error> {
        self.push_at(agent, row, 0..values.len(), values)
    }

    /// Adds `values` to a row, in the local columns of `range`.
    pub(super) fn push_at(
        &self,
        agent: &mut dyn Agent,
        row: u32,
        range: Range<usize>,
        values: &[f64],
    ) -> Result<(), Error> {
        if values.is_empty() {
            return Ok(());
        }
        let part = Selection::Columns { row, keys: Keys::Sorted(&self.columns[range]) };
        if self.layout.element() == ElementType::F64 {
            return Ok(agent.push(self.layout.id, part, Values::F64(values))?);
        }
        let singles: Vec<f32> = values.iter().map(|value| *value as f32).collect();
        Ok(agent.push(self.layout.id, part, Values::F32(&singles))?)
    }

    /// `sum of weight x curvature x value^2` over the records of the share, local. `curvatures` has one value per
    /// class.
    pub(super) fn curvature(
        &mut self,
        task: &mut TrainTask<'_>,
        curvatures: &[f64],
    ) -> Result<Vec<f64>, Error> {
        let width = self.model.width();
        let mut squares = vec![0.0; self.features.len()];
        let (mut total, mut largest_weight) = (0.0, 0.0);
        task.data.start_epoch(0)?;
        while let Some(batch) = task.data.next()? {
            self.transform(batch);
            self.scratch.slopes.clear();
            for (r, &label) in batch.labels.iter().enumerate() {
                let class_weight = self.class_weight(label)?;
                self.scratch.slopes.push(class_weight * f64::from(batch.weight(r)));
            }
            total += self.scratch.slopes.iter().sum::<f64>();
            largest_weight = self.scratch.slopes.iter().copied().fold(largest_weight, f64::max);
            let scratch = &mut self.scratch;
            scratch.sums.clear();
            scratch.sums.resize(batch.columns.len(), 0.0);
            let entries = CsrRows::new(&batch.offsets, &batch.indices, &scratch.values);
            entries.backward_squares(&scratch.slopes, &mut scratch.sums);
            for (place, sum) in scratch.indices.iter().zip(&scratch.sums) {
                squares[*place as usize] += sum;
            }
        }
        // The elements of the vectors may be f32.
        if let Some(place) = squares.iter().position(|sum| *sum > f64::from(f32::MAX)) {
            return Err(self.large_sum(place, squares[place], largest_weight));
        }
        if self.model.intercept {
            squares.push(total);
        }
        Ok(squares
            .into_iter()
            .flat_map(|square| curvatures[..width].iter().map(move |c| c * square))
            .collect())
    }

    /// The error that a weighted sum of squares is too large for the vectors: because of the weights, if without them it
    /// would not be.
    fn large_sum(&self, place: usize, sum: f64, largest_weight: f64) -> Error {
        if sum / largest_weight <= f64::from(f32::MAX) {
            return Error::LargeWeight { weight: largest_weight };
        }
        let keys = self.features.keys();
        let rank = (0..keys.len()).find(|rank| self.features.local_index(*rank) == place);
        let advice = match self.model.standardize {
            None => "Standardize the columns (standardize=true), or divide this one by a power of ten",
            Some(_) => {
                "All its values are nearly the same, so that it is not scaled: leave it out, or divide it"
            }
        };
        Error::LargeValues { feature: FeatureLabel::new(keys[rank.unwrap_or_default()]), sum, advice }
    }

    fn class_weight(&self, label: f64) -> Result<f64, Error> {
        if self.class_weights.is_empty() {
            return Ok(1.0);
        }
        Ok(self.class_weights[self.model.class_of(label)?])
    }

    /// Computes the local indices of the columns of a batch, and its values after standardization and normalization;
    /// `values` is empty if all are 1.
    fn transform(&mut self, batch: &Batch) {
        let scratch = &mut self.scratch;
        self.features.local_indices(batch, &mut scratch.indices);
        scratch.values.clear();
        scratch.values.extend_from_slice(&batch.values);
        if self.model.standardize.is_none() && !self.model.normalize {
            return;
        }
        scratch.values.resize(batch.entry_count(), 1.0);
        if self.model.standardize.is_some() {
            scratch.scales.clear();
            scratch.scales.extend(scratch.indices.iter().map(|place| self.moments[*place as usize]));
            apply_scales(&scratch.scales, &batch.indices, &mut scratch.values);
        }
        if self.model.normalize {
            normalize(&batch.offsets, &mut scratch.values);
        }
    }

    /// Like [`Self::read`] at the point in `row`; it also pushes the gradient, unless the pass was stopped or the loss
    /// is not finite.
    pub(super) fn evaluate(
        &mut self,
        task: &mut TrainTask<'_>,
        row: u32,
        pass: u64,
        detail: Detail,
    ) -> Result<PassResult, Error> {
        self.pull_weights(task.agent, row)?;
        let passed = self.read(task, pass, detail)?;
        if passed.flow == StepDecision::Continue && passed.loss_sum.is_finite() {
            self.push(task.agent, GRADIENT, &self.gradient)?;
        }
        Ok(passed)
    }

    /// Reads the share at the current weights. It ends early if the coordinator stops the task; otherwise `gradient`
    /// becomes the gradient with respect to the point.
    pub(super) fn read(
        &mut self,
        task: &mut TrainTask<'_>,
        pass: u64,
        detail: Detail,
    ) -> Result<PassResult, Error> {
        self.gradient.clear();
        self.gradient.resize(self.columns.len(), 0.0);
        let mut passed = PassResult::new(self.model, detail);
        task.data.start_epoch(pass)?;
        while let Some(batch) = task.data.next()? {
            let loss_sum = self.add(batch, &mut passed)?;
            let number = task.agent.task();
            if task.coordinator.report_progress(number, batch.record_count() as u64, loss_sum)
                == StepDecision::Stop
            {
                passed.flow = StepDecision::Stop;
                return Ok(passed);
            }
        }
        // The point is z = w / d, so the gradient in z is d x the gradient in w.
        self.gradient.iter_mut().zip(&self.scales).for_each(|(gradient, scale)| *gradient *= scale);
        Ok(passed)
    }

    /// `factor` x (gradient of a batch at `weights` - gradient at the weights `before`), local, with respect to the
    /// point.
    pub(super) fn difference(
        &mut self,
        batch: &Batch,
        before: &[f64],
        factor: f64,
    ) -> Result<Vec<f64>, Error> {
        let mut passed = PassResult::new(self.model, Detail::Loss);
        let mut gradient = |share: &mut Self| {
            share.gradient.clear();
            share.gradient.resize(share.columns.len(), 0.0);
            share.add(batch, &mut passed).map(|_| std::mem::take(&mut share.gradient))
        };
        let mut now = gradient(self)?;
        self.weights.copy_from_slice(before);
        let then = gradient(self)?;
        for ((now, then), scale) in now.iter_mut().zip(&then).zip(&self.scales) {
            *now = factor * scale * (*now - then);
        }
        Ok(now)
    }

    /// Adds loss and gradient of a batch. Returns the sum of weight x loss.
    fn add(&mut self, batch: &Batch, passed: &mut PassResult) -> Result<f64, Error> {
        let width = self.model.width();
        self.transform(batch);
        let end = self.features.len() * width;
        let Scratch { indices: places, weights, sums, values, scores, slopes, .. } = &mut self.scratch;
        weights.clear();
        if width == 1 {
            weights.extend(places.iter().map(|place| self.weights[*place as usize]));
        } else {
            for place in places.iter() {
                weights.extend_from_slice(&self.weights[*place as usize * width..][..width]);
            }
        }
        let bias = if self.model.intercept { self.weights[end..].to_vec() } else { vec![0.0; width] };
        let entries = CsrRows::new(&batch.offsets, &batch.indices, values);
        entries.forward(weights, &bias, scores);
        let scale = self.model.label_scale.unwrap_or_default();
        scale.apply(scores);
        let parts = &mut passed.parts;
        let mut loss_sum = match passed.detail {
            Detail::All => add_to_metrics(self.model.labels(), batch, scores, slopes, parts)?,
            Detail::Loss => add_losses(self.model.labels(), batch, scores, slopes, parts.loss_mut())?,
        };
        if !self.class_weights.is_empty() {
            loss_sum = weighted_loss(self.model, batch, scores, &self.class_weights)?;
        }
        passed.positive_count += batch.labels.iter().filter(|&&label| label > 0.0).count() as u64;
        weigh(self.model, batch, &self.class_weights, scale.deviation, slopes)?;
        sums.clear();
        sums.resize(places.len() * width, 0.0);
        entries.backward(slopes, width, sums);
        if width == 1 {
            places.iter().zip(&*sums).for_each(|(place, sum)| self.gradient[*place as usize] += sum);
        } else {
            for (place, sums) in places.iter().zip(sums.chunks_exact(width)) {
                let own = &mut self.gradient[*place as usize * width..][..width];
                own.iter_mut().zip(sums).for_each(|(own, sum)| *own += sum);
            }
        }
        if self.model.intercept {
            for slopes in slopes.chunks_exact(width) {
                self.gradient[end..].iter_mut().zip(slopes).for_each(|(own, slope)| *own += slope);
            }
        }
        passed.loss_sum += loss_sum;
        Ok(loss_sum)
    }
}

/// The sum of weight of record x weight of class x loss.
fn weighted_loss(model: &Model, batch: &Batch, scores: &[f64], class_weights: &[f64]) -> Result<f64, Error> {
    let mut sum = 0.0;
    for (r, scores) in scores.chunks_exact(model.width()).enumerate() {
        let label = batch.labels[r];
        let class = model.class_of(label)?;
        let loss = match model.loss {
            Loss::Softmax => math::elementary::log_sum_exp(scores) - scores[class],
            loss => loss.value_and_slope(scores[0], label).0,
        };
        sum += class_weights[class] * f64::from(batch.weight(r)) * loss;
    }
    Ok(sum)
}
