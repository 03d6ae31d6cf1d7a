//! A scoring job on one worker: it reads its share of the data, scores it with the model on the servers, and writes its
//! part of the scores or reports metrics. The first worker of the job also inspects the data, sends the model to the
//! servers, and joins the parts.

use std::path::Path;
use std::sync::Arc;

use algo::{SavedModel, Scorer};
use data::{Batch, Split};
use driver::amounts::counted;
use driver::evaluation::{EvaluationFacts, empty_metrics, threshold};
use driver::messages::{ChunkShare, DataExtent, FromWorker, ScoringFacts, ScoringShare};
use driver::prediction::PredictionFacts;
use driver::totals::ChunkSummary;
use driver::{Error, labels};
use job::{EvaluateJob, Exit, PredictJob, ScoringJob};
use matrix::Agent;
use model::{Manifest, ModelReader};
use rpc::layout::JobLayout;

use crate::coverage_recorder::known_features;
use crate::environment::{Environment, load_model};
use crate::explain::model_for;
use crate::metric_parts::{MetricParts, batch_metrics};
use crate::resume::import_matrix;
use crate::score::{ModelScorer, OpenedInput, ScoredPiece, checked_specs};
use crate::score_columns::ScoredBatch;
use crate::score_output::{Destination, PartSink, ScoreParts, checked_destination, join_parts};
use crate::worker::{MatrixAccess, WorkerContext};

/// A scoring job as one worker executes it.
pub(super) struct ScoringTask {
    job: ScoringJob,
    manifest: Manifest,
    scoring: Arc<dyn algo::Model>,
    opened: OpenedInput,
    chunks: Vec<Split>,
    /// The files of the model, on the worker that sends them to the servers.
    files: Option<ModelReader>,
    /// The folder of the parts, on the worker that joins them.
    parts: Option<ScoreParts>,
}

impl ScoringTask {
    /// Opens the model and the data.
    pub(super) fn open(job: ScoringJob, environment: Environment<'_>) -> Result<Self, Error> {
        let manifest = model::read_manifest(job.model())?;
        let scoring = model_for(load_model(job.model(), &manifest, environment.families)?, &job)?;
        let opened = match &job {
            ScoringJob::Predict(job) => OpenedInput::for_prediction(job, &manifest, &*scoring, environment)?,
            ScoringJob::Evaluate(job) => OpenedInput::for_evaluation(job, &manifest, &*scoring, environment)?,
        };
        let chunks = opened.chunks();
        Ok(Self { job, manifest, scoring, opened, chunks, files: None, parts: None })
    }

    /// Checks everything that can be checked before the first record, and prepares for the parts.
    pub(super) fn inspect(&mut self, context: &WorkerContext) -> Result<FromWorker, Error> {
        let scoring = &*self.scoring;
        checked_specs(&self.manifest, self.job.model(), scoring, 1, &context.functions)?;
        let files = self.files.insert(ModelReader::open(self.job.model(), false)?);
        let known = known_features(files)?;
        let notices = self.opened.source.notices().to_vec();
        let facts = match &self.job {
            ScoringJob::Predict(job) => {
                let destination = checked_destination(job, scoring)?;
                let columns = self.opened.columns(job, scoring, &self.manifest.schema)?.columns();
                self.parts = Some(destination.create_parts(context.job, &context.interrupt)?);
                let positive_label = labels::positive(scoring, &self.manifest.schema);
                ScoringFacts::Prediction(PredictionFacts { columns, positive_label, notices, known })
            }
            ScoringJob::Evaluate(job) => {
                threshold(job.threshold, &scoring.output())?;
                let (algorithm, schema) =
                    (self.manifest.algorithm.clone(), self.opened.source.schema().clone());
                ScoringFacts::Evaluation(Box::new(EvaluationFacts { algorithm, schema, notices, known }))
            }
        };
        let folder = self.parts.as_ref().map(ScoreParts::folder);
        Ok(FromWorker::ScoringInspected {
            data: self.extent(),
            model: SavedModel::new(scoring),
            folder,
            facts: Box::new(facts),
        })
    }

    fn extent(&self) -> DataExtent {
        let (chunk_count, size_bytes) = (self.chunks.len() as u32, self.opened.source.size_bytes());
        DataExtent { chunk_count, size_bytes }
    }

    /// Sends the model to the matrices of the job, block by block.
    pub(super) fn import(
        &mut self,
        layout: &JobLayout,
        matrices: &mut dyn MatrixAccess,
    ) -> Result<(), Error> {
        let mut model = match self.files.take() {
            Some(files) => files,
            None => ModelReader::open(self.job.model(), false)?,
        };
        for (number, spec) in (0..).zip(&layout.matrices) {
            let entry = model.manifest.matrices.iter().position(|entry| entry.name == spec.name);
            let Some(entry) = entry else { continue };
            import_matrix(&mut model, entry, (number, spec), matrices, true)?;
        }
        Ok(())
    }

