//! The meaning of the columns of an input. The model stores it, so that later inputs are read in the same way.

use serde::{Deserialize, Serialize};

use crate::columns::NumberForm;
use crate::format::tokenizer::Tokenizer;
use crate::key_names::KeyNames;

/// How an input was read. Formats whose keys are in the lines (libsvm, libffm, VW) have no columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// Name of the format in the table of formats.
    pub format: String,
    /// Feature columns, in the order of their keys (the position is the key of a numeric column).
    #[serde(default)]
    pub columns: Vec<Column>,
    /// All columns in the order of the file, also those that are not features. Empty in models of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// Name of the label column; `None` when there are no columns, or none of them is the label.
    #[serde(default)]
    pub label: Option<String>,
    #[serde(default)]
    pub weight: Option<String>,
    /// Name of the group column ("qid" in libsvm).
    #[serde(default)]
    pub group: Option<String>,
    /// Name of the time column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Columns that are skipped.
    #[serde(default)]
    pub skip_columns: Vec<String>,
    /// Groups of features whose products are features too.
    #[serde(default)]
    pub interactions: Vec<Vec<String>>,
    /// Whether columns are identified by name (a header, or Parquet); otherwise by position only.
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
    /// Names of text labels; the position is the class number. Empty when labels are numbers.
    #[serde(default)]
    pub label_names: Vec<String>,
    /// Whether entries of value 0 are stored.
    #[serde(default)]
    pub keep_zeros: bool,
    /// Whether entries have the field of their column: its position in `columns`. Products have the next field.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fields: bool,
    /// Whether the tokens of a record stay in their order, repeated ones too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub token_order: bool,
    /// How texts become tokens. White space separates them in models of older versions.
    #[serde(default, skip_serializing_if = "Tokenizer::is_blanks")]
    pub tokenizer: Tokenizer,
    /// Whether a missing number is a feature of its own, `COLUMN=missing`, besides counting as the mean where columns
    /// are centred. False in models of older versions.
    #[serde(default)]
    pub mark_missing: bool,
}

impl Schema {
    /// The name of a feature: from the dictionary, from the columns, or the key itself.
    pub fn feature_name(&self, names: &KeyNames, key: u64) -> String {
        if let Some(name) = names.get(key) {
            return name.to_owned();
        }
        let column = usize::try_from(key).ok().and_then(|key| self.columns.get(key));
        match column {
            Some(column) if column.kind == ColumnKind::Numeric => column.name.clone(),
            _ => key.to_string(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Name in the header, or its 0-based position in the file.
    pub name: String,
    pub kind: ColumnKind,
    /// What the numbers of a numeric column mean, and how text has them. Plain in models of older versions.
    #[serde(default, skip_serializing_if = "NumberForm::is_plain")]
    pub form: NumberForm,
    /// What is subtracted from each of its numbers before they are rounded to single precision. 0 in models of older
    /// versions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub origin: f64,
    /// Whether every record has a value there, as in a column of users.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_required: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_zero(origin: &f64) -> bool {
    *origin == 0.0
}

/// An input column that is copied to the predictions, as its values are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassthroughColumn {
    /// Name in the header, or its 0-based position in the file.
    pub name: String,
    /// Position of its text among the passthrough texts of a record.
    pub slot: usize,
    pub kind: PassthroughKind,
}

/// What the values of a passthrough column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassthroughKind {
    Text,
    /// Integers of 64 bits.
    Integer,
    /// Floats of 64 bits.
    Real,
}

/// How the values of a column become features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// One feature, whose key is the position among the feature columns.
    Numeric,
    /// One feature per value: `math::hash::named_key(column, value)`, value 1.
    Text,
    /// One feature per token of the text: `math::hash::named_key(column, token)`, value 1 or the number of equal tokens.
    Tokens,
}
