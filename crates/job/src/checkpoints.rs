//! The settings of checkpoints: when they are written, where, how many are kept, and from which one a job continues.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::check::Checker;
use crate::error::Error;
use crate::keys::LATEST;
use crate::raw::RawJob;

/// Default time between two checkpoints: at most so much work is lost.
const EVERY_DEFAULT: CheckpointEvery = CheckpointEvery::Time(Duration::from_secs(30));
const KEEP_DEFAULT: usize = 3;

/// When checkpoints are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckpointEvery {
    Off,
    /// When so much time has passed since the last one.
    Time(Duration),
    /// When the clock has advanced so far since the last one.
    Ticks(u64),
}

/// The settings of a job's checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointSettings {
    pub every: CheckpointEvery,
    /// Whether the user has set `every`. If not, checkpoints are rarer when they take long.
    pub is_every_given: bool,
    /// Whether the user wants checkpoints by name.
    pub is_asked_for: bool,
    /// The folder in the terms of a store.
    pub location: String,
    /// Whether the folder is removed when the model is saved: the user has not named it.
    pub is_temporary: bool,
    /// How many complete checkpoints are kept.
    pub keep: usize,
    /// How many checkpoints after one with all rows may have only rows that have changed.
    pub increments: u64,
    pub resume: Option<ResumeFrom>,
}

/// The checkpoint from which a job continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResumeFrom {
    /// The newest one in the folder of the job's own checkpoints.
    Latest,
    /// The folder of a training, or a checkpoint in it.
    Place(String),
}

impl ResumeFrom {
    /// Parses `latest`, the folder of a training, or a checkpoint in it.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_end_matches('/');
        if text.is_empty() {
            return None;
        }
        if text == LATEST {
            return Some(Self::Latest);
        }
        Some(Self::Place(text.to_owned()))
    }
}

impl CheckpointSettings {
    /// Reads the settings of a job that writes `model`.
    pub fn of(checker: &Checker<'_>, model: &Path) -> Result<Self, Error> {
        let every = checker.parsed("checkpoint_every", EXPECTED, parse_every)?;
        let location = checker.text("checkpoints").filter(|text| !text.is_empty());
        Ok(Self {
            every: every.unwrap_or(EVERY_DEFAULT),
            is_every_given: every.is_some(),
            is_asked_for: every.is_some_and(|every| every != CheckpointEvery::Off) || location.is_some(),
            is_temporary: location.is_none(),
            location: location.unwrap_or_else(|| default_location(model).display().to_string()),
            keep: checker.count("checkpoint_keep")?.map_or(KEEP_DEFAULT, |count| count as usize),
            increments: checker.count("checkpoint_increments")?.unwrap_or(0),
            resume: checker.parsed("resume", "latest, or a folder with checkpoints", ResumeFrom::parse)?,
        })
    }
}

const EXPECTED: &str = "a time as in 30s or 5m, a number of ticks as in 100ticks, or off";

/// Parses `30s`, `5m`, `2h`, `100ticks` or `off`.
fn parse_every(text: &str) -> Option<CheckpointEvery> {
    if text == "off" {
        return Some(CheckpointEvery::Off);
    }
    if let Some(ticks) = text.strip_suffix("ticks").or_else(|| text.strip_suffix("tick")) {
        return ticks.trim().parse().ok().filter(|ticks| *ticks > 0).map(CheckpointEvery::Ticks);
    }
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let (number, unit_ms) =
        units.iter().find_map(|(unit, ms)| text.strip_suffix(unit).map(|number| (number, *ms)))?;
    let ms = number.trim().parse::<u64>().ok()?.checked_mul(unit_ms)?;
    (ms > 0).then(|| CheckpointEvery::Time(Duration::from_millis(ms)))
}

/// The folder beside a model in which its checkpoints lie unless the user names another.
pub fn default_location(model: &Path) -> PathBuf {
    let mut name = model.file_name().unwrap_or(model.as_os_str()).to_owned();
    name.push(".checkpoints");
    model.with_file_name(name)
}

/// Keys that a job which continues may set anew, because no byte of a bsp model depends on them. Checkpoints of earlier
/// versions may have the keys `cache` and `keep`, which are ignored.
const FREE_KEYS: &[&str] = &[
    "model",
    "overwrite",
    "threads",
    "servers",
    "workers",
    "prefetch",
    "cache",
    "report",
    "keep",
    "memory_limit",
    "scratch",
    "keep_optimizer",
    "wait_limit",
    "json",
    "quiet",
    "restarts",
    "slow_worker",
    "durability",
    "checkpoint_every",
    "checkpoints",
    "checkpoint_keep",
    "checkpoint_increments",
    "resume",
];

