//! Algorithms that learn batch by batch: pulls, prefetches, predictions, metrics, pushes, ticks and saves are in the loop, and
//! the author writes what a batch changes.

use data::Batch;
use matrix::{Agent, PullTicket};

use super::interface::{Algorithm, AlgorithmJob, AlgorithmModel, Loop};
use super::row::accumulate;
use super::table::{Record, Rows, Table, TablePlace};
use crate::batch_loop::{self, BatchLearner, EpochSums, StepSums, check_weight, suspect_column};
use crate::error::Error;
use crate::job::{Needs, TrainTask};
use crate::metric::MetricAccumulator;
use crate::task_loop::{Learner, TaskState};

/// An algorithm whose [`Algorithm::Loop`] is [`BySteps`].
pub trait Steps: Algorithm<Loop = BySteps> {
    /// Learns a record: adds to `changes` what is pushed to the rows of its keys, for example gradients. Both the changes and
    /// the loss that it returns count by the weight of the record. If a loss is not finite, nothing of the batch is pushed, and
    /// the training ends with an error.
    fn step(&self, settings: &Self::Settings, record: &Record<'_>, changes: &mut Changes<'_>) -> f64;
}

/// The loop of [`Steps`].
#[derive(Clone, Copy, Debug)]
pub struct BySteps;

/// What the steps of a batch push: a row for each key of the batch that they add to, in each table of the model.
#[derive(Debug)]
pub struct Changes<'a> {
    places: &'a [TablePlace],
    values: &'a mut [Vec<f64>],
    /// Whether something was added, for each table and key.
    touched: &'a mut [Vec<bool>],
    /// The weight of the present record.
    weight: f64,
}

impl Changes<'_> {
    /// Adds `factor` x `row` to the row of a key of the record in a table, by its number in [`Algorithm::tables`].
    pub fn add(&mut self, table: usize, key: u32, factor: f64, row: &[f64]) {
        let (width, factor) = (self.places[table].columns, self.weight * factor);
        let changes = &mut self.values[table][key as usize * width..][..width];
        changes.iter_mut().zip(row).for_each(|(change, value)| *change += factor * value);
        self.touched[table][key as usize] = true;
    }
}

impl<A: Steps> Loop<A> for BySteps {
    const CONTINUES: bool = true;

    fn complete(needs: Needs) -> Needs {
        Needs { saves_within_epochs: true, ..needs }
    }

    fn check_tables(tables: &[Table]) -> Result<(), Error> {
        match tables.iter().find(|table| !table.adds()) {
            None => Ok(()),
            Some(table) => Err(Error::unsuitable(format!(
                "steps add their changes, and the push rule of the table '{}' keeps one value: choose Add or a rule of gradients",
                table.name()
            ))),
        }
    }

    fn begin<'a>(
        job: &'a AlgorithmJob<A>,
        task: &mut TrainTask<'a>,
        saved: Option<&TaskState>,
    ) -> Result<Box<dyn Learner + 'a>, Error> {
        let model: &AlgorithmModel<A> = task.model.of()?;
        let places = Table::places(&model.0.tables(Some(&job.settings)));
        batch_loop::begin(A::needs(&job.settings).epochs, saved, |_: Option<()>| {
            let tables = vec![Vec::new(); places.len()];
            let touched = vec![Vec::new(); places.len()];
            let (values, changes, model) = (tables.clone(), tables, &model.0);
            Ok(StepLearner { job, model, places, values, changes, touched, scores: Vec::new(), next: None })
        })
    }
}

struct StepLearner<'a, A: Algorithm> {
    job: &'a AlgorithmJob<A>,
    model: &'a A,
    places: Vec<TablePlace>,
    /// The rows of the present batch, for each table.
    values: Vec<Vec<f64>>,
    changes: Vec<Vec<f64>>,
    touched: Vec<Vec<bool>>,
    scores: Vec<f64>,
    /// The tickets of the next batch.
    next: Option<Vec<PullTicket>>,
}

