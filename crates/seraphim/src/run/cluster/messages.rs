//! What driver and workers say to each other: the contents of `ToTask` and `FromTask` in the control plane.
//!
//! The driver speaks first: `Look` to one worker, `Prepare` to all, then `Train`; `EpochDecision` after each epoch; `Save` to
//! one; `End` to all. Each of them is answered once. A connection that was lost and is back loses nothing that was said
//! by the master, but a worker that died is not replaced: the job fails and says so.
//!
//! They are JSON in which the name of a message stands around its contents (`{"train": {...}}`), so that serde reads the
//! contents at once. With the name inside (a `tag`), serde first holds them in a type of its own, and there a map whose
//! keys are numbers cannot be read any more. Numbers that need not be finite travel as [`HexEncoded`].

use std::collections::BTreeMap;

use algo::{EpochDecision, EpochReport};
use data::{BadLineTotal, Schema};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use worker::JobLayout;

use crate::job::raw::RawJob;
use crate::model::{Manifest, TrainingPosition};
use crate::report::EpochLine;
use crate::run::failure::{FailureRank, ReadPosition};
use crate::run::totals::TaskSummary;

/// A value as compact bytes in hexadecimal: numbers that are not finite come back, and long lists are cheap.
#[derive(Clone, Debug)]
pub struct HexEncoded<T>(pub T);

impl<T: Serialize> Serialize for HexEncoded<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes = postcard::to_allocvec(&self.0).map_err(serde::ser::Error::custom)?;
        let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
        let text: String = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
        serializer.serialize_str(&text)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for HexEncoded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digit = |byte: u8| {
            char::from(byte).to_digit(16).ok_or_else(|| D::Error::custom("expected hexadecimal digits"))
        };
        let bytes = text.as_bytes().chunks(2).map(|pair| match pair {
            [high, low] => Ok((digit(*high)? << 4 | digit(*low)?) as u8),
            _ => Err(D::Error::custom("expected an even number of digits")),
        });
        let bytes = bytes.collect::<Result<Vec<u8>, D::Error>>()?;
        postcard::from_bytes(&bytes).map(Self).map_err(D::Error::custom)
    }
}

/// Names of keys in one message: some megabytes of text, so that millions of names delay no heartbeat.
pub const NAMES_PER_MESSAGE: usize = 1 << 16;

/// Names in parts that each fit a message.
pub fn split_names(mut names: BTreeMap<u64, String>, mut say: impl FnMut(BTreeMap<u64, String>)) {
    while let Some(next) = names.keys().nth(NAMES_PER_MESSAGE).copied() {
        let rest = names.split_off(&next);
        say(std::mem::replace(&mut names, rest));
    }
    if !names.is_empty() {
        say(names);
    }
}

/// Driver -> worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWorker {
    /// Opens the data and says what they are. Answered by `DataInspection`.
    Look {
        /// As people wrote it.
        job: RawJob,
    },
    /// Opens its share, and reads it through when that must be. Answered by `Prepared`.
    Prepare {
        /// As people wrote it.
        job: RawJob,
        /// Of the data, as the first worker found it.
        schema: Schema,
        /// Tasks of the job.
        task_count: u32,
        /// First task of this worker.
        first: u32,
        /// Number of its tasks.
        count: u32,
        /// Where training begins.
        start: TrainingPosition,
        /// The data are surveyed, so that the open settings of the job can be chosen.
        survey: bool,
    },
    /// Brings the earlier model to the servers. Answered by `Imported`.
    Import {
        /// Where the parameters are.
        layout: JobLayout,
    },
    /// Runs its tasks. Answered by `TaskEnded` for each, or `Failed`.
    Train {
        /// All parameters of the algorithm, none open any more.
        set: BTreeMap<String, String>,
        /// Where the parameters are.
        layout: JobLayout,
        /// What is learned.
        model: algo::Model,
        /// The matrices hold an earlier model.
        resumed: bool,
        /// The workers of the job, each with its first task and the number of its tasks.
        crews: Vec<(u32, u32)>,
    },
    /// What follows from an epoch.
    Verdict {
        /// Of this epoch.
        epoch: u64,
        /// For all tasks.
        verdict: EpochDecision,
        /// How it went.
        line: HexEncoded<EpochLine>,
    },
    /// The tasks stop at their next step.
    Stop,
    /// A task has failed, perhaps at another worker. Answered by `Settled` when no task here reads any more.
    Settle {
        /// Where: nothing behind it needs to be read.
        position: Option<ReadPosition>,
    },
    /// Names of keys for the model that is to be written; as many of these as it takes, then `Save`.
    Names {
        /// By key.
        names: BTreeMap<u64, String>,
    },
    /// Writes the model. Answered by `StoredMatrix`.
    Save {
        /// Where the parameters are.
        layout: JobLayout,
        /// But for matrices and files.
        manifest: Box<Manifest>,
    },
    /// The job is over, well or not.
    End {
        /// Why, when it is not well.
        reason: Option<String>,
    },
}

