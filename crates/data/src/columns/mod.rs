//! The columns of a table: one way for text, Parquet, Arrow and arrays in memory.
//!
//! A format describes its columns ([`TableDescription`]): text from a sample of its values, the others from the types of
//! their schema. Where a file has no names but training had some, or the other way round, [`assign_names_by_position`]
//! renames the columns first. [`plan`] then gives each column its role, and [`RecordBuilder`] makes a record of each row.

mod features;
mod labels;
pub(crate) mod missing;
mod number_form;
mod origin;
mod plan;
mod positional_names;
mod record;
mod roles;
mod type_counts;

pub(crate) use labels::LabelScan;
pub use number_form::NumberForm;
pub(crate) use origin::NumberSample;
pub(crate) use plan::{ColumnPlan, Role, plan};
pub(crate) use positional_names::{assign_names_by_position, is_header_like};
pub(crate) use record::{Attributes, Cell, Number, RecordBuilder, Row};
pub(crate) use roles::{is_label_name, refuse_guess};
pub(crate) use type_counts::{SAMPLE_ROWS, TypeCounts, is_number};

use crate::error::{Error, nearest};
use crate::options::FormatOptions;
use crate::schema::PassthroughKind;

/// What the values of a column are.
#[cfg_attr(not(feature = "arrow"), expect(dead_code, reason = "only Arrow has columns of lists"))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Number,
    Text,
    IntegerList,
    FloatList,
    /// Lists of strings, each of which is a token.
    TextList,
    /// Lists of pairs of an integer and a number, or maps.
    PairList,
    /// A vector of Spark ML: type, size, indices, values.
    Vector,
    /// A type that cannot be read, with its description.
    Other(String),
}

impl ValueKind {
    /// Describes the kind for a message.
    fn description(&self) -> &str {
        match self {
            Self::Number => "a number",
            Self::Text => "a string",
            Self::IntegerList => "a list of integers",
            Self::FloatList => "a list of floats",
            Self::TextList => "a list of strings",
            Self::PairList => "a list of pairs",
            Self::Vector => "a vector",
            Self::Other(what) => what,
        }
    }
}

/// A column as its format describes it.
#[derive(Clone, Debug)]
pub(crate) struct ColumnDescription {
    /// Name in the file, or position where there are no names.
    pub(crate) name: String,
    pub(crate) kind: ValueKind,
    /// What the numbers mean, and how text has them.
    pub(crate) form: NumberForm,
    /// The origin of its numbers, as the first of them show it.
    pub(crate) origin: f64,
    /// How a column of text is read that could be read in several ways, for a notice.
    pub(crate) told: Option<String>,
    /// Whether nearly every record has a name of its own.
    pub(crate) is_identifier: bool,
    /// Whether programs write its values in several forms of text.
    pub(crate) has_text_forms: bool,
    /// The kind of its values as a passthrough column.
    pub(crate) passthrough_kind: PassthroughKind,
    /// The notice for a column that is skipped unless something names it, because it numbers the rows or is empty.
    pub(crate) skip_notice: Option<String>,
}

impl ColumnDescription {
    /// A column of this name and kind, and nothing else of note.
    pub(crate) fn new(name: String, kind: ValueKind) -> Self {
        let passthrough_kind = PassthroughKind::Text;
        Self {
            name,
            kind,
            form: NumberForm::Plain,
            origin: 0.0,
            told: None,
            is_identifier: false,
            has_text_forms: false,
            passthrough_kind,
            skip_notice: None,
        }
    }
}

/// The label column when neither a setting nor a name determines one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LabelFallback {
    First,
    Last,
}

/// The columns of a file, in its order.
#[derive(Clone, Debug)]
pub(crate) struct TableDescription<'a> {
    /// The file, in messages.
    pub(crate) file: &'a str,
    pub(crate) columns: Vec<ColumnDescription>,
    /// Whether columns have names; otherwise they are numbered.
    pub(crate) named: bool,
    /// Whether the values are text, so that their kinds are those of a sample, and training may have read them otherwise.
    pub(crate) is_text: bool,
    pub(crate) fallback: LabelFallback,
    /// The passthrough columns in the requested order, with their names in the file.
    passthrough: Vec<(usize, String)>,
}

