//! The data of a job and how it computes: parts that jobs of all commands have.

use data::{BadLinePolicy, FormatOptions, InputPurpose};
use serde::{Deserialize, Serialize};

use crate::check::Checker;
use crate::error::Error;
use crate::keys::JobCommand;
use crate::raw::RawJob;

/// The data to read, and how to read them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// Files, folders or patterns.
    pub data: Vec<String>,
    /// Name of the format; none: the format is detected.
    pub format: Option<String>,
    /// How columns are interpreted.
    pub options: FormatOptions,
    pub bad_lines: BadLinePolicy,
}

/// Settings of computation and output.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RunOptions {
    /// Number of tasks; none: `auto`.
    pub tasks: Option<u64>,
    /// Maximum number of tasks that compute at once; none: as many as the machine has cores.
    pub threads: Option<usize>,
    /// Print the result as JSON.
    pub json: bool,
    /// Print no progress.
    pub quiet: bool,
}

/// Numbers of processes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSize {
    pub servers: u32,
    pub workers: u32,
}

/// The settings of computation and output.
pub(crate) fn run_options(checker: &Checker<'_>) -> Result<RunOptions, Error> {
    Ok(RunOptions {
        tasks: checker.count("tasks")?,
        threads: checker.count("threads")?.map(|count| count as usize),
        json: checker.switch("json")?,
        quiet: checker.switch("quiet")?,
    })
}

/// Returns the numbers of servers and workers; if only one number is given, it is used for both.
pub(crate) fn cluster_size(checker: &Checker<'_>) -> Result<Option<ClusterSize>, Error> {
    let (servers, workers) = (checker.count("servers")?, checker.count("workers")?);
    let size = |servers: u64, workers: u64| ClusterSize { servers: servers as u32, workers: workers as u32 };
    Ok(servers.or(workers).map(|either| size(servers.unwrap_or(either), workers.unwrap_or(either))))
}

pub(crate) fn input_for(checker: &Checker<'_>, purpose: InputPurpose) -> Result<Input, Error> {
    let data = checker.list("data");
    if data.is_empty() {
        return Err(checker.missing("data", "data"));
    }
    Ok(Input {
        data,
        format: checker.text("format"),
        options: FormatOptions { purpose, ..options(checker)? },
        bad_lines: bad_lines(checker)?,
    })
}

/// The data of a command that reads them beside a model; `raw` says how.
pub fn scoring_input(raw: &RawJob, data: Vec<String>) -> Result<Input, Error> {
    let checker = Checker::new(raw, JobCommand::Train);
    let (format, bad_lines) = (checker.text("format"), bad_lines(&checker)?);
    let options = FormatOptions { purpose: InputPurpose::Prediction, ..options(&checker)? };
    Ok(Input { data, format, options, bad_lines })
}

fn options(checker: &Checker<'_>) -> Result<FormatOptions, Error> {
    let expected = "one ASCII character, or the word tab";
    Ok(FormatOptions {
        label: label(checker)?,
        id_columns: ids(checker),
        has_label: !checker.switch("no_label")?,
        weight: checker.text("weight"),
        group: checker.text("group"),
        time: checker.text("time"),
        header: checker.boolean("header")?,
        delimiter: checker.parsed("delimiter", expected, parse_delimiter)?,
        text_columns: checker.names("text_columns"),
        token_columns: checker.names("token_columns"),
        tokenizer: checker.parsed(
            "tokenizer",
            &data::Tokenizer::NAMES.join(", "),
            data::Tokenizer::from_name,
        )?,
        skip_columns: checker.names("skip_columns"),
        keep_columns: checker.names("keep_columns"),
        interactions: checker
            .names("interactions")
            .iter()
            .map(|text| data::parse_interaction(text))
            .collect(),
        ..FormatOptions::default()
    })
}

/// Returns the label column, which `rating` names too.
fn label(checker: &Checker<'_>) -> Result<Option<String>, Error> {
    match (checker.text("label"), checker.text("rating")) {
        (Some(label), Some(rating)) if label != rating => Err(Error::InvalidRequest {
            what: format!("--label {label} and --rating {rating} name the same thing"),
            advice: "give one of them".into(),
        }),
        (label, rating) => Ok(label.or(rating)),
    }
}

/// Returns the given columns of users and items; an empty name where only the other one is given.
fn ids(checker: &Checker<'_>) -> Vec<String> {
    let ids = ["user", "item"].map(|name| checker.text(name));
    if ids.iter().all(Option::is_none) { Vec::new() } else { ids.map(Option::unwrap_or_default).to_vec() }
}

fn parse_delimiter(text: &str) -> Option<u8> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Some(b'\t'),
        [byte] if byte.is_ascii() => Some(*byte),
        _ => None,
    }
}

fn bad_lines(checker: &Checker<'_>) -> Result<BadLinePolicy, Error> {
    let parse = |text: &str| match text {
        "fail" => Some(BadLinePolicy::Fail),
        text => Some(BadLinePolicy::Skip { limit: text.strip_prefix("skip=")?.parse().ok()? }),
    };
    Ok(checker
        .parsed("bad_lines", "fail, or skip=N with N lines at most", parse)?
        .unwrap_or(BadLinePolicy::Fail))
}
