//! Factorization machines: `score = b + sum_i w_i x_i + sum_{i<j} a_ij x_i x_j`, where the weight `a_ij` of a pair of
//! features is the inner product of their factors, so that pairs that were never seen together have a weight too.
//!
//! **Sources.** Rendle, "Factorization machines", ICDM 2010 (`fm`): `a_ij = <v_i, v_j>`, and equation 5 for the sum over
//! pairs in linear time; Juan, Zhuang, Chin, Lin, "Field-aware factorization machines for CTR prediction", `RecSys` 2016
//! (`ffm`): `a_ij = <v_i,field(j), v_j,field(i)>`.
//!
//! **Notation.** n records of a batch, e entries, d distinct features in the batch, k factors, F fields (1 for `fm`). X:
//! n x d, sparse; w: d; V: d x (F k); slopes s: n, the derivative of the loss in the score.
//!
//! **Matrices.**
//!
//! | matrix | shape | element | push rule |
//! |---|---|---|---|
//! | `weights` | features x 1, sparse by hash | f32 | `linear_optimizer` |
//! | `intercept` | 1 x 1, dense | f32 | `linear_optimizer` without l1 and l2 |
//! | `factors` | features x (F k), sparse by hash; a row reads as 0 until its first push | f32 | `optimizer` |
//! | `moments`, if `standardize` | features x 3: share of records with the feature, mean, mean square | f64 | add |
//! | `sightings`, in training with `admission` > 1 | features x 1: records with the feature | f32 | add |
//!
//! **A step** of a task: pull w, b and V of the features of the batch; score; push the gradients; tick. A feature has
//! a row of factors from the batch in which it has been seen `admission` times. Until then it has a weight only, and
//! the pairs with it count as 0, as they do for a feature that training never saw.
//!
//! **Where we differ.** The gradients of a batch are summed per feature and applied as one. The penalty of the
//! factors belongs to each record, `l2 / 2` times the squared and `l1` times the absolute factors of its features, so it
//! counts as often as the feature occurs in the batch. The result then depends little on the batch size (frappe, k=8, ten passes: AUC .950 to
//! .951 with batches of 64 to 256).
//!
//! **Cost** of a step: 4 e k multiply-adds for `fm`, 4 k for each pair of entries of a record for `ffm`; 4 d (1 + F k)
//! bytes pulled and as many pushed.

mod auto;
mod interaction;
mod model;
mod params;
mod score;
#[cfg(test)]
mod tests;
mod train;

use std::collections::BTreeMap;
use std::sync::Arc;

use data::{BatchSize, LabelRule};
use matrix::{ElementType, Initializer, MatrixSpec, PushRule};

pub use model::Model;

use algo::advice::TrainingReport;
use algo::error::Error;
use algo::family::{self, AlgorithmRow, Family};
use algo::job::{DataFacts, DataProfile, Job, Needs, Resolution, TableLayout, TrainTask};
use algo::labels::{LabelScale, TrainingLabels};
use algo::param::CheckedParams;
use algo::param::remedies::GradientSettings;
use algo::scaling::{ScaledColumns, Standardize};
use algo::task_loop::{Learner, TaskState};
use params::Params;

/// Factorization machines.
pub const FAMILY: Family = Family {
    name: "factorization",
    algorithms: &[
        AlgorithmRow {
            name: "fm",
            title: "Factorization machine: weights of features and of their pairs",
            parameters: params::FM,
            configure: |given| Ok(Arc::new(Factorization::new("fm", params::FM, given)?)),
        },
        AlgorithmRow {
            name: "ffm",
            title: "Field-aware factorization machine: pairs weighted by the fields of both features",
            parameters: params::FFM,
            configure: |given| Ok(Arc::new(Factorization::new("ffm", params::FFM, given)?)),
        },
    ],
    load: |fields| Ok(Arc::new(serde_json::from_value::<Model>(fields.clone())?)),
    functions: |_| Ok(()),
};

/// Largest number of numbers in a row of factors.
const WIDTH_LIMIT: u64 = 1 << 20;

/// A job of `fm` or `ffm`.
#[derive(Clone, Debug)]
struct Factorization {
    checked: CheckedParams,
    has_fields: bool,
    params: Params,
}

impl Factorization {
    fn new(
        algorithm: &'static str,
        table: &'static [algo::ParamSpec],
        given: &BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        let checked = CheckedParams::new(algorithm, table, given)?;
        Ok(Self { has_fields: algorithm == "ffm", params: Params::new(&checked)?, checked })
    }

    fn is_real(&self) -> bool {
        self.params.loss.is_real()
    }

