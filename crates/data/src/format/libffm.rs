//! libffm text: libsvm whose entries have a field.
//!
//! ```text
//! line  = [ label { blank+ entry } ] [ blank* "#" anything ]
//! entry = field ":" index [ ":" value ]  field: 0 .. 2^32-1, index: 0 .. 2^63-1, value: a finite number, 1 if left out
//! ```
//! A pair of field and index occurs at most once in a record; an index may occur in several fields. All other rules are
//! those of libsvm.

use super::dictionary::Dictionary;
use super::tokens::token_end;
use super::{
    FormatContext, LineFormat, LineParser, OpenFormat, ParsedLine, label, refuse_label, skip_blanks, value,
};
use crate::interactions::{InteractionGenerator, Interactions};
use crate::key_names::KeyNames;
use crate::number::{parse_digits, parse_f64};
use crate::schema::Schema;
use crate::{BatchBuilder, Error, LineError};

pub(super) fn open(context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    let options = context.options;
    let interactions = Interactions::new(&options.interactions)?;
    let fields = interactions.groups.iter().map(|group| {
        group.parse().map_err(|_| {
            let reason =
                format!("'{group}' is not the number of a field; give numbers between colons, as in 0:3");
            Error::BadOption { option: "interactions", reason }
        })
    });
    let fields = fields.collect::<Result<Vec<u32>, Error>>()?;
    let notice = interactions.check_groups(context, |group, line| {
        let mut tokens = line.split(|byte| matches!(byte, b' ' | b'\t'));
        tokens.any(|token| token.strip_prefix(group.as_bytes()).is_some_and(|rest| rest.starts_with(b":")))
    })?;
    let (has_label, field_limit) = (options.has_label, options.field_limit);
    Ok(OpenFormat::Lines(Box::new(Libffm { has_label, interactions, fields, field_limit, notice })))
}

/// Whether the first lines are libffm text.
pub(super) fn recognize(head: &[u8]) -> bool {
    let is_line = |line: &[u8]| {
        let mut tokens = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|token| !token.is_empty());
        let label = tokens.next().is_some_and(|token| parse_f64(token).is_some() || is_entry(token));
        label && tokens.take_while(|token| token[0] != b'#').all(is_entry)
    };
    super::text_lines(head).iter().any(|line| line.contains(&b':')) && super::most_lines(head, is_line)
}

fn is_entry(token: &[u8]) -> bool {
    let parts: Vec<&[u8]> = token.split(|byte| *byte == b':').collect();
    parts.len() == 3 && parts.iter().all(|part| parse_f64(part).is_some())
}

struct Libffm {
    has_label: bool,
    interactions: Interactions,
    /// Fields that are groups of the interactions.
    fields: Vec<u32>,
    field_limit: Option<u32>,
    /// Notice about groups without a feature in the first lines.
    notice: Option<String>,
}

impl LineFormat for Libffm {
    fn notices(&self) -> Vec<String> {
        self.notice.iter().cloned().collect()
    }

    fn schema(&self) -> Schema {
        Schema::default()
    }

    fn parser(&self) -> Box<dyn LineParser> {
        Box::new(Parser {
            has_label: self.has_label,
            pairs: Vec::new(),
            fields: self.fields.clone(),
            field_limit: self.field_limit,
            dictionary: Dictionary::default(),
            multiplier: InteractionGenerator::new(self.interactions.clone(), false),
        })
    }
}

struct Parser {
    has_label: bool,
    /// Field and index of each entry of the present record.
    pairs: Vec<(u32, u64)>,
    /// Fields that are groups of the interactions.
    fields: Vec<u32>,
    /// Fields of a trained model are below it.
    field_limit: Option<u32>,
    dictionary: Dictionary,
    multiplier: InteractionGenerator,
}

