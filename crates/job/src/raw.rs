//! Raw jobs: the settings as texts by key. Flags and job file are merged here, before anything is checked.

use std::collections::BTreeMap;
use std::path::Path;

use algo::param::nearest;
use serde::{Deserialize, Serialize};

use crate::Modules;
use crate::error::Error;
use crate::keys::{JobCommand, KeyKind, find, is_word, keys_of};

/// Maximum size of the modules of a job: the job is submitted in one request of 4 MiB, which has the modules as base64.
const MODULES_BYTES: usize = 5 << 19;

/// The origin of a value, for error texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueOrigin {
    /// The flag without its dashes.
    Flag(String),
    /// The job file and its key.
    File(String),
}

impl std::fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "--{flag}"),
            Self::File(key) => write!(f, "{key}"),
        }
    }
}

/// The values of keys as texts. A switch has the text `true` or `false`; pairs are `name=value`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawJob {
    /// What the job is: in a job file the key `command`.
    #[serde(default, skip_serializing_if = "JobCommand::is_train")]
    pub command: JobCommand,
    /// The algorithm, for `train`.
    pub algorithm: Option<String>,
    values: BTreeMap<String, (ValueOrigin, Vec<String>)>,
    /// Paths as they were written, by their keys, where they have been made absolute.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    written: BTreeMap<String, Vec<String>>,
    /// Contents of the files that the key `functions` names.
    #[serde(default, skip_serializing_if = "Modules::is_empty")]
    modules: Modules,
}

impl RawJob {
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a key from the command line.
    pub fn set_flag(&mut self, key: &'static crate::keys::Key, values: Vec<String>) {
        self.values.insert(key.name.to_owned(), (ValueOrigin::Flag(key.flag()), values));
    }

    /// Sets a key from a program.
    pub fn set_option(&mut self, key: &'static crate::keys::Key, values: Vec<String>) {
        let origin = ValueOrigin::File(format!("option {}", key.name));
        self.values.insert(key.name.to_owned(), (origin, values));
    }

    /// Returns the origin and the texts of a key.
    pub fn get(&self, name: &str) -> Option<(&ValueOrigin, &[String])> {
        self.values.get(name).map(|(place, values)| (place, values.as_slice()))
    }

    /// Returns all keys with their texts.
    pub fn texts(&self) -> BTreeMap<String, Vec<String>> {
        let values = self.values.iter().map(|(name, (_, texts))| (name.clone(), texts.clone()));
        let algorithm = self.algorithm.iter().map(|name| ("algorithm".to_owned(), vec![name.clone()]));
        algorithm.chain(values).collect()
    }

