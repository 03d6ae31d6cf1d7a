//! `evaluate`: metrics of a model on labelled data.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Environment;
use super::judge::metrics;
use super::score::Scoring;
use crate::error::Error;
use crate::job::EvaluateJob;
use crate::model::Model;

/// What `evaluate` says.
#[derive(Clone, Debug, Serialize)]
pub struct Evaluation {
    /// Metrics by name.
    pub metrics: BTreeMap<String, f64>,
    /// Records scored.
    pub records: u64,
    /// What the labels look like.
    pub labels: String,
    /// The model.
    pub model: String,
    /// Its algorithm.
    pub algorithm: String,
    /// The data as given.
    pub data: Vec<String>,
    /// Bad lines left out.
    pub bad_lines: u64,
    /// What the user should know.
    pub notices: Vec<String>,
}

/// Evaluates a model.
pub fn evaluate(job: &EvaluateJob, environment: Environment<'_>) -> Result<Evaluation, Error> {
    let model = Model::read(&job.model, false)?;
    let mut input = job.input.clone();
    input.options.label_rule = model.manifest.model.label_rule();
    input.options.keep_zeros = model.manifest.model.keep_zeros();
    let source =
        data::Source::open_like(&input.source_config(), &model.manifest.schema, environment.formats)?;
    let workers = job.manner.tasks.map_or(job.manner.threads, |n| n as usize);
    let scoring = Scoring::new(&model, workers)?;
    let mut parts = model.manifest.model.metric_parts();
    let empty = parts.clone();
    let totals = scoring.run(
        &source,
        &input,
        environment.interrupt,
        |scorer, agent, batch| {
            let mut parts = empty.clone();
            scorer.evaluate(agent, batch, &mut parts)?;
            Ok(parts)
        },
        |made| {
            parts.merge(&made);
            Ok(())
        },
    )?;
    let mut notices = totals.notices.clone();
    notices.extend(parts.notices());
    Ok(Evaluation {
        metrics: metrics(&parts),
        records: totals.records,
        labels: crate::labels::describe(&totals.labels, source.schema()),
        model: job.model.display().to_string(),
        algorithm: model.manifest.algorithm,
        data: job.input.data.clone(),
        bad_lines: totals.bad_lines,
        notices,
    })
}
