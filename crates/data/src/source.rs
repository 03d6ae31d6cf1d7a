//! Inputs: what the user names, how it is opened, and how it is divided among tasks.

use crate::bad_lines::{BadLinePolicy, BadLineTally, BadLineTotal};
use crate::format::{FormatContext, FormatRow, FormatTable, LineFormat, OpenFormat, RowGroupFormat};
use crate::input;
use crate::interruptible::StopFlag;
use crate::label::LabelRule;
use crate::lines::{Grammar, LineReader};
use crate::options::WITHOUT_COLUMNS;
use crate::reader::Reader;
use crate::resolve::resolve;
use crate::schema::{ColumnKind, PassthroughColumn, Schema};
use crate::sink::Sink;
use crate::split::{Split, SplitCandidate, assign_splits};
use crate::{Batch, Error};
use std::sync::Arc;

pub use crate::input::{Head, Input};
pub use crate::options::{FormatOptions, InputPurpose};

/// What to read and how.
#[derive(Clone, Debug, Default)]
pub struct SourceConfig {
    /// Files, folders, glob patterns; "-" is standard input.
    pub inputs: Vec<String>,
    /// Name in the table of formats; `None` = by the file's ending, then by its first lines.
    pub format: Option<String>,
    /// Settings of the format.
    pub options: FormatOptions,
    /// What to do with bad lines.
    pub bad_lines: BadLinePolicy,
    /// Ends the wait for standard input.
    pub stop: StopFlag,
}

/// An opened input: files, format, schema.
pub struct Source {
    files: Arc<[Input]>,
    format: SourceFormat,
    schema: Schema,
    passthrough_columns: Vec<PassthroughColumn>,
    label_rule: LabelRule,
    key_limit: Option<u64>,
    bad_lines: BadLineTally,
    notices: Vec<String>,
}

enum SourceFormat {
    Lines(Box<dyn LineFormat>),
    RowGroups(Box<dyn RowGroupFormat>),
}

impl Source {
    /// Opens an input for training: the schema is found by looking at it.
    pub fn open(config: &SourceConfig, formats: &FormatTable) -> Result<Self, Error> {
        Self::from_inputs(resolve(&config.inputs, &config.stop)?, config, None, formats)
    }

    /// Opens an input whose columns and label names must be those of `schema` (validation, prediction).
    pub fn open_with_schema(
        config: &SourceConfig,
        schema: &Schema,
        formats: &FormatTable,
    ) -> Result<Self, Error> {
        Self::from_inputs(resolve(&config.inputs, &config.stop)?, config, Some(schema), formats)
    }

    /// Opens files that are already known, or bytes in memory.
    pub fn from_inputs(
        files: Vec<Input>,
        config: &SourceConfig,
        like: Option<&Schema>,
        formats: &FormatTable,
    ) -> Result<Self, Error> {
        let row = match (config.format.as_deref(), like) {
            (Some(name), _) => formats.find(name)?,
            (None, Some(schema)) => formats.recognize_for_schema(&files, &schema.format)?,
            (None, None) => formats.recognize(&files)?,
        };
        let mut options = config.options.clone();
        if let Some(schema) = like {
            if row.name == schema.format {
                options.delimiter = options.delimiter.or(schema.delimiter);
            } else {
                options.drop_columns_for(row.name);
                check_features(row, &files, &options, schema)?;
            }
            options.fill_from(schema);
            if row.name != schema.format {
                options.drop_columns_for(row.name);
            }
        }
        if !options.interactions.is_empty() && !FORMATS_WITH_INTERACTIONS.contains(&row.name) {
            let reason =
                format!("{} has no columns, namespaces or fields to multiply; leave it out", row.name);
            return Err(Error::BadOption { option: "interactions", reason });
        }
        options.keep_zeros &= !WITHOUT_COLUMNS.contains(&row.name);
        let context = FormatContext { files: &files, options: &options, trained_schema: like };
        let (plan, mut schema, carried, mut notices) = match (row.open)(&context)? {
            OpenFormat::Lines(plan) => {
                let (schema, carried, notices) = (plan.schema(), plan.passthrough_columns(), plan.notices());
                (SourceFormat::Lines(plan), schema, carried, notices)
            }
            OpenFormat::RowGroups(plan) => {
                let (schema, carried, notices) = (plan.schema(), plan.passthrough_columns(), plan.notices());
                (SourceFormat::RowGroups(plan), schema, carried, notices)
            }
        };
        if let (SourceFormat::Lines(_), Some(notice)) = (&plan, unread_partition_notice(&files)) {
            notices.push(notice);
        }
        if carried.is_empty() && !options.keep_columns.is_empty() && schema.columns.is_empty() {
            return Err(Error::BadOption { option: "keep_columns", reason: without_columns(row.name) });
        }
        row.name.clone_into(&mut schema.format);
        schema.interactions.clone_from(&options.interactions);
        if let Some(limit) = options.key_limit {
            check_features_are_numbered(&files, &schema, limit)?;
        }
        Ok(Self {
            files: files.into(),
            format: plan,
            schema,
            passthrough_columns: carried,
            label_rule: options.label_rule,
            key_limit: options.key_limit,
            bad_lines: BadLineTally::new(config.bad_lines),
            notices,
        })
    }

