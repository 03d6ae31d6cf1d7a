//! Inputs: the files that the user names, how they are opened, and how they are divided among tasks.

use crate::arrays;
use crate::bad_lines::{BadLinePolicy, BadLineTally, BadLineTotal};
use crate::format::{
    Abilities, FormatContext, FormatRow, FormatTable, LineFormat, OpenFormat, RowGroupFormat,
};
use crate::input;
use crate::interruptible::StopFlag;
use crate::label::LabelRule;
use crate::lines::{Grammar, LineReader};
use crate::reader::Reader;
use crate::resolve::resolve;
use crate::schema::{ColumnKind, PassthroughColumn, Schema};
use crate::sink::Sink;
use crate::split::{Split, SplitCandidate, assign_splits};
use crate::{Batch, Error};
use std::sync::Arc;

pub use crate::input::{Head, Input};
pub use crate::options::{FormatOptions, InputPurpose, KeyLimit};

/// Which inputs are read, and how.
#[derive(Clone, Debug, Default)]
pub struct SourceConfig {
    /// Files, folders, glob patterns; "-" is standard input.
    pub inputs: Vec<String>,
    /// Name in the table of formats. `None`: the extension of the file decides, else its first lines.
    pub format: Option<String>,
    pub options: FormatOptions,
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
    key_limit: Option<KeyLimit>,
    requires_entries: bool,
    purpose: InputPurpose,
    bad_lines: BadLineTally,
    notices: Vec<String>,
}

enum SourceFormat {
    Lines(Box<dyn LineFormat>),
    RowGroups(Box<dyn RowGroupFormat>),
}

impl Source {
    /// Opens an input for training. The schema comes from the settings and a sample of the input.
    pub fn open(config: &SourceConfig, formats: &FormatTable) -> Result<Self, Error> {
        Self::from_inputs(resolve(&config.inputs, &config.stop, formats.memory())?, config, None, formats)
    }

    /// Opens an input whose columns and label names must be those of `schema` (validation, prediction).
    pub fn open_with_schema(
        config: &SourceConfig,
        schema: &Schema,
        formats: &FormatTable,
    ) -> Result<Self, Error> {
        Self::from_inputs(
            resolve(&config.inputs, &config.stop, formats.memory())?,
            config,
            Some(schema),
            formats,
        )
    }

    /// Opens files that are already resolved, or bytes in memory.
    pub fn from_inputs(
        files: Vec<Input>,
        config: &SourceConfig,
        trained_schema: Option<&Schema>,
        formats: &FormatTable,
    ) -> Result<Self, Error> {
        let row = match (config.format.as_deref(), trained_schema) {
            (Some(name), _) => formats.find(name)?,
            (None, Some(schema)) => formats.recognize_for_schema(&files, &schema.format)?,
            (None, None) => formats.recognize(&files)?,
        };
        let mut options = config.options.clone();
        if !options.uses_labels && row.abilities.has_columns {
            options.skip_label();
        }
        if let Some(schema) = trained_schema {
            if row.name == schema.format {
                options.delimiter = options.delimiter.or(schema.delimiter);
            } else {
                options.drop_columns_for(row.abilities);
                let trained = formats.find(&schema.format).map_or(Abilities::NONE, |row| row.abilities);
                check_features(row, &files, &options, schema, trained)?;
            }
            options.fill_from(schema, row.abilities);
            if row.name != schema.format {
                options.drop_columns_for(row.abilities);
            }
        } else {
            row.refuse_tokenizer(&options)?;
        }
        options.keep_zeros &= row.abilities.has_columns;
        let context = FormatContext { files: &files, options: &options, trained_schema };
        let (plan, mut schema, passthrough_columns, mut notices) = match open(row, &context)? {
            OpenFormat::Lines(plan) => {
                let (schema, passthrough_columns, notices) =
                    (plan.schema(), plan.passthrough_columns(), plan.notices());
                (SourceFormat::Lines(plan), schema, passthrough_columns, notices)
            }
            OpenFormat::RowGroups(plan) => {
                let (schema, passthrough_columns, notices) =
                    (plan.schema(), plan.passthrough_columns(), plan.notices());
                (SourceFormat::RowGroups(plan), schema, passthrough_columns, notices)
            }
        };
        if !row.abilities.reads_partitions
            && let Some(notice) = unread_partition_notice(&files)
        {
            notices.push(notice);
        }
        if passthrough_columns.is_empty() && !options.keep_columns.is_empty() && schema.columns.is_empty() {
            return Err(Error::BadOption { option: "keep_columns", reason: without_columns(row.name) });
        }
        row.name.clone_into(&mut schema.format);
        schema.interactions.clone_from(&options.interactions);
        if let Some(limit) = options.key_limit {
            check_features_are_numbered(&files, &schema, row.abilities, limit)?;
        }
        Ok(Self {
            files: files.into(),
            format: plan,
            schema,
            passthrough_columns,
            label_rule: options.label_rule,
            key_limit: options.key_limit,
            requires_entries: options.requires_entries,
            purpose: options.purpose,
            bad_lines: BadLineTally::new(config.bad_lines),
            notices,
        })
    }

