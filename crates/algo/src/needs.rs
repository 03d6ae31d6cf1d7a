//! What a job requires of its data, and of how it runs.

use data::{BatchSize, FormatOptions, KeyLimit, LabelRule, Shuffle};

use crate::error::Error;
use crate::labels::{self, TrainingLabels};
use crate::stopping::EarlyStopping;

/// How often the training data are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epochs {
    /// Exactly this many times.
    Fixed(u64),
    /// Until `record_visits` records have been read in total, and at most `limit` times. The tasks decide this at the
    /// end of epoch 0. Data must be cached as for several epochs; a task that has itself read `record_visits` records
    /// calls [`data::BatchStream::release_cache`].
    Auto {
        /// Records to read in all epochs.
        record_visits: u64,
        /// Largest number of epochs.
        limit: u64,
    },
}

impl Epochs {
    /// The number of epochs for `record_count` training records of all tasks.
    pub fn count(self, record_count: u64) -> u64 {
        match self {
            Self::Fixed(count) => count,
            Self::Auto { record_visits, limit } => {
                record_visits.div_ceil(record_count.max(1)).clamp(1, limit)
            }
        }
    }
}

/// What a job requires of the caller that opens the data and runs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Needs {
    /// How labels become numbers before their names are known ([`Self::label_rule`]).
    pub label_rule: LabelRule,
    /// The label that counts as 1, as the user writes it, for a rule of two classes.
    pub positive_label: Option<String>,
    /// The family learns from labels. If not, a table without `--label` has none, and all its columns are features.
    pub uses_labels: bool,
    /// The training data must be scanned before epoch 0 (`TaskData::scan`), for classes, moments or class counts.
    pub scan: bool,
    /// That scan also counts the distinct features of each task's training data.
    pub count_features: bool,
    /// The training data must be surveyed before epoch 0 with the quantiles of their columns, for bins
    /// ([`crate::DataFacts::survey`]). A family that keeps its own form of the records then frees the others with
    /// [`data::BatchStream::release_cache`].
    pub quantiles: bool,
    pub epochs: Epochs,
    /// Records per batch.
    pub batch_size: BatchSize,
    /// The order of records in each epoch.
    pub shuffle: Shuffle,
    /// Zeros of dense formats must be kept as entries.
    pub keep_zeros: bool,
    /// Numbers of a column that are close together and far from 0 may be counted from another origin: the model has an
    /// intercept, and is the same for them.
    pub subtracts_origins: bool,
    /// The columns of a table that name the parts of a record, such as its user and its item: they are its only features, in this
    /// order, and every record has a name in each. Those that the user gives (`--user`, `--item`) stand in their place.
    pub ids: &'static [&'static str],
    /// Entries must have fields.
    pub uses_fields: bool,
    /// The tokens of a record stay in their order, repeated ones too. Otherwise a record has each of its tokens once, with its
    /// count.
    pub keeps_token_order: bool,
    /// The family reads the times of the records ([`data::Batch::times`]), if they have some.
    pub uses_times: bool,
    /// The validation data are scored more often than the training data are read.
    pub repeats_validation: bool,
    /// Batches have the numbers of their records ([`data::Batch::numbers`]), for what a task remembers of each record.
    pub uses_record_numbers: bool,
    /// Feature numbers must be below this limit; `None` allows any number.
    pub key_limit: Option<KeyLimit>,
    /// A record must have a feature that is not 0.
    pub requires_entries: bool,
    /// Share of the records reserved for validation if there is no validation file, in `[0, 1)`.
    pub validation_share: f64,
    /// The rule for early stopping, which requires validation data from a file or a share; `None` if it is off.
    pub early_stopping: Option<EarlyStopping>,
    /// Tasks can save their states within an epoch ([`crate::Coordinator::is_save_due`]). If not, they save between two
    /// epochs.
    pub saves_within_epochs: bool,
    /// All reads must see every earlier push: another consistency than bsp is refused.
    pub requires_bsp: bool,
}

impl Needs {
    /// The edges of a graph, with keys of nodes and without labels.
    #[must_use]
    pub fn edges() -> Self {
        Self { uses_labels: false, ..Self::default() }
    }

    /// Reads the data this many times, or makes this many rounds.
    #[must_use]
    pub fn epochs(self, count: u64) -> Self {
        Self { epochs: Epochs::Fixed(count), ..self }
    }

    /// Sets what the format of the data must do.
    pub fn set_options(&self, options: &mut FormatOptions) {
        options.label_rule = self.label_rule;
        options.uses_labels = self.uses_labels;
        options.keep_zeros = self.keep_zeros;
        options.subtracts_origins = self.subtracts_origins;
        let given = std::mem::take(&mut options.id_columns);
        let column = |(&id, given): (&&str, Option<&String>)| match given {
            Some(given) if !given.is_empty() => given.clone(),
            _ => id.to_owned(),
        };
        let given = given.iter().map(Some).chain(std::iter::repeat(None));
        options.id_columns = self.ids.iter().zip(given).map(column).collect();
        options.uses_fields = self.uses_fields || !self.ids.is_empty();
        options.keeps_token_order = self.keeps_token_order;
        options.key_limit = self.key_limit;
        options.requires_entries = self.requires_entries;
    }

    /// How labels become numbers, once the names in the label column are known. `names` is empty if labels are numbers.
    ///
    /// # Errors
    /// If the label that counts as 1 is not among them.
    pub fn label_rule(&self, names: &[String]) -> Result<LabelRule, Error> {
        Ok(match self.label_rule {
            LabelRule::Binary { .. } => {
                LabelRule::Binary { positive: labels::positive(self.positive_label.as_deref(), names)? }
            }
            LabelRule::Any => match names.len() {
                0 => LabelRule::Any,
                1 | 2 => LabelRule::Binary { positive: labels::positive(None, names)? },
                _ => LabelRule::Class,
            },
            rule => rule,
        })
    }

    /// The label that counts as 1, if it was named. Refuses one that no record has.
    pub fn positive(&self, labels: &TrainingLabels<'_>) -> Result<Option<f32>, Error> {
        labels.check_positive(self.positive_label.as_deref())?;
        match self.label_rule(labels.names())? {
            LabelRule::Binary { positive } => Ok(positive),
            LabelRule::Class | LabelRule::Real | LabelRule::Range { .. } | LabelRule::Any => Ok(None),
        }
    }
}

impl Default for Needs {
    /// One pass over records with real labels, in the order of the files.
    fn default() -> Self {
        Self {
            label_rule: LabelRule::Real,
            positive_label: None,
            uses_labels: true,
            scan: false,
            count_features: false,
            quantiles: false,
            epochs: Epochs::Fixed(1),
            batch_size: BatchSize::Growing,
            shuffle: Shuffle::None,
            keep_zeros: false,
            subtracts_origins: false,
            ids: &[],
            uses_fields: false,
            keeps_token_order: false,
            uses_times: false,
            repeats_validation: false,
            uses_record_numbers: false,
            key_limit: None,
            requires_entries: false,
            validation_share: 0.0,
            early_stopping: None,
            saves_within_epochs: false,
            requires_bsp: false,
        }
    }
}
