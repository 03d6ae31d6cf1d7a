//! Settings of formats, and those of them that the trained schema decides.

use crate::format::Abilities;
use crate::format::tokenizer::Tokenizer;
use crate::label::LabelRule;
use crate::schema::Schema;

/// The use of an input that is read with a trained schema. It decides which columns may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum InputPurpose {
    /// To train or to validate: every column of training must exist.
    #[default]
    Training,
    /// For metrics: weights and groups may be absent, with a notice.
    Evaluation,
    /// For scores only: weights and groups are not read.
    Prediction,
}

/// A limit that feature numbers must be below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLimit {
    pub limit: u64,
    /// The setting that gives it, for messages.
    pub setting: &'static str,
}

/// Settings of formats. A column is given by its name in the header, or by its 0-based number.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct FormatOptions {
    /// Label column. `None`: CSV takes label, target or y, else the last column; dense text takes the first.
    pub label: Option<String>,
    /// Whether lines have a label at all; prediction does not need one.
    pub has_label: bool,
    /// Whether labels are used. If not, a table has none: its label column is not read, and no other is taken for it.
    pub uses_labels: bool,
    pub purpose: InputPurpose,
    /// Column of record weights.
    pub weight: Option<String>,
    /// Column of groups; "qid" for libsvm.
    pub group: Option<String>,
    /// Column of the times of the records.
    pub time: Option<String>,
    /// Whether the first line names the columns. `None`: a sample of the input decides.
    pub header: Option<bool>,
    /// Byte between fields. `None`: a sample of the input decides.
    pub delimiter: Option<u8>,
    /// Columns whose values are names even if they look like numbers.
    pub text_columns: Vec<String>,
    /// Columns whose values are the names of a record's parts, such as its user and its item. They are the only features of
    /// a table then, in this order, and every record has a name in each. Formats of lines without columns ignore it. Before a
    /// job has said what it needs, these are those that the user gives; an empty name leaves the choice to the job.
    pub id_columns: Vec<String>,
    /// Columns whose values are texts of tokens between white space.
    pub token_columns: Vec<String>,
    /// Whether the tokens of a record stay in their order, repeated ones too. Otherwise each distinct one is an entry, and
    /// its value is how often it occurs.
    pub keeps_token_order: bool,
    /// How texts become tokens; `None`: they stand between white space.
    pub tokenizer: Option<Tokenizer>,
    /// Columns that are not read.
    pub skip_columns: Vec<String>,
    /// Passthrough columns: they are copied to the predictions.
    pub keep_columns: Vec<String>,
    /// Groups of features whose products are features too: namespaces, fields or columns, two or three per product.
    pub interactions: Vec<Vec<String>>,
    /// Whether entries of value 0 are stored, which centring needs. Formats of lines without columns never store them.
    pub keep_zeros: bool,
    /// Whether numbers of a column that are close together and far from 0 are counted from another origin. Models with an
    /// intercept allow it.
    pub subtracts_origins: bool,
    /// Whether the entries of formats with columns have fields. In libffm they have them always.
    pub uses_fields: bool,
    /// Feature numbers must be below it; `None`: there is no limit.
    #[serde(skip)]
    pub key_limit: Option<KeyLimit>,
    /// Fields of lines that have fields must be below it; `None`: there is no limit.
    pub field_limit: Option<u32>,
    /// Whether a record must have a feature that is not 0.
    pub requires_entries: bool,
    #[serde(skip)]
    pub label_rule: LabelRule,
}

impl Default for FormatOptions {
    fn default() -> Self {
        Self {
            label: None,
            has_label: true,
            uses_labels: true,
            purpose: InputPurpose::Training,
            weight: None,
            group: None,
            time: None,
            header: None,
            delimiter: None,
            text_columns: Vec::new(),
            id_columns: Vec::new(),
            token_columns: Vec::new(),
            keeps_token_order: false,
            tokenizer: None,
            skip_columns: Vec::new(),
            keep_columns: Vec::new(),
            interactions: Vec::new(),
            keep_zeros: false,
            subtracts_origins: false,
            uses_fields: false,
            key_limit: None,
            field_limit: None,
            requires_entries: false,
            label_rule: LabelRule::Real,
        }
    }
}

