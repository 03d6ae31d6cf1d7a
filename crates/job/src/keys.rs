//! The table of keys: each row is a flag of the command line and a key of the job file.

use algo::ParamKind;
use algo::param::Word;
use rpc::message::Durability;
use serde::{Deserialize, Serialize};

/// The commands whose keys are in this table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobCommand {
    /// `seraphim train`.
    #[default]
    Train,
    /// `seraphim predict`.
    Predict,
    /// `seraphim evaluate`.
    Evaluate,
}

impl JobCommand {
    /// All commands.
    pub const ALL: [Self; 3] = [Self::Train, Self::Predict, Self::Evaluate];

    /// Its name, as in the command line and as the value of the key `command` of a job file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Predict => "predict",
            Self::Evaluate => "evaluate",
        }
    }

    /// Whether it is the default, which a job need not name.
    pub fn is_train(&self) -> bool {
        *self == Self::Train
    }
}

/// The kind of value that a key accepts.
#[derive(Clone, Copy, Debug)]
pub enum KeyKind {
    /// One value, of the kinds that parameters have.
    Value(ParamKind),
    /// A path.
    Path,
    /// Texts; the flag may be repeated.
    List,
    /// Column names; the flag may be repeated, and commas separate names.
    Names,
    /// A number of bytes: `1000`, `512KiB`, `2GiB`, `3MB`.
    Bytes,
    /// A flag without a value.
    Switch,
    /// `name=value`, repeated; a table in the job file.
    Pairs,
}

const TEXT: KeyKind = KeyKind::Value(ParamKind::Text);
const BOOLEAN: KeyKind = KeyKind::Value(ParamKind::Flag);

/// A whole number in `low..=high`.
const fn count(low: u64, high: u64) -> KeyKind {
    KeyKind::Value(ParamKind::Integer { low, high })
}

/// One of the words that `words` gives.
const fn choice(words: fn() -> Vec<Word>) -> KeyKind {
    KeyKind::Value(ParamKind::Choice(words))
}

#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name in the job file; the flag has `-` for `_`.
    pub name: &'static str,
    pub kind: KeyKind,
    /// Name of the value in the help.
    pub value_name: &'static str,
    /// One line for the help.
    pub help: &'static str,
    /// The commands that have the key.
    pub commands: &'static [JobCommand],
}

impl Key {
    /// The flag's name without its dashes.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }
}

const ALL: &[JobCommand] = &[JobCommand::Train, JobCommand::Predict, JobCommand::Evaluate];
const TRAIN: &[JobCommand] = &[JobCommand::Train];

const fn key(
    name: &'static str,
    kind: KeyKind,
    value_name: &'static str,
    commands: &'static [JobCommand],
    help: &'static str,
) -> Key {
    Key { name, kind, value_name, help, commands }
}

/// Maximum number of tasks and of threads.
pub const TASK_LIMIT: u64 = 1024;

