//! Settings that the user leaves to the program: what is known of the data for choosing them, alike in one process and on
//! servers.

use algo::{Choice, Job, Known, Settled};
use data::{ColumnKind, Schema, Survey};
use matrix::Consistency;

use super::closing::all_held_out;
use super::totals::{TaskSummary, Totals};
use crate::error::Error;
use crate::job::TrainJob;

/// What a job's open settings are chosen from, before the data are surveyed.
#[derive(Clone, Copy)]
pub(super) struct Chooser<'a> {
    pub(super) job: &'a TrainJob,
    pub(super) algorithm: &'a dyn Job,
    pub(super) schema: &'a Schema,
    pub(super) size_bytes: Option<u64>,
    pub(super) previous: Option<&'a algo::Model>,
}

impl Chooser<'_> {
    /// The settings, or none when the data must be surveyed first.
    pub(super) fn choose(self) -> Result<Option<Settled>, Error> {
        match self.ask(None, 0)? {
            Choice::Settled(settled) => Ok(Some(settled)),
            Choice::Survey => Ok(None),
        }
    }

    /// The settings after a survey by all tasks, whose parts are merged in the order of tasks.
    pub(super) fn choose_by(self, tasks: &[TaskSummary]) -> Result<Settled, Error> {
        let mut survey = Survey::default();
        tasks.iter().filter_map(|task| task.training.survey.as_ref()).for_each(|part| survey.merge(part));
        let totals = Totals::of(tasks);
        let class_count = totals.labels.classes().map_or(0, |classes| classes.len() as u64);
        if survey.record_count == 0 {
            return Err(match totals.records {
                0 => Error::NoRecords { inputs: self.job.input.data.clone() },
                _ => all_held_out(self.algorithm.data_needs().validation_share),
            });
        }
        match self.ask(Some(&survey), class_count)? {
            Choice::Settled(settled) => Ok(settled),
            Choice::Survey => unreachable!("a survey is asked for once"),
        }
    }

    fn ask(self, survey: Option<&Survey>, class_count: u64) -> Result<Choice, Error> {
        let known = Known {
            is_table: self.schema.columns.iter().any(|column| column.kind == ColumnKind::Numeric),
            size_bytes: self.size_bytes,
            is_bsp: self.job.consistency == Consistency::Bsp,
            survey,
            class_count,
        };
        Ok(self.algorithm.settle(&known, self.previous)?)
    }
}
