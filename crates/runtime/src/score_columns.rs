//! `predict`: the scores of a model, one line per record, in the order of the input.

use std::io::Write;

use algo::{Output, Scorer};
use data::{Batch, PassthroughColumn, PassthroughTexts, Schema};
use driver::{Error, labels};
use matrix::Agent;
use serde::{Deserialize, Serialize};

/// The columns of the output.
pub struct ScoreColumns<'a> {
    /// Passthrough columns of the input.
    pub passthrough: &'a [PassthroughColumn],
    /// Whether labels are written.
    pub label: bool,
    /// The classes, with one column of probabilities or scores each; empty if there is one score.
    pub classes: Vec<f32>,
    /// Names of the scores; for classes the name of the predicted one, which is before the probabilities.
    scores: Vec<String>,
    /// Names of labels; empty if labels are numbers.
    pub label_names: &'a [String],
    /// Whether the scores are those before they become probabilities.
    is_raw: bool,
}

impl<'a> ScoreColumns<'a> {
    pub fn new(
        output: Output,
        schema: &'a Schema,
        passthrough: &'a [PassthroughColumn],
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
        let layout = Self { passthrough, label, classes, scores, label_names: &schema.label_names, is_raw };
        let mut names = layout.columns();
        names.sort_unstable();
        if let Some([name, ..]) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let what = format!("the output would have two columns '{name}'");
            let advice = "give the column of the data another name, or leave it out of --keep-columns";
            return Err(Error::request(what, advice));
        }
        Ok(layout)
    }

    /// Returns the names of the columns.
    pub fn columns(&self) -> Vec<String> {
        let mut columns: Vec<String> = self.passthrough.iter().map(|column| column.name.clone()).collect();
        columns.extend(self.label.then(|| "label".to_owned()));
        columns.extend(self.scores.iter().cloned());
        let of_class = if self.is_raw { "score" } else { "probability" };
        columns.extend(
            self.classes.iter().map(|&class| format!("{of_class}_{}", self.label_text(f64::from(class)))),
        );
        columns
    }

    /// Scores a batch; as lines of text if `is_text`.
    pub fn score(
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
        let (labels, passthrough) = (batch.labels.clone(), batch.passthrough.clone());
        Ok(ScoredBatch { numbers: ScoredNumbers { labels, passthrough, scores }, text: Vec::new() })
    }

    /// The line with the names of the columns.
    pub fn header(&self) -> Vec<u8> {
        header(&self.columns())
    }

    /// Returns how many numbers a record has.
    pub fn width(&self) -> usize {
        if self.classes.is_empty() { self.scores.len() } else { self.classes.len() }
    }

    /// Returns a label as the user writes it.
    pub fn label_text(&self, label: f64) -> String {
        labels::text(label, self.label_names)
    }

    /// Returns the class with the largest probability; of equal ones, the first.
    pub fn predicted(&self, scores: &[f64]) -> f64 {
        f64::from(self.classes[algo::metric::argmax(scores)])
    }

    /// Returns the text of a passthrough column for the record with index `record`.
    pub fn passthrough_text<'t>(
        &self,
        texts: &'t PassthroughTexts,
        record: usize,
        column: &PassthroughColumn,
    ) -> &'t [u8] {
        texts.get(record * self.passthrough.len() + column.slot)
    }
}

/// The scores of one batch: numbers, or lines if the output is text.
#[derive(Default)]
pub struct ScoredBatch {
    pub numbers: ScoredNumbers,
    pub text: Vec<u8>,
}

/// Scores and labels of one batch.
#[derive(Default, Serialize, Deserialize)]
pub struct ScoredNumbers {
    pub labels: Vec<f64>,
    pub passthrough: PassthroughTexts,
    pub scores: Vec<f64>,
}

fn lines(layout: &ScoreColumns<'_>, batch: &Batch, scores: &[f64], width: usize) -> Vec<u8> {
    /// Enough for most numbers; otherwise the buffer grows.
    const NUMBER_BYTES: usize = 24;
    let mut out = Vec::with_capacity(batch.labels.len() * (width + 1) * NUMBER_BYTES);
    for (r, (&label, scores)) in batch.labels.iter().zip(scores.chunks_exact(width)).enumerate() {
        for column in layout.passthrough {
            quote(&mut out, layout.passthrough_text(&batch.passthrough, r, column));
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
pub fn quote(out: &mut Vec<u8>, text: &[u8]) {
    if !text.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for &byte in text {
        out.extend(std::iter::repeat_n(byte, if byte == b'"' { 2 } else { 1 }));
    }
    out.push(b'"');
}

pub fn header(columns: &[String]) -> Vec<u8> {
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