/// All keys, in the order of the help.
pub const KEYS: &[Key] = &[
    key(
        "data",
        KeyKind::List,
        "FILES",
        ALL,
        "Files, folders, patterns in quotes, or - for standard input; may be repeated",
    ),
    key("validate", KeyKind::List, "FILES", TRAIN, "Data to validate on after every epoch; may be repeated"),
    key("model", KeyKind::Path, "DIR", ALL, "The model directory"),
    key(
        "output",
        KeyKind::Path,
        "FILE",
        &[JobCommand::Predict],
        "File for the scores: .csv, .parquet, DIR/ for a folder of parts, or - for standard output",
    ),
    key(
        "set",
        KeyKind::Pairs,
        "NAME=VALUE",
        TRAIN,
        "A parameter of the algorithm (see `seraphim algorithms`); may be repeated",
    ),
    key(
        "functions",
        KeyKind::List,
        "FILES",
        TRAIN,
        "WebAssembly modules with PS functions that servers run; sent with the job; may be repeated",
    ),
    key(
        "from",
        KeyKind::Path,
        "DIR",
        TRAIN,
        "Continue training from this model: exact except with epochs=auto, early stopping and optimizers over all \
         records (see docs)",
    ),
    key(
        "overwrite",
        KeyKind::Switch,
        "",
        &[JobCommand::Train, JobCommand::Predict],
        "Replace an earlier output; train: the model and the report; predict: the scores",
    ),
    key(
        "tasks",
        KeyKind::Value(ParamKind::AutoInteger { low: 1, high: TASK_LIMIT }),
        "N|auto",
        ALL,
        "Number of tasks; train: part of the job, so another number gives another model [default: auto, from the \
         size of the data alone]",
    ),
    key(
        "threads",
        count(1, TASK_LIMIT),
        "N",
        ALL,
        "Maximum number of tasks that compute at once; does not change the bytes of a bsp model [default: all cores]",
    ),
    key(
        "servers",
        count(1, TASK_LIMIT),
        "N",
        ALL,
        "Number of servers that hold the parameters: processes of this machine, or for a submitted job of the cluster \
         [default: none, all in one process]",
    ),
    key(
        "workers",
        count(1, TASK_LIMIT),
        "N",
        ALL,
        "Number of workers that run the tasks, processes of this machine or of the cluster [default: train: as many as \
         servers; predict, evaluate: none, the command reads the data]",
    ),
    key(
        "wire",
        choice(|| Word::plain(&["f32", "bf16", "int8"])),
        "f32|bf16|int8",
        TRAIN,
        "Encoding of values between servers and workers: unchanged, or rounded to 2 bytes or to 1 byte [default: f32]",
    ),
    key(
        "consistency",
        TEXT,
        "bsp|ssp:N|asp",
        TRAIN,
        "Consistency: bsp (synchronous), ssp:N (reads at most N steps stale), asp (asynchronous) [default: bsp]",
    ),
    key(
        "prefetch",
        choice(|| Word::plain(&["off", "exact"])),
        "off|exact",
        TRAIN,
        "Prefetch the next step's parameters from servers, after this step's push [default: exact]",
    ),
    key("seed", count(0, i64::MAX as u64), "N", TRAIN, "Seed of everything random [default: 1]"),
    key("report", KeyKind::Path, "FILE", TRAIN, "Write metrics, timings and settings of the run as JSON"),
    key("format", TEXT, "NAME", ALL, "Format of the data [default: by extension, then by the first lines]"),
    key("label", TEXT, "COLUMN", ALL, "Label column, by name or number from 0"),
    key("rating", TEXT, "COLUMN", ALL, "Another name of --label, for ratings of items by users"),
    key("user", TEXT, "COLUMN", TRAIN, "Column of users, by name or number from 0 [default: user]"),
    key("item", TEXT, "COLUMN", TRAIN, "Column of items, by name or number from 0 [default: item]"),
    key("no_label", KeyKind::Switch, "", &[JobCommand::Predict], "The data have no label column"),
    key(
        "raw_scores",
        KeyKind::Switch,
        "",
        &[JobCommand::Predict],
        "Write the scores from which probabilities are computed: log odds, or one score for each class",
    ),
    key(
        "leaves",
        KeyKind::Switch,
        "",
        &[JobCommand::Predict],
        "Write the number of the leaf that each record reaches in each tree, instead of scores (gbdt)",
    ),
    key(
        "contributions",
        KeyKind::Switch,
        "",
        &[JobCommand::Predict],
        "Write what each feature adds to the raw score of each record, and the expected score, instead of scores (gbdt)",
    ),
    key(
        "keep_columns",
        KeyKind::Names,
        "COLUMNS",
        &[JobCommand::Predict],
        "Columns of the data to copy to the output, before the scores, by name or number from 0",
    ),
    key(
        "threshold",
        TEXT,
        "T",
        &[JobCommand::Evaluate],
        "Predict 1 above this score, for accuracy, precision, recall, f1, confusion matrix [default: .5 for lr, 0 \
         for svm]",
    ),
    key("weight", TEXT, "COLUMN", ALL, "Column of record weights"),
    key("group", TEXT, "COLUMN", ALL, "Column of groups, for gauc and ranking; qid for libsvm"),
    key(
        "time",
        TEXT,
        "COLUMN",
        TRAIN,
        "Column of the times of the records: numbers or dates, for --validate-from",
    ),
    key(
        "validate_from",
        TEXT,
        "TIME",
        TRAIN,
        "Records from this time on (see --time) are held out for validation",
    ),
    key("header", BOOLEAN, "true|false", ALL, "Whether the first line names the columns [default: detected]"),
    key("delimiter", TEXT, "CHAR", ALL, "Column separator: one character, or tab [default: detected]"),
    key("text_columns", KeyKind::Names, "COLUMNS", TRAIN, "Columns whose values are names, not numbers"),
    key(
        "token_columns",
        KeyKind::Names,
        "COLUMNS",
        TRAIN,
        "Columns of texts whose words are features: each word between white space, with its count",
    ),
    key(
        "tokenizer",
        choice(|| Word::plain(data::Tokenizer::NAMES)),
        "blanks|words|english",
        TRAIN,
        "How texts become words: as they stand between white space, or in lower case without punctuation; english: also without stop words [default: blanks]",
    ),
    key(
        "interactions",
        KeyKind::Names,
        "A:B,...",
        TRAIN,
        "Products of the features of two or three namespaces, fields or columns: letters (ab) or names (user:item)",
    ),
    key("skip_columns", KeyKind::Names, "COLUMNS", ALL, "Columns to ignore [default: those of training]"),
    key(
        "bad_lines",
        TEXT,
        "fail|skip=N",
        ALL,
        "At a bad line: stop, or skip up to N of them [default: fail]",
    ),
    key(
        "memory_limit",
        KeyKind::Bytes,
        "BYTES",
        TRAIN,
        "Memory limit for records cached for the next epoch, as in 2GiB; the rest is cached on disk [default: a quarter of \
         the machine's or container's]",
    ),
    key(
        "scratch",
        KeyKind::Path,
        "DIR",
        TRAIN,
        "Folder for records cached on disk [default: the system's temporary folder]",
    ),
    key(
        "keep_optimizer",
        BOOLEAN,
        "true|false",
        TRAIN,
        "Save the optimizer's state, which --from needs to continue exactly [default: true]",
    ),
    key(
        "checkpoint_every",
        TEXT,
        "TIME|Nticks|off",
        TRAIN,
        "Write a checkpoint after this time, as in 30s or 5m, or after this number of steps, as in 100ticks \
         [default: 30s, or longer so that at most a twentieth of the time is spent with them]",
    ),
    key(
        "checkpoints",
        KeyKind::Path,
        "DIR|URL",
        TRAIN,
        "Folder for checkpoints, which are kept after training; with the features cloud and hdfs also s3://BUCKET/PATH, \
         gs://, az:// or hdfs://HOST:PORT/PATH [default: the model's with .checkpoints added, removed when the model is \
         saved]",
    ),
    key("checkpoint_keep", count(1, 1_000_000), "N", TRAIN, "Number of checkpoints to keep [default: 3]"),
    key(
        "checkpoint_increments",
        count(0, 1_000_000),
        "N",
        TRAIN,
        "Number of checkpoints after a full one that have only the rows changed since the checkpoint before; useful for \
         large models that change little between two checkpoints [default: 0]",
    ),
    key(
        "resume",
        KeyKind::Path,
        "DIR|latest",
        TRAIN,
        "Continue a training from its newest checkpoint (latest, or the folder of the checkpoints) or from one of \
         them (DIR/00000012); ends in the same model as without the interruption",
    ),
    key(
        "restarts",
        count(0, 1_000_000),
        "N",
        TRAIN,
        "How often the job goes on from its last checkpoint after a server or worker is lost [default: 10]",
    ),
    key(
        "durability",
        choice(|| Word::plain(Durability::NAMES)),
        "checkpoint|log|synced-log|replica",
        TRAIN,
        "What a training on servers has when a server dies: its last checkpoint, or a log of every change, with which \
         no task goes back; a synced log outlives a power failure too; or a replica on another server, which takes over \
         [default: checkpoint]",
    ),
    key(
        "slow_worker",
        choice(|| Word::plain(&["off", "warn", "move"])),
        "off|warn|move",
        TRAIN,
        "A worker that needs twice as long for a record as the median: say so, or give its tasks to others [default: warn]",
    ),
    key(
        "wait_limit",
        count(1, 86_400),
        "SECONDS",
        TRAIN,
        "Maximum wait of one task for another [default: 600]",
    ),
    key("json", KeyKind::Switch, "", ALL, "Print the result as JSON"),
    key("quiet", KeyKind::Switch, "", ALL, "Print no progress"),
];

/// What `--resume` says besides names of folders.
pub const LATEST: &str = "latest";

/// Whether the value of a key for paths is a word and no path.
pub fn is_word(key: &str, value: &str) -> bool {
    key == "resume" && value == LATEST
}

pub fn keys_of(command: JobCommand) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.commands.contains(&command))
}

/// Returns the key with this name among the keys of a command.
pub fn find(command: JobCommand, name: &str) -> Option<&'static Key> {
    keys_of(command).find(|key| key.name == name)
}
