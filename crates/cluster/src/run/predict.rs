//! `predict`: the scores of a model, one line per record, in the order of the input.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use algo::Output;
use data::{Batch, LabelRule, PassthroughColumn, PassthroughTexts, Schema};
use model::TempOutput;
use serde::Serialize;

use super::Environment;
use super::score::LoadedModel;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::job::PredictJob;
use crate::labels;
use crate::outputs::{self, OutputKind, Outputs};

/// The name of standard output.
const STANDARD_OUTPUT: &str = "-";
/// Buffer size of the output in bytes.
const BUFFER_BYTES: usize = 1 << 18;

/// The result of `predict`.
#[derive(Clone, Debug, Serialize)]
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
    /// The classes, with one probability column each; empty if there is one score.
    pub(crate) classes: Vec<f32>,
    /// Names of the scores; for classes the name of the predicted one, which is before the probabilities.
    scores: &'static [&'static str],
    /// Names of labels; empty if labels are numbers.
    pub(crate) label_names: &'a [String],
}

impl<'a> ScoreColumns<'a> {
    fn new(
        output: Output,
        schema: &'a Schema,
        carried: &'a [PassthroughColumn],
        label: bool,
    ) -> Result<Self, Error> {
        let scores = output.names();
        let classes = match output {
            Output::Classes(classes) => classes,
            Output::Probability | Output::Margin | Output::Value | Output::Columns(_) => Vec::new(),
        };
        let layout = Self { carried, label, classes, scores, label_names: &schema.label_names };
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
        columns.extend(self.scores.iter().map(|&name| name.to_owned()));
        columns.extend(self.classes.iter().map(|&class| format!("probability_{}", self.label_text(class))));
        columns
    }

    /// Returns how many numbers a record has.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "only Parquet needs it"))]
    pub(crate) fn width(&self) -> usize {
        if self.classes.is_empty() { self.scores.len() } else { self.classes.len() }
    }

    /// Returns a label as the user writes it.
    pub(crate) fn label_text(&self, label: f32) -> String {
        labels::text(label, self.label_names)
    }

    /// Returns the class with the largest probability; of equal ones, the first.
    pub(crate) fn predicted(&self, scores: &[f64]) -> f32 {
        self.classes[argmax(scores)]
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

/// Scores and labels of one batch.
#[derive(Default)]
#[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "only Parquet takes numbers, not lines"))]
pub(crate) struct ScoredBatch {
    pub(crate) labels: Vec<f32>,
    pub(crate) carried: PassthroughTexts,
    pub(crate) scores: Vec<f64>,
    /// Lines of text, if the output is text.
    text: Vec<u8>,
}

pub fn predict(job: &PredictJob, environment: Environment<'_>) -> Result<Prediction, Error> {
    let loaded = LoadedModel::of_command(&job.model, &job.manner, job.servers, environment)?;
    let LoadedModel { model, scoring, scorer } = &loaded;
    let outputs = Outputs::new(job.overwrite).with_inputs(&job.input.data).with_model(&job.model);
    if job.output.as_os_str() != STANDARD_OUTPUT {
        outputs.check_file("--output", &job.output, OutputKind::Scores(scoring.output().names()))?;
    }
    let schema = &model.manifest.schema;
    let (input, source) = loaded.open(&job.input, LabelRule::Real, environment)?;
    let source = source.map_err(|error| without_label(error, job, schema))?;
    let output = scoring.output();
    let (width, text) = (output.width(), !is_parquet(&job.output));
    let has_label = input.options.has_label && scoring.uses_labels();
    let layout = ScoreColumns::new(output, schema, source.passthrough_columns(), has_label)?;
    let mut sink = Sink::open(&job.output, &layout, environment.interrupt)?;
    // The header is written with the first scores, so that standard output stays empty when the data cannot be read.
    let mut header = Some(header(&layout.columns()));
    let work = |scorer: &mut dyn algo::Scorer, agent: &mut dyn matrix::Agent, batch: &Batch| {
        let mut scores = Vec::new();
        scorer.predict(agent, batch, &mut scores)?;
        if text {
            let lines = lines(&layout, batch, &scores, width);
            return Ok(ScoredBatch { text: lines, ..ScoredBatch::default() });
        }
        let (labels, carried) = (batch.labels.clone(), batch.passthrough.clone());
        Ok(ScoredBatch { labels, carried, scores, text: Vec::new() })
    };
    let take = |scored: ScoredBatch| {
        header.take().map_or(Ok(()), |header| sink.text(&header))?;
        sink.write(&scored, &layout)
    };
    let totals = scorer.run(&source, &input, environment.interrupt, work, take)?;
    sink.finish(job.overwrite)?;
    Ok(Prediction {
        records: totals.records,
        output: job.output.display().to_string(),
        columns: layout.columns(),
        positive_label: labels::positive(&**scoring, schema),
        bad_lines: totals.bad_lines,
        notices: source.notices().iter().cloned().chain(totals.all_notices()).collect(),
    })
}

/// Data for prediction seldom have labels, so this function adds to the error that the missing column is the label.
fn without_label(error: data::Error, job: &PredictJob, schema: &Schema) -> Error {
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

fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("parquet"))
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

fn write_label(out: &mut Vec<u8>, layout: &ScoreColumns<'_>, label: f32) {
    match layout.label_names.get(label as usize) {
        Some(name) => quote(out, name.as_bytes()),
        None => number(out, format_args!("{label}")),
    }
}

fn number(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory cannot fail");
}

/// Returns the position of the largest score; of equal ones, the first.
pub(crate) fn argmax(scores: &[f64]) -> usize {
    let mut best = 0;
    for (i, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = i;
        }
    }
    best
}

/// Writes a CSV field (RFC 4180).
fn quote(out: &mut Vec<u8>, text: &[u8]) {
    if !text.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for &byte in text {
        out.extend(std::iter::repeat_n(byte, if byte == b'"' { 2 } else { 1 }));
    }
    out.push(b'"');
}

fn header(columns: &[String]) -> Vec<u8> {
    let mut line = Vec::new();
    for (i, name) in columns.iter().enumerate() {
        line.extend((i > 0).then_some(b','));
        quote(&mut line, name.as_bytes());
    }
    line.push(b'\n');
    line
}

enum Sink {
    Standard(BufWriter<std::io::Stdout>),
    File {
        out: BufWriter<File>,
        place: PathBuf,
        /// None if the path is a device or a pipe, which a renamed file cannot replace.
        part: Option<TempOutput>,
    },
    #[cfg(feature = "parquet")]
    Parquet {
        out: Box<super::parquet::ScoreFile>,
        part: TempOutput,
    },
}

impl Sink {
    fn open(path: &Path, layout: &ScoreColumns<'_>, interrupt: &Interrupt) -> Result<Self, Error> {
        if path.as_os_str() == STANDARD_OUTPUT {
            return Ok(Self::Standard(BufWriter::with_capacity(BUFFER_BYTES, std::io::stdout())));
        }
        if is_parquet(path) {
            return Self::parquet(path, layout, interrupt);
        }
        let special = std::fs::metadata(path).is_ok_and(|m| !m.is_file());
        let part = (!special).then(|| interrupt.temp_output(path));
        let file =
            File::create(part.as_ref().map_or(path, TempOutput::path)).map_err(Error::io("create", path))?;
        Ok(Self::File { out: BufWriter::with_capacity(BUFFER_BYTES, file), place: path.into(), part })
    }

