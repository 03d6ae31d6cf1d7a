//! What is known of the data of a job: before its open settings are resolved, and when its model is created.

use std::sync::Arc;

use data::{LabelStats, Survey};

use crate::param::ParamValues;

/// What is known of a job's data when its open settings are resolved. It does not depend on the machine, nor on the
/// number of threads, workers or servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct DataProfile<'a> {
    /// The input is a table with columns of numbers.
    pub is_table: bool,
    /// Size of the input on disk in bytes; `None` for a stream.
    pub size_bytes: Option<u64>,
    /// Reads see every earlier push (`--consistency bsp`).
    pub is_bsp: bool,
    /// Validation data are given, or are held out by their times.
    pub has_validation: bool,
    /// Statistics of the records, once they have been scanned.
    pub survey: Option<&'a Survey>,
    /// Number of distinct labels, once they have been scanned; 0 if labels are not classes.
    pub class_count: u64,
    /// Number of names in the label column; 0 if labels are numbers.
    pub label_name_count: usize,
    /// The labels as they are in the data, once they have been scanned.
    pub labels: Option<&'a LabelStats>,
}

/// The result of resolving the settings for a [`DataProfile`].
#[derive(Clone, Debug, PartialEq)]
pub enum Resolution {
    /// The data must be surveyed first.
    NeedsSurvey,
    /// All settings are chosen.
    Resolved(ResolvedSettings),
}

/// Settings without `auto`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResolvedSettings {
    /// The settings that were given and those that were chosen. A job with these settings trains the same model.
    pub settings: ParamValues,
    /// What was chosen and why, one sentence each.
    pub reasons: Vec<String>,
}

/// What is known of the data when the model is created.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataFacts {
    /// Training records of all tasks; 0 if they have not been scanned.
    pub record_count: u64,
    /// Distinct training labels as they are in the data, ascending; empty if not scanned or not classes.
    pub classes: Vec<f32>,
    /// Names in the label column, one per class; empty if labels are numbers.
    pub label_names: Vec<String>,
    /// Names of the columns of features, in the order of their keys; empty if the data have no columns.
    pub columns: Vec<String>,
    /// Columns are dense and numbered, as in CSV: the format writes every value.
    pub dense: bool,
    /// Features that have names may have other values than 1, or the columns are not known.
    pub names_have_values: bool,
    /// Sum over tasks of the distinct features of their training data; 0 if they have not been counted.
    pub feature_count: u64,
    /// The fields of the training data are below this number; 0 if entries have no fields, or were not scanned.
    pub field_count: u64,
    /// Mean of the training labels; 0 if they have not been scanned.
    pub label_mean: f64,
    /// Standard deviation of the training labels; 0 if they have not been scanned.
    pub label_deviation: f64,
    /// Statistics of the training records of all tasks; `None` if they have not been surveyed.
    pub survey: Option<Arc<Survey>>,
}