    /// The number of fields of the model: those of the earlier model, or those in the data.
    fn fields(&self, facts: &DataFacts, previous: Option<&Model>) -> Result<Option<u32>, Error> {
        if !self.has_fields {
            return Ok(None);
        }
        let unsuitable = |reason: String| Err(Error::UnsuitableData { reason });
        let (found, known) = (facts.field_count, previous.and_then(|model| model.fields));
        let width = found.saturating_mul(self.params.factors as u64);
        match known {
            _ if found == 0 => unsuitable(model::NO_FIELDS.to_owned()),
            Some(known) if found > u64::from(known) => unsuitable(format!(
                "the training data have fields up to {}, and the earlier model knows {known} fields, from 0: train \
                 without --from, or leave these entries out",
                found - 1
            )),
            Some(known) => Ok(Some(known)),
            None if width > WIDTH_LIMIT => unsuitable(format!(
                "the training data have fields up to {}, so each feature would have {width} factors (fields x k), and the \
                 limit is {WIDTH_LIMIT}: number the fields from 0 without gaps, or lower k",
                found - 1
            )),
            None => Ok(Some(found as u32)),
        }
    }
}

impl Job for Factorization {
    fn settings(&self) -> &CheckedParams {
        &self.checked
    }

    fn resolve_settings(
        &self,
        known: &DataProfile<'_>,
        previous: Option<&dyn family::Model>,
    ) -> Result<Resolution, Error> {
        Ok(auto::resolve_settings(self, known, previous.map(|model| model.of()).transpose()?))
    }

    fn needs(&self) -> Needs {
        let params = &self.params;
        Needs {
            label_rule: if self.is_real() { LabelRule::Real } else { LabelRule::Binary { positive: None } },
            scan: self.is_real() || self.has_fields || params.standardize || params.positive_label.is_some(),
            keep_zeros: self.checked.text(&params::STANDARDIZE) != "false",
            subtracts_origins: true,
            uses_fields: self.has_fields,
            epochs: params.epochs,
            batch_size: params.batch_size.map_or(BatchSize::Growing, BatchSize::Fixed),
            shuffle: params.shuffle,
            validation_share: params.validation_share,
            early_stopping: params.early_stopping.clone(),
            saves_within_epochs: true,
            positive_label: params.positive_label.clone(),
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
        let scale = LabelScale { mean: facts.label_mean, deviation: facts.label_deviation };
        let mut model = Model {
            algorithm: self.checked.algorithm().to_owned(),
            loss: self.params.loss,
            factors: self.params.factors,
            fields: self.fields(facts, previous)?,
            standardize: self.params.standardize.then(|| Standardize::by_deviation(facts)),
            scaled_columns: ScaledColumns::default(),
            normalize: self.params.normalize,
            positive_label,
            label_scale: Some(scale).filter(|scale| self.is_real() && scale.deviation > 0.0),
        };
        if model.standardize.is_some() {
            model.scaled_columns = ScaledColumns::of_data(facts);
        }
        if let Some(previous) = previous {
            model.label_scale = previous.label_scale;
            model.scaled_columns = previous.scaled_columns;
            labels.check_same_positive(positive_label, previous.positive_label)?;
        }
        Ok(Arc::new(model))
    }

    fn matrices(&self, model: &dyn family::Model, layout: TableLayout) -> Result<Vec<MatrixSpec>, Error> {
        let partition_count = layout.partition_count;
        let params = &self.params;
        let mut specs = model.matrices(partition_count);
        specs[0].rule = params.weights_rule;
        specs[1].rule = params.intercept_rule;
        specs[2].rule = params.factors_rule;
        if let Some(moments) = specs.get_mut(3) {
            moments.rule = PushRule::Add;
        }
        specs[2].initializer = Initializer::NormalOnFirstPush { deviation: params.deviation };
        if params.admission > 1 {
            let rule = PushRule::Add;
            specs.push(MatrixSpec::sparse("sightings", ElementType::F32, 1, rule, partition_count));
        }
        Ok(specs)
    }

    fn begin<'a>(
        &'a self,
        task: &mut TrainTask<'a>,
        saved: Option<&TaskState>,
    ) -> Result<Box<dyn Learner + 'a>, Error> {
        train::begin(self, task, saved)
    }

    fn divergence_advice(&self) -> String {
        let Params { learning_rate, linear_learning_rate, l2, standardize, normalize, .. } = self.params;
        let scale = if standardize || normalize { "" } else { ", or scale the columns (standardize=true)" };
        format!(
            "Lower learning_rate (now {learning_rate:?}) and linear_learning_rate (now {linear_learning_rate:?}), or \
             raise l2 (now {l2:?}){scale}"
        )
    }

    fn advice(&self, report: &TrainingReport<'_>) -> Vec<String> {
        const SETTINGS: GradientSettings = GradientSettings {
            l1: &params::L1,
            l2: &params::L2,
            learning_rate: &params::LEARNING_RATE,
            standardize: &params::STANDARDIZE,
            normalize: &params::NORMALIZE,
        };
        SETTINGS.remedies(&self.checked, false).notices(report)
    }
}
