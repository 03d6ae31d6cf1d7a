//! Families of algorithms, and the table of those that a program knows. This file names no family: each is a crate with
//! a [`Family`] row, and a program may add rows of its own.
//!
//! A family has two traits. [`Job`] is checked parameters: what it needs of the data, its model, its matrices, the loop of a task,
//! and what it says of a training that went wrong. [`Model`] is what scoring needs besides the matrices: what a prediction means,
//! what records must have, the scorer, the metrics. It travels and is stored as [`SavedModel`]. Nothing outside of a family matches on it.

use std::fmt::Debug;
use std::sync::Arc;

use matrix::FunctionTable;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::job::Job;
pub use crate::model::{
    DerivedTable, MissingTable, Model, ModelFacts, NO_COEFFICIENTS, RecordNeeds, TextFormat,
};
use crate::param::{self, ParamSpec, ParamValues, nearest};

/// Checks the parameters of one algorithm; unknown names and values out of range are errors.
pub type Configure = fn(&ParamValues) -> Result<Arc<dyn Job>, Error>;

/// An algorithm as the command line lists it.
#[derive(Debug)]
pub struct AlgorithmRow {
    /// The name as typed on the command line.
    pub name: &'static str,
    pub title: &'static str,
    pub parameters: &'static [ParamSpec],
    pub configure: Configure,
}

impl AlgorithmRow {
    /// The meaning of a parameter, with the choices that read it and those that it offers.
    pub fn help_text(&self, spec: &ParamSpec) -> String {
        param::help_text(self.parameters, spec)
    }
}

/// Algorithms that share a form of model.
#[derive(Debug)]
pub struct Family {
    /// The name in `model.json`.
    pub name: &'static str,
    pub algorithms: &'static [AlgorithmRow],
    /// Restores a model from what its [`Model::save`] returned.
    pub load: fn(&Value) -> Result<Arc<dyn Model>, serde_json::Error>,
    /// Adds the PS functions of the family.
    pub functions: fn(&mut FunctionTable) -> Result<(), matrix::function::FunctionFault>,
}

/// A model without its matrices as it is stored and sent: the fields of its family, with the name of the family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedModel {
    pub family: String,
    #[serde(flatten)]
    fields: serde_json::Map<String, Value>,
}

impl SavedModel {
    /// # Panics
    /// If the family saves something else than an object.
    pub fn new(model: &dyn Model) -> Self {
        let Value::Object(fields) = model.save() else {
            panic!("family {:?} must save an object", model.family())
        };
        Self { family: model.family().to_owned(), fields }
    }
}

