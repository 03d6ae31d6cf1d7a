//! What the columns of an input mean. Kept with the model, so that later inputs are read the same way.

use serde::{Deserialize, Serialize};

/// How an input was read. Formats whose keys are written in the lines (libsvm, libffm, VW) have no columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// Name of the format in the table.
    pub format: String,
    /// Feature columns, in the order of their keys (position = key of a numeric column).
    #[serde(default)]
    pub columns: Vec<Column>,
    /// All columns in the order of the file, those that are no features included. Empty in models of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// Name of the label column, when there are columns and one of them is the label.
    #[serde(default)]
    pub label: Option<String>,
    /// Name of the weight column.
    #[serde(default)]
    pub weight: Option<String>,
    /// Name of the group column ("qid" in libsvm).
    #[serde(default)]
    pub group: Option<String>,
    /// Columns that are left out.
    #[serde(default)]
    pub skip_columns: Vec<String>,
    /// Groups of features whose products are features too.
    #[serde(default)]
    pub interactions: Vec<Vec<String>>,
    /// Whether columns are known by name (a header, or Parquet) or by position only.
    #[serde(default)]
    pub named: bool,
    /// Byte between the fields of a delimited text.
    #[serde(default)]
    pub delimiter: Option<u8>,
    /// Whether `\"` inside quotes is a quote, as Spark writes it.
    #[serde(default)]
    pub backslash: bool,
    /// Whether fields may have line breaks inside quotes.
    #[serde(default)]
    pub multi_line: bool,
    /// Names of text labels; position = class number. Empty when labels are numbers.
    #[serde(default)]
    pub label_names: Vec<String>,
    /// Whether zero entries are kept.
    #[serde(default)]
    pub keep_zeros: bool,
    /// Whether a missing number is a feature of its own, `COLUMN=missing`, besides counting as the mean where columns are
    /// centred. Models of before did not have it.
    #[serde(default)]
    pub mark_missing: bool,
}

/// A feature column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Name in the header, or its 0-based position in the file.
    pub name: String,
    /// How its values become features.
    pub kind: ColumnKind,
}

/// A column that is carried along with the records, as its values are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassthroughColumn {
    /// Name in the header, or its 0-based position in the file.
    pub name: String,
    /// Which of the carried texts of a record is that of this column.
    pub slot: usize,
    /// What its values are.
    pub kind: PassthroughKind,
}

/// What the values of a carried column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassthroughKind {
    /// Any text.
    Text,
    /// Whole numbers of 64 bits.
    Integer,
    /// 64-bit floats.
    Real,
}

/// How the values of a column become features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// One feature, whose key is the position among the feature columns.
    Numeric,
    /// One feature for each value: `math::hash::named_key(column, value)`, value 1.
    Text,
}
