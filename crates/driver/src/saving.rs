//! The end of a job: checks what only the end can show, has a worker save the model, and reports.

use std::time::Instant;

use algo::SavedModel;
use model::Manifest;
use rpc::layout::JobLayout;
use serde_json::{Value, json};

use crate::coverage::KnownFeatures;
use crate::driver::Driver;
use crate::effect::{Effect, FinishedJob, ParametersRequest, RunEnd};
use crate::epoch_monitor::StopReason;
use crate::error::Error;
use crate::messages::ToWorker;
use crate::phase::{Phase, Saving};
use crate::run_info::names_notice;
use crate::totals::{TaskSummary, Totals, validation_notices};

impl Driver {
    /// Has a worker save the model when all tasks have ended.
    pub fn save_model(&mut self, now: Instant, summaries: &[TaskSummary]) -> Result<(), Error> {
        let Phase::Training(training) = std::mem::replace(&mut self.phase, Phase::Ended) else {
            return Ok(());
        };
        let training = *training;
        self.timings.train_s = (now - training.since).as_secs_f64();
        self.timings.validate_s = summaries.iter().map(|task| task.validate_s).fold(0.0, f64::max);
        let summary = training.monitor.summary(training.step_count);
        let (plan, mut notices) = (training.setup.plan, training.setup.notices);
        let totals = Totals::of(summaries);
        let info = self.run_info(&plan);
        info.check_records(&totals, self.stop_requested)?;
        if summary.step_count == 0 && self.stop_requested {
            let what = "before the first step, so there is nothing to save".into();
            return Err(Error::Interrupted { what });
        }
        let known = KnownFeatures::new(totals.key_range, &plan.schema, &info.settings());
        notices.extend(validation_notices(summaries, &known));
        let manifest = Box::new(info.manifest(SavedModel::new(&*training.setup.model), &summary, &totals));
        let saver = plan.worker_tasks[0].worker;
        // After Ctrl-C the training may be continued exactly, so its checkpoints stay.
        let remove = training.checkpointing.to_remove().filter(|_| summary.end != StopReason::Interrupted);
        let layout = JobLayout { matrices: training.setup.model_specs, ..training.setup.layout };
        let (names, is_over_limit) = training.key_names.finish();
        notices.extend(is_over_limit.then(names_notice));
        names.pieces().for_each(|names| self.send(saver, ToWorker::KeyNames { names }));
        self.send(saver, ToWorker::SaveModel { layout, manifest, remove });
        let saving = Saving { plan, totals, summary, notices, since: now, manifest: None };
        self.phase = Phase::Saving(Box::new(saving));
        Ok(())
    }

    pub fn on_model_saved(&mut self, now: Instant, manifest: Manifest, notices: Vec<String>, sync_s: f64) {
        let Phase::Saving(saving) = &mut self.phase else { return };
        self.timings.save_s = (now - saving.since).as_secs_f64();
        self.timings.sync_s = sync_s;
        self.timings.total_s = (now - self.start + self.config.earlier_time).as_secs_f64();
        for notice in notices {
            if !saving.notices.contains(&notice) {
                saving.notices.push(notice);
            }
        }
        saving.manifest = Some(manifest);
        self.effects.push(Effect::Parameters(ParametersRequest::Stats));
    }

    /// Whether the model is written.
    pub fn has_saved(&self) -> bool {
        matches!(&self.phase, Phase::Saving(saving) if saving.manifest.is_some())
    }

    /// Ends the job with its report.
    pub fn on_final_stats(&mut self, now: Instant, saving: Saving, stats: Value) {
        let Saving { plan, totals, summary, notices, manifest, .. } = saving;
        let manifest = manifest.expect("the counters are read after the model was saved");
        let (end, last) = (summary.end, summary.epochs.last().cloned());
        let report = self.run_info(&plan).report(totals, stats, summary, &manifest, self.timings, notices);
        let mut progress = self.job_progress.to_json(now, last.as_ref());
        progress.insert("ended_by".into(), json!(report.ended_by));
        progress.insert("model".into(), json!(report.model.path));
        self.effects.push(Effect::Status(progress));
        let finished = FinishedJob { report, is_complete: end != StopReason::Interrupted };
        self.end(Ok(RunEnd::Finished(Box::new(finished))));
    }
}