const NO_FIELD: &str = "field:index:value; index:value without a field is libsvm";
const ENTRY: &str = "field:index:value, with a field below 2^32 and an index from 0 to 2^63-1";

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], out: &mut BatchBuilder) -> Result<ParsedLine, LineError> {
        let mut at = skip_blanks(line, 0);
        if matches!(line.get(at), None | Some(b'#')) {
            return Ok(ParsedLine::Skipped);
        }
        let mut label_value = None;
        if self.has_label {
            let (value, end) = label(line, at)?;
            (label_value, at) = (Some(value), end);
        } else {
            refuse_label(line, at)?;
        }
        self.pairs.clear();
        self.multiplier.clear();
        loop {
            at = skip_blanks(line, at);
            if matches!(line.get(at), None | Some(b'#')) {
                break;
            }
            at = self.entry(line, at, out)?;
        }
        self.refuse_duplicates(line)?;
        if !self.multiplier.is_empty() {
            let (groups, fields) = (self.multiplier.groups(), &self.fields);
            self.multiplier.multiply(&mut self.dictionary, |group, key, value| {
                let at = groups.iter().position(|known| known == group).unwrap_or_default();
                out.push_with_field(fields[at], key, value);
            })?;
        }
        Ok(ParsedLine::Record { label: label_value, weight: 1.0, group: None })
    }

    fn take_dictionary(&mut self) -> KeyNames {
        self.dictionary.take()
    }

    fn unmet_interactions(&self) -> Vec<String> {
        self.multiplier.unmet()
    }

    fn notices(&self) -> Vec<String> {
        self.dictionary.notices()
    }
}

/// Whether the entry at `at`, whose first colon is before `second`, has only two parts, of which the last is no index.
#[inline]
fn is_libsvm_entry(line: &[u8], at: usize, second: usize) -> bool {
    let (_, end) = parse_digits(line, second);
    let is_index = end > second && matches!(line.get(end), None | Some(b':' | b' ' | b'\t' | b'#'));
    !is_index && {
        let token = &line[at..token_end(line, at)];
        memchr::memchr_iter(b':', token).count() == 1 && parse_f64(&line[second..at + token.len()]).is_some()
    }
}

impl Parser {
    /// Pushes the entry at `at`; returns where it ends.
    #[inline]
    fn entry(&mut self, line: &[u8], at: usize, out: &mut BatchBuilder) -> Result<usize, LineError> {
        let (field, field_end) = parse_digits(line, at);
        let Ok(field) = u32::try_from(field) else {
            return Err(LineError::new(at, ENTRY));
        };
        if field_end == at || line.get(field_end) != Some(&b':') {
            return Err(LineError::new(at, ENTRY));
        }
        if is_libsvm_entry(line, at, field_end + 1) {
            return Err(LineError::new(at, NO_FIELD));
        }
        if self.field_limit.is_some_and(|limit| field >= limit) {
            return Err(self.unknown_field(at, field));
        }
        let (key, end) = parse_digits(line, field_end + 1);
        if end == field_end + 1 || key >= 1 << 63 {
            return Err(LineError::new(at, ENTRY));
        }
        let (value, end) = match line.get(end) {
            Some(b':') => {
                let start = end + 1;
                let (value, end) = value(line, start)?;
                out.note_rounding(key, value, || parse_f64(&line[start..end]));
                (value, end)
            }
            None | Some(b' ' | b'\t' | b'#') => (1.0, end),
            Some(_) => return Err(LineError::new(end, "':' or a blank after the index")),
        };
        if value != 0.0 {
            out.push_with_field(field, key, value);
            self.pairs.push((field, key));
            if let Some(group) = self.fields.iter().position(|known| *known == field) {
                self.multiplier.add(group, key, value, || key.to_string());
            }
        }
        Ok(end)
    }

    #[cold]
    fn unknown_field(&self, at: usize, field: u32) -> LineError {
        let expected = format!(
            "one of the {} fields of the model, from 0 (leave entries of other fields out, or train on data with them)",
            self.field_limit.unwrap_or_default()
        );
        LineError::with_actual(at, expected, format!("field {field}"))
    }

    fn refuse_duplicates(&mut self, line: &[u8]) -> Result<(), LineError> {
        if self.pairs.windows(2).all(|pair| pair[0] < pair[1]) {
            return Ok(());
        }
        self.pairs.sort_unstable();
        let Some(twice) = self.pairs.windows(2).find(|pair| pair[0] == pair[1]) else {
            return Ok(());
        };
        let name = format!("{}:{}", twice[0].0, twice[0].1);
        let at = super::last_token_of(line, |token| {
            token.strip_prefix(name.as_bytes()).is_some_and(|rest| matches!(rest.first(), None | Some(b':')))
        });
        Err(LineError::with_actual(at, "each field:index at most once in a record", format!("{name} again")))
    }
}

#[cfg(test)]
mod tests;
