//! The values of the parameters of one algorithm, each checked against its row.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::{AUTO, Choice, ParamSpec, ParamValue, ParamValues, Value, nearest, readers};
use crate::error::Error;

/// Values of all parameters of an algorithm, each checked to be in its range.
#[derive(Clone, Debug)]
pub struct CheckedParams {
    algorithm: &'static str,
    table: &'static [ParamSpec],
    values: BTreeMap<&'static str, ParamValue>,
    /// Those that were given; the others have their defaults.
    given: BTreeSet<&'static str>,
}

impl CheckedParams {
    /// Checks the given values against the table and fills in the defaults. A value that was checked before is taken as it
    /// is.
    pub fn new(
        algorithm: &'static str,
        table: &'static [ParamSpec],
        given: &ParamValues,
    ) -> Result<Self, Error> {
        let default = |spec: &ParamSpec| {
            let value = spec.kind.parse(spec.default);
            (spec.name, ParamValue { text: spec.default.to_owned(), value })
        };
        let mut checked =
            Self { algorithm, table, values: table.iter().map(default).collect(), given: BTreeSet::new() };
        for (name, given) in given.iter() {
            let Some(spec) = table.iter().find(|spec| spec.name == name) else {
                let nearest = nearest(name, table.iter().map(|spec| spec.name));
                return Err(Error::UnknownParameter { algorithm, name: name.to_owned(), nearest });
            };
            let text = given.text.trim();
            let Some(value) = given.value.or_else(|| spec.kind.parse(text)) else {
                return Err(Error::Parameter {
                    algorithm,
                    name: spec.name,
                    actual: text.to_owned(),
                    expected: spec.kind.describe(),
                });
            };
            checked.values.insert(spec.name, ParamValue { text: text.to_owned(), value: Some(value) });
            checked.given.insert(spec.name);
        }
        checked.check_unused()?;
        Ok(checked)
    }

    /// The values that were given, which need no other check.
    pub fn given(&self) -> ParamValues {
        let mut given = ParamValues::default();
        let values = self.values.iter().filter(|(name, _)| self.given.contains(*name));
        values.for_each(|(name, value)| given.set(*name, value.clone()));
        given
    }

    /// The texts of the values that were given.
    pub fn given_texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values().filter(|(name, _)| self.given.contains(name))
    }

    /// All values, which need no other check.
    pub fn all(&self) -> ParamValues {
        let mut all = ParamValues::default();
        self.values.iter().for_each(|(name, value)| all.set(*name, value.clone()));
        all
    }

    /// Refuses a value that the job would not use: it is a mistake, unless it is the default or the other parameter is
    /// still `auto`.
    fn check_unused(&self) -> Result<(), Error> {
        for spec in self.table {
            let actual = self.text(spec);
            if actual == spec.default {
                continue;
            }
            let Some((other, words)) = readers(self.table, spec.name) else { continue };
            let choice = self.text(other);
            if choice != AUTO && !words.contains(&choice) {
                return Err(Error::UnusedParameter {
                    algorithm: self.algorithm,
                    name: spec.name,
                    actual: actual.to_owned(),
                    with: format!("{}={choice}", other.name),
                    readers: words.join(", "),
                });
            }
        }
        Ok(())
    }

    /// The words of the closed set `spec` that use the parameter `name`; `None` if all do.
    pub fn readers(&self, spec: &ParamSpec, name: &str) -> Option<Vec<&'static str>> {
        readers(self.table, name).filter(|(other, _)| other.name == spec.name).map(|(_, words)| words)
    }

    pub fn algorithm(&self) -> &'static str {
        self.algorithm
    }

    /// Every parameter with its value as text.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().map(|(name, value)| (*name, value.text.as_str()))
    }

    fn get(&self, spec: &ParamSpec) -> &ParamValue {
        let value = self.values.get(spec.name);
        value.unwrap_or_else(|| panic!("the table of {} has no row {}", self.algorithm, spec.name))
    }

    /// The value as text.
    ///
    /// # Panics
    /// If the table does not have the parameter, which is a bug in this crate.
    pub fn text(&self, spec: &ParamSpec) -> &str {
        &self.get(spec).text
    }

    pub fn real(&self, spec: &ParamSpec) -> f64 {
        self.auto_real(spec).unwrap_or_else(|| panic!("{} is a number", spec.name))
    }

    pub fn integer(&self, spec: &ParamSpec) -> u64 {
        self.auto_integer(spec).unwrap_or_else(|| panic!("{} is a whole number", spec.name))
    }

    pub fn flag(&self, spec: &ParamSpec) -> bool {
        self.get(spec).value == Some(Value::Flag(true))
    }

    /// The value of a closed set; `T` is the one that the row names.
    pub fn choice<T: Choice>(&self, spec: &ParamSpec) -> T {
        let word = T::all().into_iter().find(|(name, _)| *name == self.text(spec));
        word.expect("the text is a word of the set").1
    }

    /// The whole number; `None` for `auto`.
    pub fn auto_integer(&self, spec: &ParamSpec) -> Option<u64> {
        if let Some(Value::Integer(number)) = self.get(spec).value { Some(number) } else { None }
    }

    /// The number; `None` for `auto`.
    pub fn auto_real(&self, spec: &ParamSpec) -> Option<f64> {
        if let Some(Value::Real(number)) = self.get(spec).value { Some(number) } else { None }
    }

    /// The value of a closed set; `None` for `auto`.
    pub fn auto_choice<T: Choice>(&self, spec: &ParamSpec) -> Option<T> {
        (self.get(spec).value != Some(Value::Auto)).then(|| self.choice(spec))
    }

    /// An error about the value, for checks that the table cannot express.
    pub fn invalid_value(&self, spec: &ParamSpec, expected: impl Into<String>) -> Error {
        Error::Parameter {
            algorithm: self.algorithm,
            name: spec.name,
            actual: self.text(spec).to_owned(),
            expected: expected.into(),
        }
    }

    /// An error about two parameters that exclude each other; `first` is one of them with its value.
    pub fn conflict(&self, first: String, second: &ParamSpec, reason: impl Into<Cow<'static, str>>) -> Error {
        let reason = reason.into();
        Error::Conflict { algorithm: self.algorithm, first, second: self.pair(second), reason }
    }

    /// The parameter and its value, as messages name them.
    pub fn pair(&self, spec: &ParamSpec) -> String {
        format!("{}={}", spec.name, self.text(spec))
    }
}