impl FormatOptions {
    /// Fills the settings that the user left open from the trained schema. `abilities` are those of the
    /// format of the input.
    pub(crate) fn fill_from(&mut self, schema: &Schema, abilities: Abilities) {
        let fill = |mine: &mut Option<String>, theirs: &Option<String>| {
            if mine.is_none() {
                mine.clone_from(theirs);
            }
        };
        if self.has_label {
            fill(&mut self.label, &schema.label);
        }
        // For other purposes these columns may be absent: a format with columns looks them up in the file.
        if self.purpose == InputPurpose::Training || !abilities.has_columns {
            fill(&mut self.weight, &schema.weight);
            fill(&mut self.group, &schema.group);
            fill(&mut self.time, &schema.time);
        }
        if self.skip_columns.is_empty() {
            self.skip_columns.clone_from(&schema.skip_columns);
        }
        if self.interactions.is_empty() {
            self.interactions.clone_from(&schema.interactions);
        }
        self.keep_zeros |= schema.keep_zeros;
        self.uses_fields |= schema.fields;
        self.keeps_token_order |= schema.token_order;
        self.tokenizer = self.tokenizer.or(Some(schema.tokenizer));
    }

    /// Skips the label column.
    pub(crate) fn skip_label(&mut self) {
        self.has_label = false;
        self.skip_columns.extend(self.label.take());
    }

    /// Drops settings of columns that belong to training data of another format when lines have no columns.
    pub(crate) fn drop_columns_for(&mut self, abilities: Abilities) {
        if !abilities.has_columns {
            let remaining = Self {
                has_label: self.has_label,
                uses_labels: self.uses_labels,
                purpose: self.purpose,
                keep_columns: std::mem::take(&mut self.keep_columns),
                group: self.group.take().filter(|group| group == "qid" && abilities.has_qid),
                interactions: std::mem::take(&mut self.interactions),
                keep_zeros: self.keep_zeros,
                uses_fields: self.uses_fields,
                keeps_token_order: self.keeps_token_order,
                tokenizer: self.tokenizer,
                key_limit: self.key_limit,
                field_limit: self.field_limit,
                requires_entries: self.requires_entries,
                label_rule: self.label_rule,
                ..Self::default()
            };
            *self = remaining;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> FormatOptions {
        let some = || Some("qid".to_owned());
        FormatOptions {
            label: some(),
            has_label: false,
            uses_labels: false,
            purpose: InputPurpose::Prediction,
            weight: some(),
            group: some(),
            time: some(),
            header: Some(true),
            delimiter: Some(b';'),
            text_columns: vec!["a".into()],
            id_columns: vec!["u".into()],
            token_columns: vec!["t".into()],
            keeps_token_order: true,
            tokenizer: Some(Tokenizer::Words),
            skip_columns: vec!["b".into()],
            keep_columns: vec!["c".into()],
            interactions: vec![vec!["d".into(), "e".into()]],
            keep_zeros: true,
            subtracts_origins: true,
            uses_fields: true,
            key_limit: Some(KeyLimit { limit: 7, setting: "dimensions" }),
            field_limit: Some(2),
            requires_entries: true,
            label_rule: LabelRule::Class,
        }
    }

    #[test]
    fn lines_without_columns_keep_what_is_no_setting_of_columns() {
        let mut options = all();
        options.drop_columns_for(Abilities { has_qid: true, ..Abilities::NONE });
        assert_eq!(
            (options.label, options.weight, options.header, options.delimiter),
            (None, None, None, None)
        );
        assert!(options.text_columns.is_empty() && options.skip_columns.is_empty());
        assert!(options.token_columns.is_empty() && options.time.is_none() && options.keeps_token_order);
        assert!(!options.has_label && options.keep_zeros);
        assert_eq!((options.purpose, options.label_rule), (InputPurpose::Prediction, LabelRule::Class));
        assert_eq!(
            (options.group.as_deref(), options.key_limit),
            (Some("qid"), Some(KeyLimit { limit: 7, setting: "dimensions" }))
        );
        assert_eq!((options.field_limit, options.requires_entries), (Some(2), true));
        assert_eq!((options.keep_columns, options.interactions), (all().keep_columns, all().interactions));
        let mut options = all();
        options.drop_columns_for(Abilities::NONE);
        assert_eq!(options.group, None, "it has no qid");
        let mut options = all();
        options.drop_columns_for(Abilities::COLUMNS);
        assert_eq!(options.label, all().label);
    }
}
