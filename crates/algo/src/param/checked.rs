//! The values of the parameters of one algorithm, each checked against its row.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{AUTO, Choice, ParamSpec, nearest, readers};
use crate::error::Error;

/// Values of all parameters of an algorithm, each checked to be in its range.
#[derive(Clone, Debug)]
pub struct CheckedParams {
    algorithm: &'static str,
    table: &'static [ParamSpec],
    values: BTreeMap<&'static str, String>,
}

impl CheckedParams {
    /// Checks the given values against the table and fills in the defaults.
    pub fn new(
        algorithm: &'static str,
        table: &'static [ParamSpec],
        given: &BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        let mut values: BTreeMap<_, _> =
            table.iter().map(|spec| (spec.name, spec.default.to_owned())).collect();
        for (name, text) in given {
            let Some(spec) = table.iter().find(|spec| spec.name == name) else {
                let nearest = nearest(name, table.iter().map(|spec| spec.name));
                return Err(Error::UnknownParameter { algorithm, name: name.clone(), nearest });
            };
            let text = text.trim();
            if !spec.kind.allows(text) {
                return Err(Error::Parameter {
                    algorithm,
                    name: spec.name,
                    actual: text.to_owned(),
                    expected: spec.kind.describe(),
                });
            }
            values.insert(spec.name, text.to_owned());
        }
        let checked = Self { algorithm, table, values };
        checked.check_unused()?;
        Ok(checked)
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
    pub fn values(&self) -> &BTreeMap<&'static str, String> {
        &self.values
    }

    /// The value as text.
    ///
    /// # Panics
    /// If the table does not have the parameter, which is a bug in this crate.
    pub fn text(&self, spec: &ParamSpec) -> &str {
        let text = self.values.get(spec.name);
        text.unwrap_or_else(|| panic!("the table of {} has no row {}", self.algorithm, spec.name))
    }

    pub fn real(&self, spec: &ParamSpec) -> f64 {
        self.text(spec).parse().expect("checked by ParamKind::Real")
    }

    pub fn integer(&self, spec: &ParamSpec) -> u64 {
        self.text(spec).parse().expect("checked by ParamKind::Integer")
    }

    pub fn flag(&self, spec: &ParamSpec) -> bool {
        self.text(spec) == "true"
    }

    /// The value of a closed set; `T` is the one that the row names.
    pub fn choice<T: Choice>(&self, spec: &ParamSpec) -> T {
        let word = T::all().into_iter().find(|(name, _)| *name == self.text(spec));
        word.expect("checked by ParamKind::Choice").1
    }

    /// The whole number; `None` for `auto`.
    pub fn auto_integer(&self, spec: &ParamSpec) -> Option<u64> {
        (self.text(spec) != AUTO).then(|| self.integer(spec))
    }

    /// The number; `None` for `auto`.
    pub fn auto_real(&self, spec: &ParamSpec) -> Option<f64> {
        (self.text(spec) != AUTO).then(|| self.real(spec))
    }

    /// The value of a closed set; `None` for `auto`.
    pub fn auto_choice<T: Choice>(&self, spec: &ParamSpec) -> Option<T> {
        (self.text(spec) != AUTO).then(|| self.choice(spec))
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
