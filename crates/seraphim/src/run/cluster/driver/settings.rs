//! The open settings of a job on a cluster: the driver chooses them from what the workers report of the data.

use std::collections::BTreeMap;

use algo::ResolvedSettings;

use super::super::messages::{FromWorker, ToWorker};
use super::{DataInspection, JobRun, WorkerTasks};
use crate::error::Error;
use crate::run::settings_chooser::SettingsChooser;
use crate::run::totals::TaskSummary;

impl JobRun<'_> {
    /// Has the workers open their shares, and chooses the open settings of the job: before that if possible, else by a
    /// survey.
    pub(super) fn choose_settings(
        &mut self,
        worker_tasks: &[WorkerTasks],
        looked: &DataInspection,
    ) -> Result<(bool, Vec<TaskSummary>), Error> {
        if let Some(settled) = self.chooser(looked).choose()? {
            self.apply_settings(settled)?;
            return self.prepare(worker_tasks, looked, false);
        }
        let (_, seen) = self.prepare(worker_tasks, looked, true)?;
        let settled = self.chooser(looked).choose_after_survey(&seen)?;
        self.apply_settings(settled)?;
        let needs = self.algorithm.data_needs();
        let holds_out = needs.validation_share > 0.0 && self.job.validate.is_empty();
        Ok((needs.scan || holds_out, seen))
    }

    fn chooser<'b>(&'b self, looked: &'b DataInspection) -> SettingsChooser<'b> {
        SettingsChooser {
            job: &self.job,
            algorithm: self.algorithm.as_ref(),
            schema: &looked.schema,
            size_bytes: looked.size_bytes,
            previous: looked.previous.as_ref(),
        }
    }

    fn apply_settings(&mut self, settled: ResolvedSettings) -> Result<(), Error> {
        let ResolvedSettings { settings: set, reasons } = settled;
        for reason in &reasons {
            self.progress.print_line(reason);
        }
        self.raw = std::mem::take(&mut self.raw).with_settings(&set);
        self.algorithm = (algo::algorithm(&self.job.algorithm)?.configure)(&set)?;
        (self.job.set, self.reasons) = (set, reasons);
        Ok(())
    }

    /// Has the workers open their shares, and scan them if necessary.
    fn prepare(
        &mut self,
        worker_tasks: &[WorkerTasks],
        looked: &DataInspection,
        survey: bool,
    ) -> Result<(bool, Vec<TaskSummary>), Error> {
        for share in worker_tasks {
            self.send(
                share.worker,
                &ToWorker::Prepare {
                    job: self.raw.clone(),
                    schema: looked.schema.clone(),
                    task_count: looked.task_count,
                    first: share.tasks.start,
                    count: share.tasks.len() as u32,
                    start: looked.start,
                    survey,
                },
            );
        }
        let mut answers: BTreeMap<u32, Vec<TaskSummary>> = BTreeMap::new();
        self.wait("the data were surveyed", |course, worker, heard| match heard {
            FromWorker::Prepared { scanned, summaries } => {
                let first =
                    worker_tasks.iter().find(|share| share.worker == worker).map(|share| share.tasks.start);
                answers.insert(first.unwrap_or_default(), summaries.0);
                let all = answers.len() == worker_tasks.len();
                Ok(all.then(|| (scanned, std::mem::take(&mut answers).into_values().flatten().collect())))
            }
            FromWorker::Progress { bytes, .. } => {
                course.progress.add_scanned_bytes(bytes);
                Ok(None)
            }
            _ => Ok(None),
        })
    }
}
