//! Chooses the settings that are `auto`, from the properties of the data; the same for runs in one process and on
//! servers.

use algo::{DataProfile, Job, Resolution, ResolvedSettings};
use data::{ColumnKind, LabelStats, Schema, Survey};
use job::TrainJob;
use matrix::Consistency;

use crate::error::Error;
use crate::run_info::all_held_out_error;
use crate::totals::{TaskSummary, Totals};

/// What the open settings of a job are chosen from before the data are surveyed.
#[derive(Clone, Copy)]
pub(crate) struct SettingsChooser<'a> {
    pub job: &'a TrainJob,
    pub algorithm: &'a dyn Job,
    pub schema: &'a Schema,
    pub size_bytes: Option<u64>,
    pub previous: Option<&'a dyn algo::Model>,
}

/// The survey of all tasks, in the order of the tasks; `None` if there is none.
pub(crate) fn merged_survey(tasks: &[TaskSummary]) -> Option<Survey> {
    let mut parts = tasks.iter().filter_map(|task| task.training.survey.as_deref());
    let mut survey = parts.next()?.clone();
    parts.for_each(|part| survey.merge(part));
    Some(survey)
}

impl SettingsChooser<'_> {
    /// Returns the settings; none if the data must be surveyed first.
    pub(crate) fn choose(self) -> Result<Option<ResolvedSettings>, Error> {
        match self.resolve(None, None)? {
            Resolution::Resolved(settled) => Ok(Some(settled)),
            Resolution::NeedsSurvey => Ok(None),
        }
    }

    /// Returns the settings after a survey by all tasks, whose summaries are merged in the order of tasks.
    pub(crate) fn choose_after_survey(self, tasks: &[TaskSummary]) -> Result<ResolvedSettings, Error> {
        let survey = merged_survey(tasks).unwrap_or_default();
        let totals = Totals::of(tasks);
        if survey.record_count == 0 {
            return Err(match totals.records {
                0 => totals.no_records(&self.job.input),
                _ => all_held_out_error(self.job.holdout()),
            });
        }
        match self.resolve(Some(&survey), Some(&totals.labels))? {
            Resolution::Resolved(settled) => Ok(settled),
            Resolution::NeedsSurvey => unreachable!("a survey is asked for once"),
        }
    }

    fn resolve(self, survey: Option<&Survey>, labels: Option<&LabelStats>) -> Result<Resolution, Error> {
        let classes = labels.and_then(LabelStats::classes);
        let known = DataProfile {
            is_table: self.schema.columns.iter().any(|column| column.kind == ColumnKind::Numeric),
            size_bytes: self.size_bytes,
            is_bsp: self.job.consistency == Consistency::Bsp,
            has_validation: !self.job.validate.is_empty() || self.job.validate_from.is_some(),
            survey,
            class_count: classes.map_or(0, |classes| classes.len() as u64),
            label_name_count: self.schema.label_names.len(),
            labels,
        };
        Ok(self.algorithm.resolve_settings(&known, self.previous)?)
    }
}
