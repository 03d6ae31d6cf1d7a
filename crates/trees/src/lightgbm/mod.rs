//! The text model of LightGBM, version 4 (`gbdt_model_text.cpp`, `tree.cpp`), written and read.
//!
//! | here | there |
//! |---|---|
//! | nodes in one list, both children beside each other | inner nodes in the order of their splits, leaves counted apart |
//! | thresholds of single precision | of double precision: the largest double that is rounded to ours or to less |
//! | the scores before the first tree | added to the leaves of the first trees |
//! | a value that is missing goes left or right | the same, missing values of the kind NaN |
//! | categories by their names | by codes, with their names in `pandas_categorical` |

mod objective;
mod parse;
mod read;
#[cfg(test)]
mod tests;
mod threshold;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use data::{KeyNames, Schema};
use matrix::RowBlock;

pub use read::read;
pub(super) use write::write;

use algo::family;

/// Versions of the format that are read.
const VERSIONS: [&str; 2] = ["v3", "v4"];

/// The bits of `decision_type`.
const CATEGORICAL: u8 = 1;
const DEFAULT_LEFT: u8 = 2;
/// How values are missing: bits 2 and 3.
const MISSING_SHIFT: u32 = 2;
const MISSING_NONE: u8 = 0;
const MISSING_NAN: u8 = 2;

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
