//! Boosted trees (Friedman, "Greedy function approximation: a gradient boosting machine", 2001) on histograms of bins (Ke et
//! al., "LightGBM", NIPS 2017). Gradients are integers, so that the trees have the same bytes for any number of tasks,
//! threads, servers and workers.
//!
//! **Tables.**
//!
//! | table | shape | element | push rule |
//! |---|---|---|---|
//! | `importances` | keys of the data x 3: splits, gain, 1 + number of the feature | f64 | add |
//! | `ensemble` | 1 x (1 + classes): iterations, first scores | f64 | assign |
//! | `nodes` | (tree x (2 leaves - 1) + node) x 9 | f64 | assign |
//! | `categories` | (node x 1024 + word) x 1: 64 categories that go left | i64 | assign |
//!
//! While several tasks train there is also `histograms`, by column (`histogram/partitions`).
//!
//! **An iteration** of a task: gradients and hessians of its records; for leaves that are split, the histogram of the
//! smaller child, which it pushes; the partitions add them up, subtract them from those of the parents, and find the best
//! splits. A task alone does the same in its memory.
//!
//! | file | what it holds |
//! |---|---|
//! | `params`, `auto`, `constraints` | parameters, those that are left open, directions of features and which may meet |
//! | `bins`, `records` | features and their bins; the records of a task as bins |
//! | `objective` | what is minimized: labels, gradients and hessians, percentiles, groups |
//! | `histogram` | gradients as integers, and their sums by bins: of a leaf, of a tree in memory, at the partitions |
//! | `split`, `sampling` | the best split of a leaf; the records of an iteration, and the features of a leaf |
//! | `grow`, `leaves` | a tree, leaf by leaf; the values of its leaves |
//! | `train` | a task |
//! | `tree`, `model`, `importances` | trees in tables, the saved model, what trees say of their features |
//! | `scoring`, `validation` | trees laid out for scoring; the validation records of a task |
//! | `explain` | what each feature adds to a score, and the leaves of a record |
//! | `names`, `render`, `lightgbm` | trees for people, and for LightGBM and back |

mod auto;
mod bins;
mod constraints;
mod explain;
mod grow;
mod histogram;
mod importances;
mod leaves;
pub mod lightgbm;
mod model;
mod names;
mod objective;
mod params;
mod records;
mod render;
mod sampling;
mod scoring;
mod split;
#[cfg(test)]
mod tests;
mod train;
mod tree;
mod validation;

use std::sync::Arc;

use data::{BatchSize, LabelRule, Shuffle};
use matrix::MatrixSpec;

pub use constraints::Constraints;
use histogram::{partitions, store};
pub use model::Model;
pub use objective::Objective;
use params::Params;

use algo::error::Error;
use algo::family::{self, AlgorithmRow, Family};
use algo::job::{DataFacts, DataProfile, Epochs, Job, Needs, Resolution, TableLayout, TrainTask};
use algo::labels::TrainingLabels;
use algo::param::CheckedParams;
use algo::task_loop::{Learner, TaskState};

/// Boosted trees.
pub const FAMILY: Family = Family {
    name: "trees",
    algorithms: &[AlgorithmRow {
        name: "gbdt",
        title: "Gradient boosted decision trees",
        parameters: &params::PARAMETERS,
        configure: |given| {
            let (checked, params) = params::check(given)?;
            Ok(Arc::new(Gbdt { checked, params }))
        },
    }],
    load: |fields| Ok(Arc::new(serde_json::from_value::<Model>(fields.clone())?)),
    functions: partitions::register,
};

/// Records that are read at once.
const READ_SIZE: usize = 4096;

/// A job of boosted trees.
#[derive(Clone, Debug)]
struct Gbdt {
    checked: CheckedParams,
    params: Params,
}

impl Job for Gbdt {
    fn settings(&self) -> &CheckedParams {
        &self.checked
    }

    fn resolve_settings(
        &self,
        known: &DataProfile<'_>,
        previous: Option<&dyn family::Model>,
    ) -> Result<Resolution, Error> {
        Ok(auto::resolve_settings(
            &self.checked,
            &self.params,
            known,
            previous.map(|model| model.of()).transpose()?,
        ))
    }

    fn needs(&self) -> Needs {
        Needs {
            label_rule: self.params.objective.map_or(LabelRule::Any, |objective| objective.label_rule(None)),
            positive_label: self.params.positive_label.clone(),
            scan: true,
            quantiles: true,
            uses_fields: true,
            keep_zeros: true,
            // The tasks keep the records in a form of their own.
            epochs: Epochs::Fixed(1),
            batch_size: BatchSize::Fixed(READ_SIZE),
            shuffle: Shuffle::None,
            repeats_validation: true,
            validation_share: self.params.validation_share,
            early_stopping: self.params.early_stopping.clone(),
            requires_bsp: true,
            ..Needs::default()
        }
    }

    fn model(
        &self,
        facts: &DataFacts,
        previous: Option<&dyn family::Model>,
    ) -> Result<Arc<dyn family::Model>, Error> {
        let previous: Option<&Model> = previous.map(|model| model.of()).transpose()?;
        let labels = TrainingLabels::new(facts);
        let positive_label = self.needs().positive(&labels)?;
        let survey = facts.survey.as_ref().expect("the job needs quantiles");
        let objective = self.params.objective.expect("the settings are resolved before a model is made");
        let classes = match objective {
            Objective::Logistic { .. } => vec![0.0, 1.0],
            Objective::Softmax => facts.classes.clone(),
            _ => Vec::new(),
        };
        let features = bins::make(survey, facts.dense, self.params.max_bins)?;
        let mut model = Model {
            constraints: Constraints::default(),
            objective,
            classes,
            positive_label,
            is_table: facts.dense,
            leaves: self.params.leaves,
            features,
            is_imported: false,
        };
        if let Some(previous) = previous {
            if previous.is_imported {
                let reason = "training cannot go on from an imported model, whose bins are not known: train without --from"
                    .to_owned();
                return Err(Error::UnsuitableData { reason });
            }
            labels.check_same_positive(positive_label, previous.positive_label)?;
            model.classes.clone_from(&previous.classes);
            model.features.clone_from(&previous.features);
        }
        let columns = (&params::MONOTONE, &params::INTERACTIONS);
        model.constraints = Constraints::new(&self.checked, columns, facts, survey, &model.features)?;
        Ok(Arc::new(model))
    }

    fn matrices(&self, model: &dyn family::Model, layout: TableLayout) -> Result<Vec<MatrixSpec>, Error> {
        let mut matrices = model.matrices(layout.partition_count);
        if layout.task_count > 1 {
            let model: &Model = model.of()?;
            if model.leaves > partitions::LEAF_LIMIT {
                let expected =
                    format!("at most {} for several tasks; train with --tasks 1", partitions::LEAF_LIMIT);
                return Err(self.checked.invalid_value(&params::LEAVES, expected));
            }
            let slots = store::slot_count(model.leaves as usize);
            matrices.push(partitions::spec(&model.features().bin_starts(), slots, layout.partition_count));
        }
        Ok(matrices)
    }

    fn begin<'a>(
        &'a self,
        task: &mut TrainTask<'a>,
        saved: Option<&TaskState>,
    ) -> Result<Box<dyn Learner + 'a>, Error> {
        train::begin(&self.params, task, saved)
    }
}
