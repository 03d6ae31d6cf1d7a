//! A model that is read: how the data have its features, and what a model directory has of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use algo::family;
use data::{KeyNames, Schema};
use matrix::RowBlock;

/// How the data have the features of a model that is read.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The features are numbers of the data (libsvm), and not columns; those that are left out are 0.
    pub is_numbered: bool,
    /// The format of the data.
    pub format: String,
    /// The number that the first feature has in the data, if they are numbered.
    pub first_feature: u64,
    /// The column of the labels.
    pub label: Option<String>,
    /// The names of the classes, in the order of their numbers; empty if the data have numbers.
    pub classes: Vec<String>,
}

/// A model that was read, with everything that a model directory has of it.
#[derive(Clone, Debug)]
pub struct ImportedModel {
    pub algorithm: &'static str,
    pub settings: BTreeMap<String, String>,
    pub schema: Schema,
    pub model: Arc<dyn family::Model>,
    /// The rows of the tables of the model, in their order.
    pub tables: Vec<RowBlock>,
    pub names: KeyNames,
    /// Training records of the first tree; 0 if they are not known.
    pub records: u64,
    pub iterations: u64,
    pub feature_count: usize,
}