    /// What the user should know of how the input was understood: a label that was guessed, columns of mixed kinds.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Labels become numbers by this rule from now on: a rule may depend on the names of labels, known since the input
    /// was opened. Readers that were made before keep theirs.
    pub fn set_label_rule(&mut self, rule: LabelRule) {
        self.label_rule = rule;
    }

    /// The columns that are carried along with the records, in the order asked for.
    pub fn passthrough_columns(&self) -> &[PassthroughColumn] {
        &self.passthrough_columns
    }

    /// What the columns mean; belongs into the model.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The files.
    pub fn files(&self) -> &[Input] {
        &self.files
    }

    /// Bytes of all files as they lie on disk; `None` when standard input is among them.
    pub fn size_bytes(&self) -> Option<u64> {
        self.files.iter().map(Input::size_bytes).sum()
    }

    /// What each of `task_count` tasks reads. Together every record, each once; the answer hangs only on the sizes.
    ///
    /// # Panics
    /// When `task_count` is 0.
    pub fn splits(&self, task_count: usize) -> Vec<Vec<Split>> {
        let mut pieces = Vec::new();
        for (file, input) in self.files.iter().enumerate() {
            match &self.format {
                SourceFormat::Lines(plan) => pieces.push(match input.splittable_bytes() {
                    Some(bytes) if plan.quotes().is_none() => SplitCandidate::Bytes { file, bytes },
                    _ => SplitCandidate::Whole { file, bytes: input.size_bytes().unwrap_or(0) },
                }),
                SourceFormat::RowGroups(plan) => {
                    let units = plan.row_groups(file).into_iter().enumerate();
                    pieces.extend(units.map(|(number, unit)| SplitCandidate::RowGroup {
                        file,
                        number,
                        row_group: unit,
                    }));
                }
            }
        }
        assign_splits(&pieces, task_count)
    }

    /// The whole input in pieces that can be read on their own at no more than the cost of reading it once, in its order:
    /// `count` of them at least, where it can be cut so often.
    pub fn chunks(&self, count: usize) -> Vec<Split> {
        // From the middle of a unit nothing can be read without decoding what comes before.
        let count = match &self.format {
            SourceFormat::Lines(_) => count,
            SourceFormat::RowGroups(_) => 1,
        };
        let mut chunks: Vec<Split> = self.splits(count).into_iter().flatten().collect();
        chunks.sort_by_key(|split| (split.file, split.range.sort_key()));
        chunks
    }

    /// The bad lines that all readers of this source have met so far.
    pub fn bad_lines(&self) -> BadLineTotal {
        self.bad_lines.total()
    }

    /// Whether that many are allowed. To be asked when all readers have come to their end: the answer is always the same
    /// then.
    pub fn check_bad_lines(&self) -> Result<(), Error> {
        self.bad_lines.policy.check(&self.bad_lines())
    }

    /// A reader of one task's splits. The limit of bad lines holds for each reader at once, for all of them together in
    /// [`check_bad_lines`](Self::check_bad_lines).
    pub fn reader(&self, splits: Vec<Split>) -> Result<Reader, Error> {
        let mut sink = Sink::new(self.label_rule, self.bad_lines.clone());
        sink.set_key_limit(self.key_limit);
        Ok(match &self.format {
            SourceFormat::Lines(plan) => {
                let header = plan.header().map(<[u8]>::to_vec);
                let grammar = Grammar { header, quotes: plan.quotes(), parser: plan.parser() };
                let lines = LineReader::new(Arc::clone(&self.files), grammar, splits);
                Reader::new(Box::new(lines), sink)
            }
            SourceFormat::RowGroups(plan) => Reader::new(plan.reader(&self.files, &splits)?, sink),
        })
    }
}

