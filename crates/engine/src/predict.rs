//! `predict`: the scores of a model, one line per record, in the order of the input.

use algo::Scorer;
use data::Batch;
use driver::labels;
pub use driver::prediction::Prediction;
use driver::prediction::PredictionFacts;
use driver::totals::Totals;
use job::PredictJob;
use matrix::Agent;
use runtime::Environment;
use runtime::coverage_recorder::known_features;
use runtime::score::{LoadedModel, OpenedInput, ScoredPiece};
use runtime::score_columns::ScoredBatch;
use runtime::score_output::{ScoreSink, checked_destination};

use driver::Error;

pub fn predict(job: &PredictJob, environment: Environment<'_>) -> Result<Prediction, Error> {
    let mut loaded = LoadedModel::of_command(&job.model, &job.run_options, job.members.servers, environment)?;
    if let Some(explanation) = job.explanation {
        loaded.explain(explanation)?;
    }
    let LoadedModel { model, scoring, scorer } = &loaded;
    let destination = checked_destination(job, &**scoring)?;
    let opened = OpenedInput::for_prediction(job, &model.manifest, &**scoring, environment)?;
    let layout = opened.columns(job, &**scoring, &model.manifest.schema)?;
    let mut sink = ScoreSink::open(&destination, &layout, environment.interrupt)?;
    let mut totals = Totals::default();
    let is_text = !destination.is_parquet();
    let take = |output: ScoredPiece<ScoredBatch>| match output {
        ScoredPiece::Batch(scored) => sink.write(&scored, &layout),
        ScoredPiece::ChunkEnd(summary) => totals.add_checked(&summary, job.input.bad_lines),
    };
    let (chunks, interrupt) = (opened.chunks(), environment.interrupt);
    let work = |scorer: &mut dyn Scorer, agent: &mut dyn Agent, batch: &Batch| {
        layout.score(is_text, scorer, agent, batch)
    };
    scorer.run(&opened.source, &chunks, interrupt, work, take)?;
    totals.check_not_empty(&job.input)?;
    sink.finish(job.overwrite)?;
    let facts = PredictionFacts {
        columns: layout.columns(),
        positive_label: labels::positive(&**scoring, &model.manifest.schema),
        notices: opened.source.notices().to_vec(),
        known: known_features(model)?,
    };
    Ok(facts.prediction(job, &totals))
}
