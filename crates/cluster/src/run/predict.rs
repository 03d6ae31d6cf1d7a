//! `predict`: the scores of a model, one line per record, in the order of the input.

use std::io::Write;

use algo::{Families, Output, Scorer};
use data::{Batch, PassthroughColumn, PassthroughTexts, Schema};
use matrix::Agent;
use serde::{Deserialize, Serialize};

use super::coverage::KnownFeatures;
use super::explain::model_for;
use super::score::{LoadedModel, OpenedInput, ScoredPiece};
use super::score_output::{Destination, ScoreSink};
use super::totals::Totals;
use super::{Environment, load_model};
use crate::error::Error;
use crate::job::{PredictJob, ScoringJob};
use crate::labels;
use crate::outputs::Outputs;

/// The result of `predict`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Prediction {
    /// Number of scored records.
    pub records: u64,
    /// Path of the scores.
    pub output: String,
    /// Names of the output columns.
    pub columns: Vec<String>,
    /// The label whose probability or distance the score is; none for models without such a label.
    pub positive_label: Option<String>,
    /// Number of bad lines that were skipped.
    pub bad_lines: u64,
    /// Notices for the user.
    pub notices: Vec<String>,
}

/// The columns of the output.
pub(crate) struct ScoreColumns<'a> {
    /// Passthrough columns of the input.
    pub(crate) carried: &'a [PassthroughColumn],
    /// Whether labels are written.
    pub(crate) label: bool,
    /// The classes, with one column of probabilities or scores each; empty if there is one score.
    pub(crate) classes: Vec<f32>,
    /// Names of the scores; for classes the name of the predicted one, which is before the probabilities.
    scores: Vec<String>,
    /// Names of labels; empty if labels are numbers.
    pub(crate) label_names: &'a [String],
    /// Whether the scores are those before they become probabilities.
    is_raw: bool,
}

impl<'a> ScoreColumns<'a> {
    pub(super) fn new(
        output: Output,
        schema: &'a Schema,
        carried: &'a [PassthroughColumn],
        label: bool,
        is_raw: bool,
    ) -> Result<Self, Error> {
        let scores = output.names().into_iter().map(str::to_owned).collect();
        let classes = match output {
            Output::Classes(classes) => classes,
            Output::None | Output::Probability | Output::Margin | Output::Value | Output::Columns(_) => {
                Vec::new()
            }
        };
        let layout = Self { carried, label, classes, scores, label_names: &schema.label_names, is_raw };
        let mut names = layout.columns();
        names.sort_unstable();
        if let Some([name, ..]) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let what = format!("the output would have two columns '{name}'");
            let advice = "give the column of the data another name, or leave it out of --keep-columns".into();
            return Err(Error::InvalidRequest { what, advice });
        }
        Ok(layout)
    }

    /// Returns the names of the columns.
    pub(crate) fn columns(&self) -> Vec<String> {
        let mut columns: Vec<String> = self.carried.iter().map(|column| column.name.clone()).collect();
        columns.extend(self.label.then(|| "label".to_owned()));
        columns.extend(self.scores.iter().cloned());
        let of_class = if self.is_raw { "score" } else { "probability" };
        columns.extend(
            self.classes.iter().map(|&class| format!("{of_class}_{}", self.label_text(f64::from(class)))),
        );
        columns
    }

    /// Scores a batch; as lines of text if `is_text`.
    pub(crate) fn score(
        &self,
        is_text: bool,
        scorer: &mut dyn Scorer,
        agent: &mut dyn Agent,
        batch: &Batch,
    ) -> Result<ScoredBatch, Error> {
        let mut scores = Vec::new();
        if self.is_raw {
            scorer.raw_scores(agent, batch, &mut scores)?;
        } else {
            scorer.predict(agent, batch, &mut scores)?;
        }
        if is_text {
            let text = lines(self, batch, &scores, self.width());
            return Ok(ScoredBatch { text, ..ScoredBatch::default() });
        }
        let (labels, carried) = (batch.labels.clone(), batch.passthrough.clone());
        Ok(ScoredBatch { numbers: ScoredNumbers { labels, carried, scores }, text: Vec::new() })
    }

    /// The line with the names of the columns.
    pub(crate) fn header(&self) -> Vec<u8> {
        header(&self.columns())
    }

    /// Returns how many numbers a record has.
    pub(crate) fn width(&self) -> usize {
        if self.classes.is_empty() { self.scores.len() } else { self.classes.len() }
    }

    /// Returns a label as the user writes it.
    pub(crate) fn label_text(&self, label: f64) -> String {
        labels::text(label, self.label_names)
    }

    /// Returns the class with the largest probability; of equal ones, the first.
    pub(crate) fn predicted(&self, scores: &[f64]) -> f64 {
        f64::from(self.classes[algo::metric::argmax(scores)])
    }

    /// Returns the text of a passthrough column for the record with index `record`.
    pub(crate) fn carried_text<'t>(
        &self,
        texts: &'t PassthroughTexts,
        record: usize,
        column: &PassthroughColumn,
    ) -> &'t [u8] {
        texts.get(record * self.carried.len() + column.slot)
    }
}

/// The scores of one batch: numbers, or lines if the output is text.
#[derive(Default)]
pub(crate) struct ScoredBatch {
    pub(crate) numbers: ScoredNumbers,
    pub(crate) text: Vec<u8>,
}

/// Scores and labels of one batch.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct ScoredNumbers {
    pub(crate) labels: Vec<f64>,
    pub(crate) carried: PassthroughTexts,
    pub(crate) scores: Vec<f64>,
}

