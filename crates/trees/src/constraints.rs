//! What users demand of a model: that its predictions only rise or fall with a feature, and that some features never meet
//! in a branch. Columns are named as in the data.

use std::collections::HashMap;

use data::Survey;
use serde::{Deserialize, Serialize};

use super::bins::SavedFeature;
use algo::error::Error;
use algo::job::DataFacts;
use algo::param::{CheckedParams, ParamSpec, nearest};

/// Constraints on features, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Constraints {
    /// For each feature whether predictions only rise (1) or fall (-1) with it, or neither (0); empty: none has a direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub monotone: Vec<i8>,
    /// Groups of features; two features meet in a branch only if they are in a group together. Empty: all may meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interactions: Vec<Vec<u32>>,
}

impl Constraints {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads the constraints of the settings. Each may be empty.
    pub(super) fn new(
        checked: &CheckedParams,
        (monotone, interactions): (&ParamSpec, &ParamSpec),
        facts: &DataFacts,
        survey: &Survey,
        features: &[SavedFeature],
    ) -> Result<Self, Error> {
        let columns = Columns::new(facts, survey, features);
        Ok(Self {
            monotone: columns.monotone(checked, monotone)?,
            interactions: columns.interactions(checked, interactions)?,
        })
    }
}

/// The columns of the data.
struct Columns<'a> {
    /// Names by position; empty if the columns of the data have numbers alone.
    names: &'a [String],
    features: &'a [SavedFeature],
    /// The features of each column.
    by_column: HashMap<u64, Vec<u32>>,
}

impl<'a> Columns<'a> {
    fn new(facts: &'a DataFacts, survey: &Survey, features: &'a [SavedFeature]) -> Self {
        let fields: HashMap<u64, u64> = survey
            .names()
            .iter()
            .flat_map(|(field, names)| names.keys().map(|key| (*key, u64::from(*field))))
            .collect();
        let mut by_column: HashMap<u64, Vec<u32>> = HashMap::new();
        for (number, feature) in (0..).zip(features) {
            let column = match feature {
                SavedFeature::Numbers { key, is_count: false, .. } | SavedFeature::Codes { key, .. } => {
                    Some(*key)
                }
                SavedFeature::Numbers { key, .. } => fields.get(key).copied(),
                SavedFeature::Categories { keys } => keys.first().and_then(|key| fields.get(key).copied()),
            };
            if let Some(column) = column {
                by_column.entry(column).or_default().push(number);
            }
        }
        Self { names: &facts.columns, features, by_column }
    }

    /// The features of a column by its name or number.
    fn find(&self, checked: &CheckedParams, spec: &ParamSpec, column: &str) -> Result<&[u32], Error> {
        let by_name = self.names.iter().position(|name| name == column).map(|at| at as u64);
        let features = by_name.or_else(|| column.parse().ok()).and_then(|column| self.by_column.get(&column));
        if let Some(features) = features {
            return Ok(features);
        }
        let near = nearest(column, self.names.iter().map(String::as_str));
        let near = near.map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
        let expected = format!("features of the data; '{column}' is not one of them{near}");
        Err(checked.invalid_value(spec, expected))
    }

    /// `column:direction,..`, or as LightGBM has it a direction for each column in order.
    fn monotone(&self, checked: &CheckedParams, spec: &ParamSpec) -> Result<Vec<i8>, Error> {
        let text = checked.text(spec).trim();
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let mut directions = vec![0; self.features.len()];
        for (position, part) in text.split(',').enumerate() {
            let (column, direction) = match part.rsplit_once(':') {
                Some((column, direction)) => (column.trim().to_owned(), direction),
                None => (position.to_string(), part),
            };
            let direction: i8 = match direction.trim() {
                "1" | "+1" | "increasing" => 1,
                "-1" | "decreasing" => -1,
                "0" => continue,
                _ => {
                    return Err(
                        checked.invalid_value(spec, "column:1 or column:-1, with commas between them")
                    );
                }
            };
            for &feature in self.find(checked, spec, &column)? {
                if matches!(self.features[feature as usize], SavedFeature::Categories { .. }) {
                    let expected = format!("columns of numbers; the names in '{column}' have no order");
                    return Err(checked.invalid_value(spec, expected));
                }
                directions[feature as usize] = direction;
            }
        }
        Ok(directions)
    }

    /// `[a,b],[b,c]`.
    fn interactions(&self, checked: &CheckedParams, spec: &ParamSpec) -> Result<Vec<Vec<u32>>, Error> {
        let text = checked.text(spec).trim();
        let shape =
            || checked.invalid_value(spec, "groups of columns in brackets, such as [age,sex],[age,income]");
        let mut groups = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (group, after) =
                rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).ok_or_else(shape)?;
            let mut features = Vec::new();
            for column in group.split(',') {
                features.extend(self.find(checked, spec, column.trim())?);
            }
            features.sort_unstable();
            features.dedup();
            groups.push(features);
            rest = after.trim_start();
            if let Some(next) = rest.strip_prefix(',') {
                rest = next.trim_start();
                if rest.is_empty() {
                    return Err(shape());
                }
            } else if !rest.is_empty() {
                return Err(shape());
            }
        }
        Ok(groups)
    }
}