/// Worker -> driver.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWorker {
    /// What the data are.
    Looked {
        /// Columns and format.
        schema: Schema,
        /// Bytes of the input.
        size_bytes: Option<u64>,
        /// How the input was understood.
        notices: Vec<String>,
        /// Tasks of the job.
        task_count: u32,
        /// For people.
        greeting: String,
        /// The earlier model, when training goes on from one.
        previous: Option<algo::Model>,
        /// Where training begins.
        start: TrainingPosition,
    },
    /// The shares are open.
    Prepared {
        /// Whether they were read through.
        scanned: bool,
        /// Of each task.
        summaries: HexEncoded<Vec<TaskSummary>>,
    },
    /// The earlier model is on the servers.
    Imported {
        /// What the user should know.
        notices: Vec<String>,
    },
    /// Steps of all its tasks since the last time.
    Progress {
        /// Steps.
        steps: u64,
        /// Records.
        records: u64,
        /// Sum of their losses.
        loss_sum: f64,
        /// Input bytes read.
        bytes: u64,
    },
    /// A task has ended an epoch.
    Epoch {
        /// What it did.
        report: HexEncoded<EpochReport>,
        /// What all tasks of this worker have met so far, in training and in validation.
        bad_lines: [BadLineTotal; 2],
    },
    /// Names of keys that a task has met; as many of these as it takes, then its `TaskEnded`.
    Names {
        /// By key.
        names: BTreeMap<u64, String>,
    },
    /// A task has ended.
    TaskEnded {
        /// The task.
        task: u32,
        /// What it has read.
        summary: HexEncoded<TaskSummary>,
    },
    /// The model is written.
    Saved {
        /// Of the model.
        manifest: Box<Manifest>,
        /// Seconds of waiting for the disk.
        sync_s: f64,
    },
    /// Something went wrong.
    Failed {
        /// The text for people.
        error: String,
        /// The exit code of it.
        exit: u8,
        /// Its place among the failures of other tasks; none: there are no others.
        rank: Option<FailureRank>,
    },
    /// No task here reads any more.
    Settled {},
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: u64) -> BTreeMap<u64, String> {
        // Keys of named features have their upper bit set: no f64 holds them.
        (0..count).map(|i| (u64::MAX - i, format!("color=\"{i}\""))).collect()
    }

    #[test]
    fn names_of_keys_come_back() {
        let body = serde_json::to_value(FromWorker::Names { names: names(3) }).unwrap();
        let back: FromWorker = serde_json::from_value(body).unwrap();
        assert!(matches!(back, FromWorker::Names { names: back } if back == names(3)));
        let body = serde_json::to_value(ToWorker::Names { names: names(3) }).unwrap();
        let back: ToWorker = serde_json::from_value(body).unwrap();
        assert!(matches!(back, ToWorker::Names { names: back } if back == names(3)));
    }

    #[test]
    fn many_names_go_in_parts_that_together_are_all() {
        for count in [0, 1, NAMES_PER_MESSAGE, NAMES_PER_MESSAGE + 1, 2 * NAMES_PER_MESSAGE] {
            let (mut parts, mut together) = (Vec::new(), BTreeMap::new());
            split_names(names(count as u64), |part| {
                parts.push(part.len());
                together.extend(part);
            });
            assert!(together == names(count as u64), "{count}");
            assert_eq!(parts.len(), count.div_ceil(NAMES_PER_MESSAGE), "{count}");
            assert!(parts.iter().all(|&len| len <= NAMES_PER_MESSAGE), "{count}: {parts:?}");
        }
    }

    #[test]
    fn packed_values_come_back_whatever_they_are() {
        let values = vec![f64::NAN, f64::NEG_INFINITY, -0.0, 1.5];
        let text = serde_json::to_string(&HexEncoded(values.clone())).unwrap();
        let back: HexEncoded<Vec<f64>> = serde_json::from_str(&text).unwrap();
        let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&back.0), bits(&values));
        for bad in ["\"0\"", "\"0g\"", "\"ffffffffffffffffffffff\"", "3"] {
            assert!(serde_json::from_str::<HexEncoded<Vec<f64>>>(bad).is_err(), "{bad}");
        }
    }
}