pub fn predict(job: &PredictJob, environment: Environment<'_>) -> Result<Prediction, Error> {
    let mut loaded = LoadedModel::of_command(&job.model, &job.manner, job.members.servers, environment)?;
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
    let take = |piece: ScoredPiece<ScoredBatch>| match piece {
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
        known: KnownFeatures::of(model)?,
    };
    Ok(facts.prediction(job, &totals))
}

/// What is known of a prediction before its first record.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PredictionFacts {
    pub columns: Vec<String>,
    pub positive_label: Option<String>,
    /// Notices about the input.
    pub notices: Vec<String>,
    pub known: KnownFeatures,
}

impl PredictionFacts {
    /// The result of the command.
    pub(super) fn prediction(self, job: &PredictJob, totals: &Totals) -> Prediction {
        Prediction {
            records: totals.records,
            output: job.output.display().to_string(),
            columns: self.columns,
            positive_label: self.positive_label,
            bad_lines: totals.bad_lines,
            notices: self.notices.into_iter().chain(totals.notices_of_scores(&self.known)).collect(),
        }
    }
}

/// Checks before anything is started what the first worker of a job checks too, so that errors are those of a run in one
/// process.
pub(super) fn check_workers_output(job: &ScoringJob, families: &Families) -> Result<(), Error> {
    let manifest = model::read_manifest(job.model())?;
    let scoring = model_for(load_model(job.model(), &manifest, families)?, job)?;
    let ScoringJob::Predict(job) = job else { return Ok(()) };
    checked_destination(job, &*scoring)?.place_of_parts().map(drop)
}

/// Where the scores of a job go; an error if they must not be written there.
pub(super) fn checked_destination(job: &PredictJob, scoring: &dyn algo::Model) -> Result<Destination, Error> {
    let destination = Destination::of(&job.output);
    let outputs = Outputs::new(job.overwrite).with_inputs(&job.input.data).with_model(&job.model);
    destination.check(&outputs, &scoring.output().names())?;
    Ok(destination)
}

/// Data for prediction seldom have labels, so this function adds to the error that the missing column is the label.
pub(super) fn without_label(error: data::Error, job: &PredictJob, schema: &Schema) -> Error {
    match error {
        data::Error::UnknownColumn { file, column, .. }
            if job.input.options.label.is_none() && schema.label.as_ref() == Some(&column) =>
        {
            let what = format!("{file} has no label column '{column}'");
            Error::InvalidRequest { what, advice: "add --no-label to predict without labels".into() }
        }
        error => error.into(),
    }
}

fn lines(layout: &ScoreColumns<'_>, batch: &Batch, scores: &[f64], width: usize) -> Vec<u8> {
    /// Enough for most numbers; otherwise the buffer grows.
    const NUMBER_BYTES: usize = 24;
    let mut out = Vec::with_capacity(batch.labels.len() * (width + 1) * NUMBER_BYTES);
    for (r, (&label, scores)) in batch.labels.iter().zip(scores.chunks_exact(width)).enumerate() {
        for column in layout.carried {
            quote(&mut out, layout.carried_text(&batch.passthrough, r, column));
            out.push(b',');
        }
        if layout.label {
            write_label(&mut out, layout, label);
            out.push(b',');
        }
        if !layout.classes.is_empty() {
            write_label(&mut out, layout, layout.predicted(scores));
            out.push(b',');
        }
        for (i, score) in scores.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            write_score(&mut out, *score);
        }
        out.push(b'\n');
    }
    out
}

/// Writes the shortest text that is parsed as the same number: `6.5e-149`, not 149 zeros.
fn write_score(out: &mut Vec<u8>, score: f64) {
    /// Range of values without exponent: outside of it, the exponent is shorter than the zeros.
    const PLAIN: std::ops::Range<f64> = 1e-4..1e16;
    if score == 0.0 || PLAIN.contains(&score.abs()) {
        number(out, format_args!("{score}"));
    } else {
        number(out, format_args!("{score:e}"));
    }
}

fn write_label(out: &mut Vec<u8>, layout: &ScoreColumns<'_>, label: f64) {
    match layout.label_names.get(label as usize) {
        Some(name) => quote(out, name.as_bytes()),
        None => number(out, format_args!("{label}")),
    }
}

fn number(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory cannot fail");
}

/// Writes a CSV field (RFC 4180).
pub(super) fn quote(out: &mut Vec<u8>, text: &[u8]) {
    if !text.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for &byte in text {
        out.extend(std::iter::repeat_n(byte, if byte == b'"' { 2 } else { 1 }));
    }
    out.push(b'"');
}

pub(super) fn header(columns: &[String]) -> Vec<u8> {
    let mut line = Vec::new();
    for (i, name) in columns.iter().enumerate() {
        line.extend((i > 0).then_some(b','));
        quote(&mut line, name.as_bytes());
    }
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_fields_of_csv_whatever_stands_in_them() {
        let cases = [
            ("plain name", "plain name"),
            ("a,b", "\"a,b\""),
            ("5\" disk", "\"5\"\" disk\""),
            ("two\nlines", "\"two\nlines\""),
            ("two\rlines", "\"two\rlines\""),
            ("\"", "\"\"\"\""),
            ("", ""),
        ];
        for (name, field) in cases {
            let mut out = b"before,".to_vec();
            quote(&mut out, name.as_bytes());
            assert_eq!(String::from_utf8(out).unwrap(), format!("before,{field}"));
        }
    }
}
