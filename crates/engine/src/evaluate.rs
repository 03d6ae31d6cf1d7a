//! `evaluate`: metrics of a model on labelled data.

use algo::Scorer;
use algo::metric::MetricAccumulator;
use data::Batch;
pub use driver::evaluation::{ConfusionMatrix, Evaluation};
use driver::evaluation::{EvaluationFacts, empty_metrics, threshold};
use driver::totals::Totals;
use job::EvaluateJob;
use matrix::Agent;
use runtime::Environment;
use runtime::coverage_recorder::known_features;
use runtime::metric_parts::{MetricParts, batch_metrics};
use runtime::score::{LoadedModel, OpenedInput, ScoredPiece};

use driver::Error;

pub fn evaluate(job: &EvaluateJob, environment: Environment<'_>) -> Result<Evaluation, Error> {
    let loaded = LoadedModel::of_command(&job.model, &job.run_options, job.members.servers, environment)?;
    evaluate_loaded(&loaded, job, environment)
}

/// Evaluates a model that was read.
pub fn evaluate_loaded(
    loaded: &LoadedModel,
    job: &EvaluateJob,
    environment: Environment<'_>,
) -> Result<Evaluation, Error> {
    let LoadedModel { model, scoring, scorer } = loaded;
    let opened = OpenedInput::for_evaluation(job, &model.manifest, &**scoring, environment)?;
    threshold(job.threshold, &scoring.output())?;
    let empty = empty_metrics(&**scoring, job);
    let (mut sums, mut parts) = (empty.clone(), MetricParts::new(empty.clone()));
    let mut totals = Totals::default();
    let work = |scorer: &mut dyn Scorer, agent: &mut dyn Agent, batch: &Batch| {
        batch_metrics(&empty, scorer, agent, batch)
    };
    let take = |output: ScoredPiece<MetricAccumulator>| match output {
        ScoredPiece::Batch(batch) => {
            parts.add(&batch).iter().for_each(|part| sums.merge(part));
            Ok(())
        }
        ScoredPiece::ChunkEnd(summary) => {
            parts.take().iter().for_each(|part| sums.merge(part));
            totals.add_checked(&summary, job.input.bad_lines)
        }
    };
    scorer.run(&opened.source, &opened.chunks(), environment.interrupt, work, take)?;
    totals.check_not_empty(&job.input)?;
    let facts = EvaluationFacts {
        algorithm: model.manifest.algorithm.clone(),
        schema: opened.source.schema().clone(),
        notices: opened.source.notices().to_vec(),
        known: known_features(model)?,
    };
    facts.evaluation(&**scoring, job, &totals, &sums)
}