/// The families that a program knows. Every process of a job has the same.
#[derive(Clone, Debug)]
pub struct Families(Vec<&'static Family>);

impl Families {
    /// A table of these families.
    ///
    /// # Errors
    /// [`Error::FamilyTaken`] if two families or two of their algorithms have the same name.
    pub fn new(families: &[&'static Family]) -> Result<Self, Error> {
        families.iter().try_fold(Self(Vec::new()), |all, family| all.with(family))
    }

    /// The same table with another family.
    ///
    /// # Errors
    /// [`Error::FamilyTaken`] if the name of the family or of one of its algorithms exists already.
    pub fn with(mut self, family: &'static Family) -> Result<Self, Error> {
        let taken = |name: &str| Error::FamilyTaken { name: name.to_owned() };
        if self.0.iter().any(|known| known.name == family.name) {
            return Err(taken(family.name));
        }
        if let Some(row) = family.algorithms.iter().find(|row| self.algorithm(row.name).is_ok()) {
            return Err(taken(row.name));
        }
        self.0.push(family);
        Ok(self)
    }

    /// The algorithms of all families, in order.
    pub fn algorithms(&self) -> impl Iterator<Item = &'static AlgorithmRow> + '_ {
        self.0.iter().flat_map(|family| family.algorithms)
    }

    /// The row of `name`, or an error that suggests the nearest name.
    pub fn algorithm(&self, name: &str) -> Result<&'static AlgorithmRow, Error> {
        self.algorithms().find(|row| row.name == name).ok_or_else(|| Error::UnknownAlgorithm {
            name: name.to_owned(),
            nearest: nearest(name, self.algorithms().map(|row| row.name)),
            known: self.algorithms().map(|row| row.name).collect::<Vec<_>>().join(", "),
        })
    }

    /// Checks the parameters of the algorithm `name`.
    pub fn configure(&self, name: &str, given: &ParamValues) -> Result<Arc<dyn Job>, Error> {
        (self.algorithm(name)?.configure)(given)
    }

    /// Checks that `algorithm` may continue training from a model: both are of one family.
    pub fn check_continues(&self, algorithm: &AlgorithmRow, saved: &SavedModel) -> Result<(), Error> {
        let has = |family: &&Family| family.algorithms.iter().any(|row| row.name == algorithm.name);
        let family = self.0.iter().copied().find(has).map_or("", |family| family.name);
        if family == saved.family {
            return Ok(());
        }
        Err(Error::ModelFamily { actual: saved.family.clone() })
    }

    /// Restores a model.
    ///
    /// # Errors
    /// [`Error::UnknownFamily`] for a model of another program; [`Error::BadModel`] if the family cannot read the
    /// fields.
    pub fn load(&self, saved: &SavedModel) -> Result<Arc<dyn Model>, Error> {
        let family = self.0.iter().find(|family| family.name == saved.family);
        let family = family.ok_or_else(|| Error::UnknownFamily {
            name: saved.family.clone(),
            known: self.0.iter().map(|family| family.name).collect::<Vec<_>>().join(", "),
        })?;
        (family.load)(&Value::Object(saved.fields.clone()))
            .map_err(|source| Error::BadModel { family: family.name, source })
    }

    /// Adds the PS functions of all families to `table`.
    ///
    /// # Errors
    /// If two functions have the same name.
    pub fn add_functions(&self, table: &mut FunctionTable) -> Result<(), matrix::function::FunctionFault> {
        self.0.iter().try_for_each(|family| (family.functions)(table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: AlgorithmRow = AlgorithmRow {
        name: "first",
        title: "The first",
        parameters: &[],
        configure: |_| Err(Error::NoRecords),
    };
    const KNOWN: Family = Family {
        name: "known",
        algorithms: &[ROW],
        load: |_| Err(serde::de::Error::custom("a field is missing")),
        functions: |_| Ok(()),
    };
    const OTHER: Family = Family { name: "other", algorithms: &[], ..KNOWN };

    #[test]
    fn a_model_of_an_unknown_family_and_bad_fields_are_errors_that_say_what_to_do() {
        let saved = SavedModel { family: "other".to_owned(), fields: serde_json::Map::new() };
        let families = Families::new(&[&KNOWN]).unwrap();
        let error = families.load(&saved).unwrap_err().to_string();
        assert!(error.contains("\"other\"") && error.contains("known") && error.contains("add"), "{error}");
        let both = families.with(&OTHER).unwrap();
        let error = both.load(&saved).unwrap_err().to_string();
        assert!(error.contains("\"other\"") && error.contains("a field is missing"), "{error}");
        let known = SavedModel { family: "known".to_owned(), ..saved };
        assert!(matches!(both.load(&known), Err(Error::BadModel { family: "known", .. })));
    }

    #[test]
    fn a_name_is_taken_once() {
        const SAME_ALGORITHM: Family = Family { algorithms: KNOWN.algorithms, ..OTHER };
        let twice = Families::new(&[&KNOWN, &KNOWN]);
        assert!(matches!(twice, Err(Error::FamilyTaken { name }) if name == "known"));
        let first = Families::new(&[&KNOWN]).unwrap().with(&SAME_ALGORITHM);
        assert!(matches!(first, Err(Error::FamilyTaken { name }) if name == "first"));
    }
}