    /// Notices for the user about the input: a guessed label, columns of mixed types.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Sets the rule by which later readers map labels. It can depend on the names of labels, which are known once the
    /// input is opened. Readers that exist already keep their rule.
    pub fn set_label_rule(&mut self, rule: LabelRule) {
        self.label_rule = rule;
    }

    /// The passthrough columns, in the requested order.
    pub fn passthrough_columns(&self) -> &[PassthroughColumn] {
        &self.passthrough_columns
    }

    /// The meaning of the columns; the model stores it.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    pub fn files(&self) -> &[Input] {
        &self.files
    }

    /// Size of all files on disk in bytes; `None` when standard input is one of them.
    pub fn size_bytes(&self) -> Option<u64> {
        self.files.iter().map(Input::size_bytes).sum()
    }

    /// Returns what each of `task_count` tasks reads: together every record once. The result depends only on sizes and
    /// `task_count`.
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
                SourceFormat::RowGroups(plan) if plan.is_sequence(file) => {
                    pieces.push(SplitCandidate::Whole { file, bytes: input.size_bytes().unwrap_or(0) });
                }
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

    /// Cuts the whole input into splits, in its order, that together cost no more to read than the input itself. There
    /// are at least `count` of them where the input can be cut that often.
    pub fn chunks(&self, count: usize) -> Vec<Split> {
        // Reading from the middle of a row group means decoding the records before it.
        let count = match &self.format {
            SourceFormat::Lines(_) => count,
            SourceFormat::RowGroups(_) => 1,
        };
        let mut chunks: Vec<Split> = self.splits(count).into_iter().flatten().collect();
        chunks.sort_by_key(|split| (split.file, split.range.sort_key()));
        chunks
    }

    /// Returns the bad lines of all readers of this source so far.
    pub fn bad_lines(&self) -> BadLineTotal {
        self.bad_lines.total()
    }

    /// Fails when there are more bad lines than allowed. After all readers have ended, the result is always the same.
    pub fn check_bad_lines(&self) -> Result<(), Error> {
        self.bad_lines.policy.check(&self.bad_lines())
    }

    /// Makes a reader of the splits of one task. Each reader checks the limit of bad lines for itself;
    /// [`check_bad_lines`](Self::check_bad_lines) checks it for all of them together.
    pub fn reader(&self, splits: Vec<Split>) -> Result<Reader, Error> {
        let mut sink = Sink::new(self.label_rule, self.bad_lines.clone());
        sink.set_key_limit(self.key_limit);
        sink.set_column_names(self.schema.columns.iter().map(|column| column.name.clone()).collect());
        sink.set_requires_entries(self.requires_entries);
        match self.purpose {
            InputPurpose::Training | InputPurpose::Evaluation => sink.skip_weightless(),
            // Every record gets its score.
            InputPurpose::Prediction => {}
        }
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

/// Opens files with the format `row`, and arrays in memory as they are.
fn open(row: &FormatRow, context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    if context.files.iter().any(|file| file.arrays().is_some()) {
        return arrays::open(context);
    }
    row.refuse_settings(context.options)?;
    (row.open)(context)
}

/// Makes a notice about columns in the names of folders that this format does not read.
fn unread_partition_notice(files: &[Input]) -> Option<String> {
    let columns = files.iter().map(Input::partition).find(|columns| !columns.is_empty())?;
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    Some(format!(
        "columns in the names of folders ({}) are read with Parquet only, and are ignored here",
        names.join(", ")
    ))
}

fn without_columns(format: &str) -> String {
    format!(
        "{format} has no columns to copy to the output; scores are in the order of the records and can be joined line \
         by line, or write the data as a table (CSV, Parquet)"
    )
}

/// Fails when a limit of feature numbers is set for features that have names.
fn check_features_are_numbered(
    files: &[Input],
    schema: &Schema,
    abilities: Abilities,
    key_limit: KeyLimit,
) -> Result<(), Error> {
    let limit = key_limit.limit;
    let file = input::list_names(files);
    let text = schema.columns.iter().find(|column| column.kind == ColumnKind::Text);
    let reason = match text {
        Some(column) => {
            format!(
                "features of column '{}' of {file} have names and no numbers; remove this setting",
                column.name
            )
        }
        None if !abilities.has_columns && !abilities.is_numbered => {
            format!("features of {file} ({}) have names and no numbers; remove this setting", schema.format)
        }
        None if !schema.interactions.is_empty() => {
            "interactions have no numbers; remove this setting".to_owned()
        }
        None if schema.columns.len() as u64 > limit => {
            format!(
                "{limit} is too few for the {} feature columns of {file}; remove this setting",
                schema.columns.len()
            )
        }
        None => return Ok(()),
    };
    Err(Error::BadOption { option: key_limit.setting, reason })
}

/// Fails when the input has another format than training and identifies its features differently: by names of columns,
/// or by numbers in the input.
fn check_features(
    row: &FormatRow,
    files: &[Input],
    options: &FormatOptions,
    trained_schema: &Schema,
    trained: Abilities,
) -> Result<(), Error> {
    // This opens the input without the trained schema. Errors of the file itself are reported when it is opened with
    // it.
    let Ok(plan) = open(row, &FormatContext { files, options, trained_schema: None }) else { return Ok(()) };
    let columns = match plan {
        OpenFormat::Lines(plan) => plan.schema().columns,
        OpenFormat::RowGroups(plan) => plan.schema().columns,
    };
    let by_columns = (!columns.is_empty(), !trained_schema.columns.is_empty());
    let numbered = row.abilities.is_numbered && trained.is_numbered;
    if by_columns == (true, true) || (by_columns == (false, false) && numbered) {
        return Ok(());
    }
    let known = |by_columns: bool| if by_columns { "columns" } else { "keys in each record" };
    let difference = format!(
        "it is {}, whose features are {}; the features of the model are {} of {}; convert the file, or set its format \
         with --format if it was detected wrongly",
        row.name,
        known(by_columns.0),
        known(by_columns.1),
        trained_schema.format
    );
    Err(Error::SchemaDiffers { file: input::list_names(files), difference })
}

/// Records per batch of [`read_bytes`].
const BYTES_BATCH_SIZE: usize = 1024;

/// Reads bytes in memory as one file of `format`, for tests, fuzzing and small inputs.
pub fn read_bytes(format: &str, options: &FormatOptions, bytes: &[u8]) -> Result<Vec<Batch>, Error> {
    Ok(read_tasks(format, options, bytes, 1, BYTES_BATCH_SIZE)?.1.remove(0))
}

/// Like [`read_bytes`], for each of `task_count` tasks, in batches of `batch_size` records. Also returns the schema.
///
/// # Panics
/// When `task_count` or `batch_size` is 0.
pub fn read_tasks(
    format: &str,
    options: &FormatOptions,
    bytes: &[u8],
    task_count: usize,
    batch_size: usize,
) -> Result<(Schema, Vec<Vec<Batch>>), Error> {
    let config =
        SourceConfig { format: Some(format.to_owned()), options: options.clone(), ..SourceConfig::default() };
    let files = vec![Input::memory("bytes", bytes)?];
    let source = Source::from_inputs(files, &config, None, &FormatTable::builtin())?;
    let batches_of = |splits| {
        let (mut reader, mut batches) = (source.reader(splits)?, Vec::new());
        loop {
            let mut batch = Batch::default();
            if !reader.next_batch(batch_size, &mut batch)? {
                return Ok(batches);
            }
            batches.push(batch);
        }
    };
    let tasks = source.splits(task_count).into_iter().map(batches_of).collect::<Result<_, Error>>()?;
    Ok((source.schema().clone(), tasks))
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