/// The settings that the files of a model depend on, and that its manifest does not have elsewhere.
pub fn settings_of_model(raw: &RawJob) -> BTreeMap<String, Vec<String>> {
    const ELSEWHERE: [&str; 7] = ["algorithm", "data", "validate", "from", "seed", "tasks", "consistency"];
    // Modules are called beside the training.
    const UNUSED: &str = "functions";
    let is_kept = |name: &str| {
        name == "keep_optimizer" || name != UNUSED && !FREE_KEYS.contains(&name) && !ELSEWHERE.contains(&name)
    };
    let mut settings = raw.texts();
    settings.retain(|name, _| is_kept(name));
    if let Some(pairs) = settings.get_mut("set") {
        // The last value of a parameter counts; their order says nothing.
        let values: BTreeMap<&str, &str> = pairs.iter().filter_map(|pair| pair.split_once('=')).collect();
        *pairs = values.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    }
    settings
}

/// How the job of a checkpoint and the job that continues it differ, a line each; empty if they may be continued. Both
/// have absolute paths.
pub fn differences(saved: &RawJob, job: &RawJob) -> Vec<String> {
    let (saved, job) = (settings(saved), settings(job));
    let names: std::collections::BTreeSet<&String> = saved.keys().chain(job.keys()).collect();
    let text = |value: Option<&String>| value.map_or("not set".to_owned(), |value| format!("{value:?}"));
    names
        .into_iter()
        .filter(|name| saved.get(*name) != job.get(*name))
        .map(|name| format!("{name} was {} and is {}", text(saved.get(name)), text(job.get(name))))
        .collect()
}

/// The settings that the bytes of the model depend on; each parameter of the algorithm by itself.
fn settings(raw: &RawJob) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    for (name, texts) in raw.texts() {
        if FREE_KEYS.contains(&name.as_str()) {
            continue;
        }
        if name == "set" {
            let pairs = texts.iter().filter_map(|pair| pair.split_once('='));
            settings.extend(pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())));
        } else {
            settings.insert(name, texts.join(", "));
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_ticks_are_parsed() {
        let seconds = |s| Some(CheckpointEvery::Time(Duration::from_secs(s)));
        assert_eq!(parse_every("off"), Some(CheckpointEvery::Off));
        assert_eq!(parse_every("30s"), seconds(30));
        assert_eq!(parse_every("5m"), seconds(300));
        assert_eq!(parse_every("2h"), seconds(7200));
        assert_eq!(parse_every("250ms"), Some(CheckpointEvery::Time(Duration::from_millis(250))));
        assert_eq!(parse_every("100ticks"), Some(CheckpointEvery::Ticks(100)));
        assert_eq!(parse_every("1 tick"), Some(CheckpointEvery::Ticks(1)));
        for bad in ["", "0s", "30", "s", "-1s", "0ticks", "1.5s", "ticks", "99999999999999999h"] {
            assert_eq!(parse_every(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn checkpoints_lie_beside_the_model() {
        assert_eq!(default_location(Path::new("out/model")), Path::new("out/model.checkpoints"));
        assert_eq!(default_location(Path::new("model.v2")), Path::new("model.v2.checkpoints"));
    }

    fn raw(toml: &str) -> RawJob {
        RawJob::from_toml(toml, Path::new("job.toml")).unwrap()
    }

    #[test]
    fn what_differs_is_named() {
        let saved = raw("algorithm = 'lr'\nseed = 3\ndata = ['a']\nmodel = 'm'\n[set]\nepochs = 2\nl2 = 1\n");
        let same = raw(
            "algorithm = 'lr'\nseed = 3\ndata = ['a']\nmodel = 'n'\nthreads = 2\n[set]\nl2 = 1\nepochs = 2\n",
        );
        assert_eq!(differences(&saved, &same), [""; 0]);
        let other = raw("algorithm = 'lr'\ndata = ['a']\ntasks = 2\n[set]\nepochs = 3\nl2 = 1\n");
        assert_eq!(
            differences(&saved, &other),
            [
                "epochs was \"2\" and is \"3\"",
                "seed was \"3\" and is not set",
                "tasks was not set and is \"2\""
            ]
        );
    }
}