impl<A: Steps> StepLearner<'_, A> {
    fn pull(&mut self, agent: &mut dyn Agent, batch: &Batch) -> Result<(), Error> {
        let tickets = self.next.take();
        for (at, (place, values)) in self.places.iter().zip(&mut self.values).enumerate() {
            match &tickets {
                Some(tickets) => place.wait(agent, &tickets[at], &batch.columns, values)?,
                None => place.pull(agent, &batch.columns, values)?,
            }
        }
        Ok(())
    }

    fn prefetch(&mut self, agent: &mut dyn Agent, next: Option<&Batch>) {
        let Some(next) = next.filter(|_| agent.sends_prefetches()) else { return };
        let clock = agent.clock() + 1;
        let tickets = self.places.iter().map(|place| place.prefetch(agent, &next.columns, clock));
        self.next = Some(tickets.collect());
    }
}

/// Refuses records of a format without columns for an algorithm that reads ids.
fn check_ids<A: Algorithm>(settings: &A::Settings, batch: &Batch) -> Result<(), Error> {
    let ids = A::needs(settings).ids;
    if ids.is_empty() || !batch.fields.is_empty() || batch.record_count() == 0 {
        return Ok(());
    }
    let names = ids.join(", ");
    Err(Error::unsuitable(format!(
        "{} reads the columns {names}, and the data have none: give a table",
        A::NAME
    )))
}

/// Returns the keys that were touched, and keeps their rows alone.
fn keep_touched(width: usize, keys: &[u64], touched: &[bool], rows: &mut Vec<f64>) -> Vec<u64> {
    let mut touched_keys = Vec::with_capacity(keys.len());
    for (at, key) in keys.iter().enumerate().filter(|(at, _)| touched[*at]) {
        rows.copy_within(at * width..(at + 1) * width, touched_keys.len() * width);
        touched_keys.push(*key);
    }
    rows.truncate(touched_keys.len() * width);
    touched_keys
}

impl<A: Steps> BatchLearner for StepLearner<'_, A> {
    type State = ();

    fn state(&self) {}

    fn step(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        next: Option<&Batch>,
        metrics: &mut MetricAccumulator,
    ) -> Result<StepSums, Error> {
        check_ids::<A>(&self.job.settings, batch)?;
        self.pull(agent, batch)?;
        self.prefetch(agent, next);
        let rows = Rows { places: &self.places, values: &self.values };
        self.scores.clear();
        rows.records(batch, &[]).for_each(|record| self.model.predict(&record, &mut self.scores));
        for (place, changes) in self.places.iter().zip(&mut self.changes) {
            changes.clear();
            changes.resize(batch.columns.len() * place.columns, 0.0);
        }
        for touched in &mut self.touched {
            touched.clear();
            touched.resize(batch.columns.len(), false);
        }
        let (places, values) = (&self.places[..], &mut self.changes[..]);
        let mut changes = Changes { places, values, touched: &mut self.touched, weight: 1.0 };
        let (mut loss, mut weight) = (0.0, 0.0);
        for record in rows.records(batch, &self.scores) {
            changes.weight = record.weight();
            weight += record.weight();
            let of_record = self.model.step(&self.job.settings, &record, &mut changes);
            loss += record.weight() * of_record;
            if let MetricAccumulator::Named(parts) = metrics {
                parts.loss.add(of_record, record.weight());
            }
        }
        accumulate(&self.model.output(), metrics, batch, &self.scores)?;
        let positive_count = batch.labels.iter().filter(|&&label| label > 0.0).count() as u64;
        let sums = StepSums { loss, positive_count, weight };
        if !loss.is_finite() {
            return Ok(sums);
        }
        for ((place, changes), touched) in self.places.iter().zip(&mut self.changes).zip(&self.touched) {
            let keys = keep_touched(place.columns, &batch.columns, touched, changes);
            place.push(agent, &keys, changes)?;
        }
        agent.tick()?;
        Ok(sums)
    }

    fn suspect(&self, batch: &Batch) -> Option<u64> {
        suspect_column(batch, &batch.values, &[])
    }

    fn end_epoch(&mut self, _: &mut TrainTask<'_>, end: &EpochSums) -> Result<Option<String>, Error> {
        if !end.is_stopped {
            check_weight(end.totals.record_count, end.totals.weight)?;
        }
        Ok(None)
    }
}
