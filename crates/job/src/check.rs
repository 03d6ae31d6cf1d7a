//! Converts texts to settings; the check of each kind of value is written once.

use std::collections::BTreeMap;
use std::path::PathBuf;

use algo::param::Value;

use crate::error::Error;
use crate::keys::{JobCommand, KeyKind, find};
use crate::raw::RawJob;

/// Typed access to the values of a raw job.
#[derive(Clone, Copy, Debug)]
pub struct Checker<'a> {
    raw: &'a RawJob,
    command: JobCommand,
}

impl<'a> Checker<'a> {
    /// Creates a checker for the keys of one command.
    pub fn new(raw: &'a RawJob, command: JobCommand) -> Self {
        Self { raw, command }
    }

    fn kind(&self, name: &str) -> KeyKind {
        find(self.command, name).expect("callers ask for keys of their own command").kind
    }

    fn single(&self, name: &str) -> Option<(String, &'a str)> {
        let (place, values) = self.raw.get(name)?;
        Some((place.to_string(), values.last()?.as_str()))
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.single(name).map(|(_, text)| text.to_owned())
    }

    /// A text that `parse` accepts; `expected` completes "... is not" in the error.
    pub fn parsed<T>(
        &self,
        name: &str,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some((place, text)) = self.single(name) else { return Ok(None) };
        let bad = || Error::BadValue { place, actual: text.to_owned(), expected: expected.to_owned() };
        parse(text).map(Some).ok_or_else(bad)
    }

    pub fn path(&self, name: &str) -> Result<Option<PathBuf>, Error> {
        self.parsed(name, "a path", |text| (!text.is_empty()).then(|| text.into()))
    }

    /// A path; an error if it is missing.
    pub fn required_path(&self, name: &'static str, what: &'static str) -> Result<PathBuf, Error> {
        self.path(name)?.ok_or_else(|| self.missing(name, what))
    }

    /// Returns the error of a missing key.
    pub fn missing(&self, name: &str, what: &'static str) -> Error {
        let command = self.command.name();
        let key = find(self.command, name).expect("callers ask for keys of their own command");
        Error::MissingKey { command, what, flag: format!("--{} {}", key.flag(), key.value_name) }
    }

    /// All texts of a list.
    pub fn list(&self, name: &str) -> Vec<String> {
        self.raw.get(name).map(|(_, values)| values.to_vec()).unwrap_or_default()
    }

    /// Column names; commas separate names within one text.
    pub fn names(&self, name: &str) -> Vec<String> {
        let split = |text: &String| text.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>();
        self.list(name).iter().flat_map(split).filter(|name| !name.is_empty()).collect()
    }

    /// The value of a key whose kind is one of parameters, and its text.
    fn value(&self, name: &str) -> Result<Option<(Value, &'a str)>, Error> {
        let KeyKind::Value(kind) = self.kind(name) else { unreachable!("{name} has a value of one kind") };
        let Some((_, text)) = self.single(name) else { return Ok(None) };
        Ok(self.parsed(name, &kind.describe(), |text| kind.parse(text))?.map(|value| (value, text)))
    }

    /// A whole number in the range of its key; none also if the program chooses.
    pub fn count(&self, name: &str) -> Result<Option<u64>, Error> {
        Ok(self.value(name)?.and_then(|(value, _)| match value {
            Value::Integer(count) => Some(count),
            _ => None,
        }))
    }

    /// A number of bytes.
    pub fn bytes(&self, name: &str) -> Result<Option<u64>, Error> {
        self.parsed(name, "a number of bytes, as in 500MB or 2GiB", parse_bytes)
    }

    /// One of the words that the key allows.
    pub fn choice(&self, name: &str) -> Result<Option<&'a str>, Error> {
        Ok(self.value(name)?.map(|(_, word)| word))
    }

    pub fn boolean(&self, name: &str) -> Result<Option<bool>, Error> {
        Ok(self.value(name)?.map(|(value, _)| matches!(value, Value::Flag(true))))
    }

    /// Whether a switch is on.
    pub fn switch(&self, name: &str) -> Result<bool, Error> {
        Ok(self.parsed(name, "true or false", |text| text.parse().ok())?.unwrap_or(false))
    }

    /// Pairs `name=value`; the last value of a name is in force.
    pub fn pairs(&self, name: &str) -> Result<BTreeMap<String, String>, Error> {
        let Some((place, values)) = self.raw.get(name) else { return Ok(BTreeMap::new()) };
        let mut pairs = BTreeMap::new();
        for text in values {
            let Some((name, value)) = text.split_once('=') else {
                let expected = "NAME=VALUE, as in learning_rate=0.1".into();
                return Err(Error::BadValue { place: place.to_string(), actual: text.clone(), expected });
            };
            pairs.insert(name.trim().to_owned(), value.trim().to_owned());
        }
        Ok(pairs)
    }
}

/// Parses a number of bytes such as `1000`, `512KiB`, `2GiB` or `3MB`: decimal units are powers of 1000, binary ones of
/// 1024.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => return None,
    };
    let bytes = number.parse::<f64>().ok()? * factor as f64;
    (bytes.is_finite() && bytes < u64::MAX as f64).then_some(bytes as u64)
}