    #[cfg(feature = "parquet")]
    fn parquet(path: &Path, layout: &ScoreColumns<'_>, interrupt: &Interrupt) -> Result<Self, Error> {
        let part = interrupt.temp_output(path);
        File::create(part.path()).map_err(Error::io("create", path))?;
        let out = super::parquet::ScoreFile::create(part.path(), layout)?;
        Ok(Self::Parquet { out: Box::new(out), part })
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet(path: &Path, _layout: &ScoreColumns<'_>, _interrupt: &Interrupt) -> Result<Self, Error> {
        let what = format!("{}: this program was built without Parquet", path.display());
        Err(Error::InvalidRequest {
            what,
            advice: "name a .csv file, or build it with the feature parquet".into(),
        })
    }

    fn text(&mut self, text: &[u8]) -> Result<(), Error> {
        match self {
            Self::Standard(out) => out.write_all(text).map_err(Error::io("write", "standard output")),
            Self::File { out, place, .. } => out.write_all(text).map_err(Error::io("write", &*place)),
            #[cfg(feature = "parquet")]
            Self::Parquet { .. } => Ok(()),
        }
    }

    #[cfg_attr(not(feature = "parquet"), expect(unused_variables, reason = "only Parquet lays out numbers"))]
    fn write(&mut self, scored: &ScoredBatch, layout: &ScoreColumns<'_>) -> Result<(), Error> {
        match self {
            #[cfg(feature = "parquet")]
            Self::Parquet { out, .. } => out.write(scored, layout),
            _ => self.text(&scored.text),
        }
    }

    fn finish(self, overwrite: bool) -> Result<(), Error> {
        let put = outputs::put_file(overwrite);
        match self {
            Self::Standard(mut out) => out.flush().map_err(Error::io("write", "standard output")),
            Self::File { mut out, place, part } => {
                out.flush().map_err(Error::io("write", place))?;
                part.map_or(Ok(()), |part| part.persist(put))
            }
            #[cfg(feature = "parquet")]
            Self::Parquet { out, part } => {
                out.finish()?;
                part.persist(put)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_scores_the_first_class_is_predicted() {
        assert_eq!(argmax(&[0.25, 0.5, 0.5]), 1);
        assert_eq!(argmax(&[0.5, 0.5, 0.0]), 0);
        assert_eq!(argmax(&[0.1, 0.2, 0.7]), 2);
    }

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