    /// Parses the text of a job file, which has the keys of its `command`; for `train`, the default, also `algorithm` and the
    /// table `[set]`. `path` is for error texts.
    pub fn from_toml(text: &str, path: &Path) -> Result<Self, Error> {
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| Error::JobFile {
            path: path.into(),
            message: e.to_string().trim_end().to_owned(),
        })?;
        Self::from_table(table, &path.display().to_string())
    }

    /// Reads a submitted job: the form that `submit` sends, or an object with the keys of a job file, which other
    /// clients send.
    pub fn from_submitted(job: &serde_json::Value) -> Result<Self, Error> {
        /// The origin in error texts.
        const PLACE: &str = "the submitted job";
        let unreadable = |error: &dyn std::fmt::Display| Error::InvalidRequest {
            what: format!("{PLACE} cannot be read: {error}"),
            advice: "send an object with the keys of a job file, or use the same release at both ends".into(),
        };
        // No key of a job file has this name.
        if job.get("values").is_some() {
            return Self::deserialize(job).map_err(|error| unreadable(&error));
        }
        let table = toml::Table::deserialize(job).map_err(|error| unreadable(&error))?;
        Self::from_table(table, PLACE)
    }

    /// Converts a table; `origin` is for error texts.
    fn from_table(table: toml::Table, origin: &str) -> Result<Self, Error> {
        let mut job = Self::new();
        if let Some(value) = table.get("command") {
            job.command = command_of(value, &format!("{origin}, key command"))?;
        }
        for (name, value) in table {
            let place = format!("{origin}, key {name}");
            if name == "command" {
                continue;
            }
            if name == "algorithm" && job.command == JobCommand::Train {
                job.algorithm = Some(text_of(&value, &place)?);
                continue;
            }
            let Some(key) = find(job.command, &name) else {
                let more = ["command", "algorithm"];
                let more = more.into_iter().take(if job.command == JobCommand::Train { 2 } else { 1 });
                let names = keys_of(job.command).map(|key| key.name).chain(more);
                let nearest = nearest(&name.replace('-', "_"), names);
                return Err(Error::UnknownKey { key: name, place: origin.to_owned(), nearest });
            };
            let values = match key.kind {
                KeyKind::Pairs => pairs_of(&value, &place)?,
                KeyKind::List | KeyKind::Names => list_of(&value, &place)?,
                _ => vec![text_of(&value, &place)?],
            };
            job.values.insert(key.name.to_owned(), (ValueOrigin::File(place), values));
        }
        Ok(job)
    }

    /// Returns this job with the modules of the key `functions`, whose files the program has read.
    ///
    /// # Errors
    /// If they are too large for one request.
    pub fn with_modules(mut self, modules: Modules) -> Result<Self, Error> {
        let (actual, limit) = (modules.len_bytes(), MODULES_BYTES);
        if actual > limit {
            let what =
                format!("the modules of --functions have {actual} bytes, the limit of a job is {limit}");
            return Err(Error::InvalidRequest {
                what,
                advice: "strip and optimize them, or leave some out".into(),
            });
        }
        self.modules = modules;
        Ok(self)
    }

    /// Returns the modules of the job; an error if their number differs from the number of files that the job names.
    pub fn modules(&self) -> Result<&Modules, Error> {
        let (named, brought) = (self.module_files().len(), self.modules.list().len());
        if named == brought {
            return Ok(&self.modules);
        }
        Err(Error::InvalidRequest {
            what: format!("functions: the job names {named} files, but contains {brought} modules"),
            advice: "`seraphim train` and `seraphim submit` read the files and send them with the job".into(),
        })
    }

    /// The modules that came with the job.
    pub fn brought_modules(&self) -> &Modules {
        &self.modules
    }

    /// The files of the key `functions`.
    pub fn module_files(&self) -> &[String] {
        self.get("functions").map_or(&[], |(_, files)| files)
    }

    /// Whether the program that submits the job writes the file of this key, and not the members.
    pub fn is_client_side(name: &str) -> bool {
        name == "report"
    }

    /// Returns this job with `change` applied to every path of data and models.
    #[must_use]
    pub fn with_paths(mut self, change: impl Fn(&str) -> String) -> Self {
        for (name, (_, values)) in &mut self.values {
            let is_path =
                find(self.command, name).is_some_and(|key| matches!(key.kind, KeyKind::Path | KeyKind::List));
            if is_path && !Self::is_client_side(name) {
                let is_place = |value: &&mut String| !value.contains("://") && !is_word(name, value);
                for value in values.iter_mut().filter(is_place) {
                    *value = change(value);
                }
            }
        }
        self
    }

    /// Returns this job without the values of some keys.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Self {
        self.values.retain(|name, _| !names.contains(&name.as_str()));
        self
    }

    /// Returns this job with all paths absolute, seen from the folder of this process, as a checkpoint stores it: it
    /// may be continued from another folder.
    #[must_use]
    pub fn with_absolute_paths(self) -> Self {
        let before = self.values.clone();
        let mut job = self.with_paths(|path| match std::path::absolute(path) {
            Ok(absolute) if path != "-" => absolute.display().to_string(),
            _ => path.to_owned(),
        });
        for (name, (_, texts)) in before {
            if job.values.get(&name).is_some_and(|(_, absolute)| *absolute != texts) {
                job.written.entry(name).or_insert(texts);
            }
        }
        job
    }

    /// The paths of a key as they were written, if they have been made absolute since.
    pub fn written(&self, name: &str) -> Option<&[String]> {
        self.written.get(name).map(Vec::as_slice)
    }

    /// Returns this job with `flags`, which override its values. The parameters of `--set` are merged individually.
    #[must_use]
    pub fn overridden_by(mut self, mut flags: Self) -> Self {
        if let Some((place, pairs)) = flags.values.remove("set") {
            let entry = self.values.entry("set".into()).or_insert_with(|| (place.clone(), Vec::new()));
            entry.0 = place;
            entry.1.extend(pairs);
        }
        self.written.retain(|name, _| !flags.values.contains_key(name));
        self.values.extend(flags.values);
        self.algorithm = flags.algorithm.or(self.algorithm);
        if !flags.command.is_train() {
            self.command = flags.command;
        }
        self
    }
}

fn text_of(value: &toml::Value, place: &str) -> Result<String, Error> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Boolean(flag) => Ok(flag.to_string()),
        toml::Value::Array(_) | toml::Value::Table(_) | toml::Value::Datetime(_) => Err(Error::BadValue {
            place: place.into(),
            actual: value.to_string(),
            expected: "one value".into(),
        }),
    }
}

fn command_of(value: &toml::Value, place: &str) -> Result<JobCommand, Error> {
    let text = text_of(value, place)?;
    JobCommand::ALL.into_iter().find(|command| command.name() == text).ok_or_else(|| Error::BadValue {
        place: place.into(),
        actual: text,
        expected: JobCommand::ALL.map(JobCommand::name).join(", "),
    })
}

fn list_of(value: &toml::Value, place: &str) -> Result<Vec<String>, Error> {
    match value {
        toml::Value::Array(items) => items.iter().map(|item| text_of(item, place)).collect(),
        single => Ok(vec![text_of(single, place)?]),
    }
}

fn pairs_of(value: &toml::Value, place: &str) -> Result<Vec<String>, Error> {
    let toml::Value::Table(table) = value else {
        let expected = "a table, as in [set] and below it learning_rate = 0.1".into();
        return Err(Error::BadValue { place: place.into(), actual: value.to_string(), expected });
    };
    table.iter().map(|(name, value)| Ok(format!("{name}={}", text_of(value, place)?))).collect()
}