impl<'a> TableDescription<'a> {
    /// Describes a table of named columns whose types are known. Fails when the settings name a passthrough column that is
    /// none.
    pub(crate) fn new(
        file: &'a str,
        columns: Vec<ColumnDescription>,
        options: &FormatOptions,
    ) -> Result<Self, Error> {
        let (fallback, passthrough) = (LabelFallback::Last, Vec::new());
        Self { file, columns, named: true, is_text: false, fallback, passthrough }.with_passthrough(options)
    }

    /// Describes a table of text, with the settings of [`Self::new`].
    pub(crate) fn of_text(
        file: &'a str,
        columns: Vec<ColumnDescription>,
        named: bool,
        fallback: LabelFallback,
        options: &FormatOptions,
    ) -> Result<Self, Error> {
        Self { file, columns, named, is_text: true, fallback, passthrough: Vec::new() }
            .with_passthrough(options)
    }

    fn with_passthrough(mut self, options: &FormatOptions) -> Result<Self, Error> {
        for asked in &options.keep_columns {
            let Some(at) = self.find(asked)? else { continue };
            if !self.is_value(at) {
                return Err(self.wrong_type(at, "a passthrough column must be a number or a string"));
            }
            if self.is_passthrough(at) {
                let reason = format!("column '{asked}' is listed twice");
                return Err(Error::BadOption { option: "keep_columns", reason });
            }
            self.passthrough.push((at, self.columns[at].name.clone()));
        }
        Ok(self)
    }

    fn is_passthrough(&self, at: usize) -> bool {
        self.passthrough.iter().any(|(column, _)| *column == at)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// Returns the position of the column of this name.
    fn position(&self, name: &str) -> Option<usize> {
        self.names().position(|known| known == name)
    }

    /// Returns the position of the column of this name, else of this 0-based number. A file of blank lines has no columns,
    /// and no record that needs one: the result is `None`.
    fn find(&self, asked: &str) -> Result<Option<usize>, Error> {
        if self.columns.is_empty() && self.is_text {
            return Ok(None);
        }
        let by_number = || asked.parse().ok().filter(|at| *at < self.columns.len());
        self.position(asked).or_else(by_number).map(Some).ok_or_else(|| Error::UnknownColumn {
            file: self.file.to_owned(),
            column: asked.to_owned(),
            nearest: nearest(asked, self.names()),
            known: self.names().collect::<Vec<_>>().join(", ") + self.hint_of_delimiter(),
        })
    }

    /// Says what may be wrong when a text has one column.
    fn hint_of_delimiter(&self) -> &'static str {
        if self.is_text && self.columns.len() == 1 {
            " (each row is one field; if there is another delimiter between fields, set --delimiter)"
        } else {
            ""
        }
    }

    /// Returns the positions of all of these columns.
    fn find_all(&self, asked: &[String]) -> Result<Vec<usize>, Error> {
        asked.iter().filter_map(|column| self.find(column).transpose()).collect()
    }

    /// Whether a column has one number or string per record.
    fn is_value(&self, at: usize) -> bool {
        matches!(self.columns[at].kind, ValueKind::Number | ValueKind::Text)
    }

    fn wrong_type(&self, at: usize, expected: &str) -> Error {
        let ColumnDescription { name, kind, .. } = &self.columns[at];
        let reason = format!(
            "column '{name}' is {}; {expected}; convert it to numbers or strings, or skip it (skip_columns)",
            kind.description()
        );
        Error::BadFile { file: self.file.to_owned(), record: None, reason }
    }

    fn schema_error(&self, difference: String) -> Error {
        Error::SchemaDiffers { file: self.file.to_owned(), difference }
    }
}
