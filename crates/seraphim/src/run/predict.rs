//! `predict`: scores of a model, one line a record, in the order of the input.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use algo::Output;
use data::{Batch, LabelRule, Schema};
use serde::Serialize;

use super::Environment;
use super::score::Scoring;
use crate::error::Error;
use crate::interrupt::{Interrupt, Unfinished};
use crate::job::PredictJob;
use crate::model::Model;

/// Buffer of the output.
const BUFFER_BYTES: usize = 1 << 18;

/// What `predict` says.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// Records scored.
    pub records: u64,
    /// Where the scores are.
    pub output: String,
    /// The columns of the output.
    pub columns: Vec<String>,
    /// Bad lines left out.
    pub bad_lines: u64,
    /// What the user should know.
    pub notices: Vec<String>,
}

/// How records become columns.
pub(crate) struct Layout {
    /// Whether labels are written.
    pub(crate) label: bool,
    /// Names of classes; empty when there is one score.
    pub(crate) classes: Vec<String>,
}

impl Layout {
    fn new(output: &Output, schema: &Schema, label: bool) -> Self {
        let classes = match output {
            Output::Classes(classes) => classes.iter().map(|&class| class_name(class, schema)).collect(),
            Output::Probability | Output::Margin | Output::Value => Vec::new(),
        };
        Self { label, classes }
    }

    /// Names of the columns.
    pub(crate) fn columns(&self) -> Vec<String> {
        let label = self.label.then(|| "label".to_owned());
        if self.classes.is_empty() {
            return label.into_iter().chain(["score".to_owned()]).collect();
        }
        let probabilities = self.classes.iter().map(|class| format!("probability_{class}"));
        label.into_iter().chain(["predicted".to_owned()]).chain(probabilities).collect()
    }
}

fn class_name(class: f32, schema: &Schema) -> String {
    schema.label_names.get(class as usize).cloned().unwrap_or_else(|| class.to_string())
}

/// Scores and labels of one batch.
#[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "only Parquet takes numbers, not lines"))]
pub(crate) struct Scored {
    pub(crate) labels: Vec<f32>,
    pub(crate) scores: Vec<f64>,
    /// Lines of text, when the output is text.
    text: Vec<u8>,
}

/// Predicts.
pub fn predict(job: &PredictJob, environment: Environment<'_>) -> Result<Prediction, Error> {
    let model = Model::read(&job.model, false)?;
    let mut input = job.input.clone();
    input.options.label_rule = LabelRule::Real;
    input.options.keep_zeros = model.manifest.model.keep_zeros();
    let schema = &model.manifest.schema;
    let source = data::Source::open_like(&input.source_config(), schema, environment.formats)
        .map_err(|error| without_label(error, job, schema))?;
    let output = model.manifest.model.output();
    let layout = Layout::new(&output, &model.manifest.schema, input.options.has_label);
    let (width, text) = (output.width(), !is_parquet(&job.output));
    let workers = job.manner.tasks.map_or(job.manner.threads, |n| n as usize);
    let scoring = Scoring::new(&model, workers)?;
    let mut sink = Sink::open(&job.output, &layout, environment.interrupt)?;
    // With the first scores, so that standard output stays empty when the data cannot be read.
    let mut header =
        Some(layout.columns().iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",") + "\n");
    let work = |scorer: &mut dyn algo::Scorer, agent: &mut dyn matrix::Agent, batch: &Batch| {
        let mut scores = Vec::new();
        scorer.predict(agent, batch, &mut scores)?;
        let lines = if text { lines(&layout, &batch.labels, &scores, width) } else { Vec::new() };
        Ok(Scored { labels: batch.labels.clone(), scores, text: lines })
    };
    let take = |scored: Scored| {
        header.take().map_or(Ok(()), |header| sink.text(header.as_bytes()))?;
        sink.write(&scored)
    };
    let totals = scoring.run(&source, &input, environment.interrupt, work, take)?;
    sink.finish()?;
    Ok(Prediction {
        records: totals.records,
        output: job.output.display().to_string(),
        columns: layout.columns(),
        bad_lines: totals.bad_lines,
        notices: totals.notices,
    })
}

/// Data to predict on seldom have labels: the column that is missed is no mystery.
fn without_label(error: data::Error, job: &PredictJob, schema: &Schema) -> Error {
    match error {
        data::Error::UnknownColumn { file, column, .. }
            if job.input.options.label.is_none() && schema.label.as_ref() == Some(&column) =>
        {
            let what = format!("{file} has no label column '{column}'");
            Error::Request { what, advice: "add --no-label to predict without labels".into() }
        }
        error => error.into(),
    }
}

fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("parquet"))
}

fn lines(layout: &Layout, labels: &[f32], scores: &[f64], width: usize) -> Vec<u8> {
    /// Enough for most numbers; the buffer grows when it is not.
    const NUMBER_BYTES: usize = 24;
    let mut out = Vec::with_capacity(labels.len() * (width + 1) * NUMBER_BYTES);
    for (label, scores) in labels.iter().zip(scores.chunks_exact(width)) {
        if layout.label {
            number(&mut out, format_args!("{label}"));
            out.push(b',');
        }
        if !layout.classes.is_empty() {
            out.extend_from_slice(quoted(&layout.classes[largest(scores)]).as_bytes());
            out.push(b',');
        }
        for (i, score) in scores.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            number(&mut out, format_args!("{score}"));
        }
        out.push(b'\n');
    }
    out
}

fn number(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory cannot fail");
}

/// The position of the largest score, the first of equals.
pub(crate) fn largest(scores: &[f64]) -> usize {
    let mut best = 0;
    for (i, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = i;
        }
    }
    best
}

/// A CSV field (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}

fn put(from: &Path, to: &Path) -> Result<(), Error> {
    std::fs::rename(from, to).map_err(Error::io("write", to))
}

enum Sink {
    Standard(BufWriter<std::io::Stdout>),
    File {
        out: BufWriter<File>,
        place: PathBuf,
        /// None when the place is a device or a pipe, which cannot be replaced by a renamed file.
        part: Option<Unfinished>,
    },
    #[cfg(feature = "parquet")]
    Parquet {
        out: Box<super::parquet::ScoreFile>,
        part: Unfinished,
    },
}

impl Sink {
    fn open(path: &Path, layout: &Layout, interrupt: &Interrupt) -> Result<Self, Error> {
        if path.as_os_str() == "-" {
            return Ok(Self::Standard(BufWriter::with_capacity(BUFFER_BYTES, std::io::stdout())));
        }
        if path.is_dir() {
            let what = format!("{} is a folder", path.display());
            return Err(Error::Request { what, advice: "name a file for the scores".into() });
        }
        if is_parquet(path) {
            return Self::parquet(path, layout, interrupt);
        }
        let special = std::fs::metadata(path).is_ok_and(|m| !m.is_file());
        let part = (!special).then(|| interrupt.unfinished(path));
        let file =
            File::create(part.as_ref().map_or(path, Unfinished::path)).map_err(Error::io("create", path))?;
        Ok(Self::File { out: BufWriter::with_capacity(BUFFER_BYTES, file), place: path.into(), part })
    }

    #[cfg(feature = "parquet")]
    fn parquet(path: &Path, layout: &Layout, interrupt: &Interrupt) -> Result<Self, Error> {
        let part = interrupt.unfinished(path);
        File::create(part.path()).map_err(Error::io("create", path))?;
        let out = super::parquet::ScoreFile::create(part.path(), layout)?;
        Ok(Self::Parquet { out: Box::new(out), part })
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet(path: &Path, _layout: &Layout, _interrupt: &Interrupt) -> Result<Self, Error> {
        let what = format!("{}: this program was built without Parquet", path.display());
        Err(Error::Request { what, advice: "name a .csv file, or build it with the feature parquet".into() })
    }

    fn text(&mut self, text: &[u8]) -> Result<(), Error> {
        match self {
            Self::Standard(out) => out.write_all(text).map_err(Error::io("write", "standard output")),
            Self::File { out, place, .. } => out.write_all(text).map_err(Error::io("write", &*place)),
            #[cfg(feature = "parquet")]
            Self::Parquet { .. } => Ok(()),
        }
    }

    fn write(&mut self, scored: &Scored) -> Result<(), Error> {
        match self {
            #[cfg(feature = "parquet")]
            Self::Parquet { out, .. } => out.write(scored),
            _ => self.text(&scored.text),
        }
    }

    fn finish(self) -> Result<(), Error> {
        match self {
            Self::Standard(mut out) => out.flush().map_err(Error::io("write", "standard output")),
            Self::File { mut out, place, part } => {
                out.flush().map_err(Error::io("write", place))?;
                part.map_or(Ok(()), |part| part.finish(put))
            }
            #[cfg(feature = "parquet")]
            Self::Parquet { out, part } => {
                out.finish()?;
                part.finish(put)
            }
        }
    }
}
