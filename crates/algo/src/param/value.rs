//! The values of parameters by name: texts that nobody has checked yet, or values that were checked before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A value of a parameter, with the text as it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParamValue {
    pub(super) text: String,
    /// None: the text is not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<Value>,
}

/// What a text means.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// The program chooses.
    Auto,
    Real(f64),
    Integer(u64),
    Flag(bool),
    /// The text is a word of a closed set.
    Word,
    /// The text is the value.
    Text,
}

/// Values by the names of their parameters. A value that was checked is not read again from its text, wherever it goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ParamValues(BTreeMap<String, ParamValue>);

impl ParamValues {
    /// Sets a value from a text that is not checked.
    pub fn set_text(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.0.insert(name.into(), ParamValue { text: text.into(), value: None });
    }

    /// Sets a value that was checked, or not.
    pub fn set(&mut self, name: impl Into<String>, value: ParamValue) {
        self.0.insert(name.into(), value);
    }

    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The text of a parameter as it was written.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.text.as_str())
    }

    /// All values, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ParamValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// All texts as they were written.
    pub fn texts(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(name, value)| (name.clone(), value.text.clone())).collect()
    }
}

impl ParamValue {
    /// The text as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl<Name: Into<String>, Text: Into<String>> FromIterator<(Name, Text)> for ParamValues {
    /// Values that are not checked.
    fn from_iter<I: IntoIterator<Item = (Name, Text)>>(texts: I) -> Self {
        let mut values = Self::default();
        texts.into_iter().for_each(|(name, text)| values.set_text(name, text));
        values
    }
}