    /// Scores the worker's share, and reports each chunk.
    pub(super) fn score(
        &self,
        share: ScoringShare,
        layout: &JobLayout,
        context: &WorkerContext,
    ) -> Result<(), Error> {
        let ScoringShare { part, tasks, chunks, data, folder } = share;
        check_extent(self.extent(), data)?;
        let (connections, functions) = (Arc::clone(&context.parameters), Arc::clone(&context.functions));
        let (layout, scoring) = (layout.clone(), Arc::clone(&self.scoring));
        let scorer = ModelScorer::of_job(layout, tasks.0..tasks.1, scoring, connections, functions);
        let run = ShareRun { scorer: &scorer, chunks, context };
        match (&self.job, folder) {
            (ScoringJob::Predict(job), Some(folder)) => self.predict(job, &folder, part, &run)?,
            (ScoringJob::Predict(_), None) => {
                let text = "the driver names no folder for the scores".into();
                return Err(Error::Cluster { text, exit: Exit::Internal });
            }
            (ScoringJob::Evaluate(job), _) => self.evaluate(job, &run)?,
        }
        (context.sender)(FromWorker::PartScored { part });
        Ok(())
    }

    fn predict(&self, job: &PredictJob, folder: &Path, part: u32, run: &ShareRun<'_>) -> Result<(), Error> {
        let destination = Destination::of(&job.output);
        let layout = self.opened.columns(job, &*self.scoring, &self.manifest.schema)?;
        let mut sink = PartSink::create(&destination, folder, part, &layout)?;
        let is_text = !destination.is_parquet();
        let work = |scorer: &mut dyn Scorer, agent: &mut dyn Agent, batch: &Batch| {
            layout.score(is_text, scorer, agent, batch)
        };
        let mut numbers = run.chunks.iter();
        let take = |output: ScoredPiece<ScoredBatch>| match output {
            ScoredPiece::Batch(scored) => sink.write(&scored, &layout),
            ScoredPiece::ChunkEnd(summary) => {
                run.report_chunk(numbers.next(), summary);
                Ok(())
            }
        };
        let chunks = run.splits(&self.chunks);
        run.scorer.run(&self.opened.source, &chunks, &run.context.interrupt, work, take)?;
        sink.finish()
    }

    fn evaluate(&self, job: &EvaluateJob, run: &ShareRun<'_>) -> Result<(), Error> {
        let empty = empty_metrics(&*self.scoring, job);
        let mut parts = MetricParts::new(empty.clone());
        let work = |scorer: &mut dyn Scorer, agent: &mut dyn Agent, batch: &Batch| {
            batch_metrics(&empty, scorer, agent, batch)
        };
        let mut numbers = run.chunks.iter().peekable();
        let take = |output| {
            let (metrics, end) = match output {
                ScoredPiece::Batch(batch) => (parts.add(&batch), None),
                ScoredPiece::ChunkEnd(summary) => (parts.take(), Some(summary)),
            };
            if let (Some(&chunk), Some(metrics)) = (numbers.peek(), metrics) {
                let metrics = Box::new(metrics);
                (run.context.sender)(FromWorker::ChunkMetrics { chunk, metrics });
            }
            if let Some(summary) = end {
                run.report_chunk(numbers.next(), summary);
            }
            Ok(())
        };
        let chunks = run.splits(&self.chunks);
        run.scorer.run(&self.opened.source, &chunks, &run.context.interrupt, work, take)
    }

    /// Puts the scores of all workers in their place.
    pub(super) fn join(self, part_count: u32, environment: Environment<'_>) -> Result<(), Error> {
        let (ScoringJob::Predict(job), Some(parts)) = (&self.job, self.parts) else { return Ok(()) };
        let destination = Destination::of(&job.output);
        let layout = self.opened.columns(job, &*self.scoring, &self.manifest.schema)?;
        join_parts(&destination, parts, part_count, &layout, job.overwrite, environment.interrupt)
    }
}

/// Fails if this worker sees other data than the first one.
fn check_extent(own: DataExtent, first: DataExtent) -> Result<(), Error> {
    if own == first {
        return Ok(());
    }
    let shown = |data: DataExtent| {
        let size = data.size_bytes.map_or_else(|| "an unknown size".into(), |bytes| format!("{bytes} bytes"));
        format!("{size} in {}", counted(data.chunk_count.into(), "chunk"))
    };
    let what = format!("the data have {} here, and {} on the first worker", shown(own), shown(first));
    let advice = "every worker must see the same files, and they must not change while they are read";
    Err(Error::request(what, advice))
}

/// The share of a worker and what scores it.
struct ShareRun<'a> {
    scorer: &'a ModelScorer,
    chunks: ChunkShare,
    context: &'a WorkerContext,
}

impl ShareRun<'_> {
    fn report_chunk(&self, chunk: Option<u32>, summary: Box<ChunkSummary>) {
        if let Some(chunk) = chunk {
            (self.context.sender)(FromWorker::ChunkScored { chunk, summary });
        }
    }

    /// The chunks of the share, of all of the data.
    fn splits(&self, all: &[Split]) -> Vec<Split> {
        self.chunks.iter().filter_map(|chunk| all.get(chunk as usize)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_sees_other_data_says_what_differs() {
        let first = DataExtent { chunk_count: 3, size_bytes: Some(1000) };
        assert!(check_extent(first, first).is_ok());
        for own in [
            DataExtent { chunk_count: 1, ..first },
            DataExtent { size_bytes: Some(999), ..first },
            DataExtent { size_bytes: None, ..first },
        ] {
            let error = check_extent(own, first).unwrap_err().to_string();
            assert!(error.contains("1000 bytes in 3 chunks on the first worker"), "{error}");
        }
    }
}
