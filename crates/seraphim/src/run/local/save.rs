//! What a run leaves behind: the model directory, and how it was trained.

use std::collections::BTreeMap;

use data::TaskData;
use matrix::{LocalStore, MatrixId, MatrixSpec};

use super::{Opened, Trainer};
use crate::error::Error;
use crate::job::consistency_name;
use crate::model::{self, Manifest, Model, Saved, Trained, Written, manifest};
use crate::run::judge::{End, Outcome};
use crate::run::totals::{self, Totals};

impl Trainer<'_> {
    pub(super) fn save(
        &self,
        opened: &Opened,
        specs: &[MatrixSpec],
        ids: &[MatrixId],
        store: &LocalStore,
        model: algo::Model,
        previous: Option<Model>,
        outcome: &Outcome,
        shares: &mut [TaskData],
    ) -> Result<Written, Error> {
        let rows = ids.iter().map(|&id| store.export(id)).collect::<Result<Vec<_>, _>>()?;
        let saved: Vec<Saved<'_>> =
            specs.iter().zip(&rows).map(|(spec, rows)| Saved { spec, rows }).collect();
        let mut dictionary = previous.map(|model| model.dictionary).unwrap_or_default();
        dictionary.extend(totals::dictionary(shares));
        dictionary.retain(|key, _| rows.iter().any(|rows| rows.keys.binary_search(key).is_ok()));
        let manifest = Manifest {
            format: manifest::FORMAT_NAME.into(),
            format_version: manifest::FORMAT_VERSION,
            program_version: env!("CARGO_PKG_VERSION").into(),
            algorithm: self.job.algorithm.clone(),
            settings: self.settings(),
            schema: opened.source.schema().clone(),
            model,
            matrices: Vec::new(),
            trained: self.trained(opened, outcome, shares),
            files: Vec::new(),
        };
        let job = self.job;
        let interrupt = self.environment.interrupt;
        model::write(&job.model, job.overwrite, manifest, &saved, job.keep_optimizer, &dictionary, interrupt)
    }

    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        self.algorithm.settings().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn trained(&self, opened: &Opened, outcome: &Outcome, shares: &[TaskData]) -> Trained {
        let saved_epoch = match outcome.best_epoch {
            Some(best) => outcome.epochs.iter().find(|line| line.epoch == best),
            None => outcome.epochs.last(),
        };
        Trained {
            data: self.job.input.data.clone(),
            validate: self.job.validate.clone(),
            from: self.job.from.as_ref().map(|path| path.display().to_string()),
            records: Totals::of(shares).records,
            epochs: outcome.epochs.len() as u64,
            interrupted: outcome.end == End::Interrupted,
            seed: self.job.seed,
            tasks: opened.task_count,
            consistency: consistency_name(self.job.consistency),
            metrics: saved_epoch.map(|line| line.training.clone()).unwrap_or_default(),
            validation_metrics: saved_epoch.and_then(|line| line.validation.clone()).unwrap_or_default(),
        }
    }
}