/// What the user is told of columns that folders are named by, where they are not read.
fn unread_partition_notice(files: &[Input]) -> Option<String> {
    let columns = files.iter().map(Input::partition).find(|columns| !columns.is_empty())?;
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    Some(format!(
        "columns that folders are named by ({}) are read with Parquet only, and are left out here",
        names.join(", ")
    ))
}

fn without_columns(format: &str) -> String {
    format!(
        "{format} has no columns that could be carried along; scores stand in the order of the records, so that they can be \
         joined line by line, or write the data as a table (CSV, Parquet)"
    )
}

/// A limit of feature numbers means nothing for features that are known by name.
fn check_features_are_numbered(files: &[Input], schema: &Schema, limit: u64) -> Result<(), Error> {
    let file = input::list_names(files);
    let text = schema.columns.iter().find(|column| column.kind == ColumnKind::Text);
    let reason = match text {
        Some(column) => {
            format!(
                "features of column '{}' of {file} are known by name and have no numbers; leave it out",
                column.name
            )
        }
        None if schema.format == "vw" => {
            format!("features of {file} (vw) are known by name and have no numbers; leave it out")
        }
        None if !schema.interactions.is_empty() => "interactions have no numbers; leave it out".to_owned(),
        None if schema.columns.len() as u64 > limit => {
            format!(
                "{limit} is too few for the {} feature columns of {file}; leave it out",
                schema.columns.len()
            )
        }
        None => return Ok(()),
    };
    Err(Error::BadOption { option: "dimensions", reason })
}

/// Formats whose features stand in groups that can be multiplied.
const FORMATS_WITH_INTERACTIONS: [&str; 5] = ["csv", "dense", "vw", "libffm", "parquet"];

/// Formats whose features are known by the number that is written: what one of them calls 7, the others call 7.
const FORMATS_WITH_NUMBERED_FEATURES: [&str; 3] = ["libsvm", "libffm", "parquet"];

/// Input of another format than that of training is understood when its features are known in the same way: by the
/// names of columns, or by numbers that are written.
fn check_features(
    row: &FormatRow,
    files: &[Input],
    options: &FormatOptions,
    like: &Schema,
) -> Result<(), Error> {
    // A look without the schema of training: what is wrong with the file itself is found when it is opened like it.
    let Ok(plan) = (row.open)(&FormatContext { files, options, trained_schema: None }) else { return Ok(()) };
    let columns = match plan {
        OpenFormat::Lines(plan) => plan.schema().columns,
        OpenFormat::RowGroups(plan) => plan.schema().columns,
    };
    let by_columns = (!columns.is_empty(), !like.columns.is_empty());
    let numbered = FORMATS_WITH_NUMBERED_FEATURES.contains(&row.name)
        && FORMATS_WITH_NUMBERED_FEATURES.contains(&like.format.as_str());
    if by_columns == (true, true) || (by_columns == (false, false) && numbered) {
        return Ok(());
    }
    let known = |by_columns: bool| if by_columns { "columns" } else { "keys in each record" };
    let difference = format!(
        "it is {}, whose features are {}; the model knows features as {} of {}; convert the file, or say its format \
         with --format if it was taken for another",
        row.name,
        known(by_columns.0),
        known(by_columns.1),
        like.format
    );
    Err(Error::SchemaDiffers { file: input::list_names(files), difference })
}

/// Records of a batch of [`read_bytes`].
const BYTES_BATCH_SIZE: usize = 1024;

/// Reads bytes in memory as one file of `format`: for tests, fuzzing and small inputs.
pub fn read_bytes(format: &str, options: &FormatOptions, bytes: &[u8]) -> Result<Vec<Batch>, Error> {
    let config =
        SourceConfig { format: Some(format.to_owned()), options: options.clone(), ..SourceConfig::default() };
    let files = vec![Input::memory("bytes", bytes)?];
    let source = Source::from_inputs(files, &config, None, &FormatTable::builtin())?;
    let splits = source.splits(1).remove(0);
    let mut reader = source.reader(splits)?;
    let mut batches = Vec::new();
    loop {
        let mut batch = Batch::default();
        if !reader.next_batch(BYTES_BATCH_SIZE, &mut batch)? {
            return Ok(batches);
        }
        batches.push(batch);
    }
}
