//! A test for algorithms of authors: the same bytes for any partitioning, which is all that servers change, and from every
//! moment at which tasks save.

use std::collections::BTreeMap;

use data::{Batch, FormatOptions};
use matrix::{FunctionTable, MatrixId, RowBlock};

use crate::algorithm::Algorithm;
use crate::coordinator::{EpochReport, StepDecision};
use crate::error::Error;
use crate::family::{Families, Model};
use crate::in_process::{self, Finished, Setup};
use crate::job::{DataFacts, Job};

/// Numbers of tasks that are tried. Each is a job of its own.
const TASK_COUNTS: [usize; 3] = [1, 2, 3];
/// Numbers of partitions whose models must be the same: on one server or several.
const PARTITION_COUNTS: [u32; 3] = [1, 2, 7];
/// Records of a batch, few enough for several steps.
const BATCH_SIZE: usize = 4;
/// The first clocks at which tasks that can do so save within an epoch.
const SAVE_CLOCKS: std::ops::Range<u64> = 1..6;

/// Trains an algorithm on data in memory, such as the lines of a file of this format, with one to three tasks. The model must be
/// the same for any number of partitions, and if training continues from any moment at which the tasks save.
///
/// # Errors
/// What failed, or the first table that differs, with the number of tasks and what was different.
pub fn check<A: Algorithm>(format: &str, data: &str, settings: &[(&str, &str)]) -> Result<(), String> {
    let given = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let text = |error: Error| error.to_string();
    let job = (A::FAMILY.algorithms[0].configure)(&given).map_err(text)?;
    for task_count in TASK_COUNTS {
        Check::new::<A>(&*job, format, data, task_count).and_then(|check| check.run()).map_err(|error| {
            format!("with {task_count} task{}: {error}", if task_count == 1 { "" } else { "s" })
        })?;
    }
    Ok(())
}

struct Check<'a> {
    job: &'a dyn Job,
    model: std::sync::Arc<dyn Model>,
    functions: FunctionTable,
    tasks: Vec<Vec<Batch>>,
}

impl<'a> Check<'a> {
    fn new<A: Algorithm>(
        job: &'a dyn Job,
        format: &str,
        text: &str,
        task_count: usize,
    ) -> Result<Self, Error> {
        let mut options = FormatOptions::default();
        job.needs().set_options(&mut options);
        let (schema, tasks) = data::read_tasks(format, &options, text.as_bytes(), task_count, BATCH_SIZE)?;
        let facts = DataFacts { label_names: schema.label_names, ..facts(&tasks) };
        let families = Families::new(&[const { &A::FAMILY }])?;
        let mut functions = FunctionTable::builtin();
        families
            .add_functions(&mut functions)
            .map_err(|fault| matrix::Error::function("", A::NAME, fault))?;
        Ok(Self { job, model: job.new_model(&facts, None)?, functions, tasks })
    }

    fn run(&self) -> Result<(), Error> {
        let whole = self.train(Setup::default())?;
        let same = |run: &Finished, what: String| self.compare(&whole, run, &what);
        for partition_count in PARTITION_COUNTS {
            let run = self.train(Setup { partition_count, ..Setup::default() })?;
            same(&run, format!("with {partition_count} partitions"))?;
        }
        let mut moments = whole.moments.clone();
        for clock in SAVE_CLOCKS.filter(|_| self.job.needs().saves_within_epochs) {
            let run = self.train(Setup { save_clock: Some(clock), ..Setup::default() })?;
            same(&run, format!("saved at clock {clock}"))?;
            moments.extend(run.moments);
        }
        for moment in &moments {
            let run = self.train(Setup { from: Some(moment), partition_count: 3, ..Setup::default() })?;
            same(&run, format!("continued from clock {}", moment.clock))?;
        }
        Ok(())
    }

    fn train(&self, setup: Setup<'_>) -> Result<Finished, Error> {
        let (functions, tasks) = (self.functions.clone(), self.tasks.clone());
        in_process::run(self.job, &*self.model, functions, tasks, setup, |_, _| StepDecision::Continue)
    }

    /// The rows of the tables of the model, by name.
    fn tables(&self, run: &Finished) -> Result<BTreeMap<String, RowBlock>, Error> {
        let tables = self.model.matrices(1).into_iter().zip(0..);
        tables.map(|(spec, id)| Ok((spec.name, run.store.export(MatrixId(id))?))).collect()
    }

    /// Compares the tables, and the metrics of the epochs that both runs have.
    fn compare(&self, whole: &Finished, run: &Finished, what: &str) -> Result<(), Error> {
        let (expected, actual) = (self.tables(whole)?, self.tables(run)?);
        let differs = |name: &&String| {
            let (own, other) = (&expected[*name], &actual[*name]);
            // Slots of optimizers are left out.
            own.keys != other.keys || own.values != other.values
        };
        if let Some(name) = expected.keys().find(differs) {
            return Err(Error::unsuitable(format!("the table '{name}' is another one {what}")));
        }
        let metrics = |run: &Finished| {
            // Bits, as a metric that is no number differs from itself.
            let bits = |(name, value): (_, f64)| (name, value.to_bits());
            let of_report = |report: &EpochReport| report.training.finish().into_iter().map(bits).collect();
            run.reports.iter().rev().map(of_report).collect::<Vec<Vec<_>>>()
        };
        if metrics(whole).iter().zip(metrics(run)).any(|(own, other)| *own != other) {
            return Err(Error::unsuitable(format!("the metrics are others {what}")));
        }
        Ok(())
    }
}

/// What a scan of the records says.
fn facts(tasks: &[Vec<Batch>]) -> DataFacts {
    let labels: Vec<f64> = tasks.iter().flatten().flat_map(|batch| batch.labels.iter().copied()).collect();
    let count = labels.len().max(1) as f64;
    let mean = labels.iter().sum::<f64>() / count;
    let mut classes: Vec<f32> = labels.iter().map(|label| *label as f32).collect();
    classes.sort_by(f32::total_cmp);
    classes.dedup();
    DataFacts {
        record_count: labels.len() as u64,
        classes,
        label_mean: mean,
        label_deviation: (labels.iter().map(|label| (label - mean).powi(2)).sum::<f64>() / count).sqrt(),
        ..DataFacts::default()
    }
}
