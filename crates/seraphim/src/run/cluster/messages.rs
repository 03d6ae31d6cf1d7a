//! Messages between driver and workers: the contents of `ToTask` and `FromTask` in the control plane.
//!
//! The driver starts: it sends `Look` to one worker, `Prepare` to all, then `Train`; `Verdict` after each epoch; `Save`
//! to one worker; `End` to all. Messages survive the loss and return of a connection to the master. A worker that died
//! is not replaced: its job fails with an error that names the worker.
//!
//! The messages are JSON with the name of a message around its contents (`{"train": {...}}`), so that serde parses the
//! contents directly. With the name inside (a `tag`), serde first buffers the contents in a type that cannot represent
//! maps with numbers as keys. Numbers that may be infinite or NaN are sent as [`HexEncoded`].

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

/// A value as compact bytes in hexadecimal: it preserves numbers that are not finite, and long lists stay short.
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

/// Number of names of keys in one message: some megabytes of text, so that millions of names do not delay heartbeats.
pub const NAMES_PER_MESSAGE: usize = 1 << 16;

/// Splits names into groups that each fit in one message.
pub fn split_names(mut names: BTreeMap<u64, String>, mut say: impl FnMut(BTreeMap<u64, String>)) {
    while let Some(next) = names.keys().nth(NAMES_PER_MESSAGE).copied() {
        let rest = names.split_off(&next);
        say(std::mem::replace(&mut names, rest));
    }
    if !names.is_empty() {
        say(names);
    }
}

/// Messages from the driver to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWorker {
    /// Requests to open and inspect the data. Answered by `Looked`.
    Look { job: RawJob },
    /// Requests to open the worker's share of the data, and to scan it if necessary. Answered by `Prepared`.
    Prepare {
        job: RawJob,
        /// Schema of the data, as the first worker found it.
        schema: Schema,
        /// Number of tasks of the job.
        task_count: u32,
        /// First task of this worker.
        first: u32,
        /// Number of tasks of this worker.
        count: u32,
        /// Position at which training starts.
        start: TrainingPosition,
        /// Whether to survey the data, so that the open settings of the job can be chosen.
        survey: bool,
    },
    /// Requests to import the earlier model to the servers. Answered by `Imported`.
    Import { layout: JobLayout },
    /// Requests to run the tasks. Answered by `TaskEnded` for each task, or by `Failed`.
    Train {
        /// All parameters of the algorithm, with none open.
        set: BTreeMap<String, String>,
        layout: JobLayout,
        /// The model that training produces.
        model: algo::Model,
        /// Whether the matrices contain an earlier model.
        resumed: bool,
        /// The workers of the job, each as its first task and its number of tasks.
        worker_tasks: Vec<(u32, u32)>,
    },
    /// The decision after an epoch.
    Verdict {
        epoch: u64,
        /// The decision for all tasks.
        verdict: EpochDecision,
        /// Metrics of the epoch.
        line: HexEncoded<EpochLine>,
    },
    /// Requests all tasks to stop at their next step.
    Stop,
    /// Reports that a task has failed, perhaps on another worker. Answered by `Settled` when no task of the worker
    /// reads any more.
    Settle {
        /// Position of the failure: nothing behind it needs to be read.
        position: Option<ReadPosition>,
    },
    /// Names of keys for the model to be written. The driver sends as many of these as necessary, then `Save`.
    Names { names: BTreeMap<u64, String> },
    /// Requests to write the model. Answered by `Saved`.
    Save {
        layout: JobLayout,
        /// The manifest without matrices and files.
        manifest: Box<Manifest>,
    },
    /// Reports that the job has ended, with success or failure.
    End {
        /// Reason of the failure; none after success.
        reason: Option<String>,
    },
}

/// Messages from a worker to the driver.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWorker {
    /// Describes the data.
    Looked {
        schema: Schema,
        /// Size of the input in bytes, if known.
        size_bytes: Option<u64>,
        /// Notices about how the input was interpreted.
        notices: Vec<String>,
        /// Number of tasks of the job.
        task_count: u32,
        /// Description of the run for people.
        greeting: String,
        /// The earlier model, if training continues from one.
        previous: Option<algo::Model>,
        /// Position at which training starts.
        start: TrainingPosition,
    },
    /// Reports that the worker's share of the data is open.
    Prepared {
        /// Whether the data were scanned.
        scanned: bool,
        /// Summary of each task.
        summaries: HexEncoded<Vec<TaskSummary>>,
    },
    /// Reports that the earlier model is on the servers.
    Imported {
        /// Notices for the user.
        notices: Vec<String>,
    },
    /// Sums over the worker's tasks since the last `Progress`.
    Progress {
        steps: u64,
        records: u64,
        /// Sum of the losses of these records.
        loss_sum: f64,
        /// Number of input bytes read.
        bytes: u64,
    },
    /// Reports that a task has ended an epoch.
    Epoch {
        report: HexEncoded<EpochReport>,
        /// Bad lines of all tasks of this worker so far, in training and in validation.
        bad_lines: [BadLineTotal; 2],
    },
    /// Names of keys in a task's data. The worker sends as many of these as necessary, then `TaskEnded` of the task.
    Names { names: BTreeMap<u64, String> },
    /// Reports that a task has ended.
    TaskEnded {
        task: u32,
        /// Summary of what the task has read.
        summary: HexEncoded<TaskSummary>,
    },
    /// Reports that the model is written.
    Saved {
        manifest: Box<Manifest>,
        /// Seconds of waiting for the disk.
        sync_s: f64,
    },
    /// Reports a failure.
    Failed {
        /// The text of the error.
        error: String,
        /// Exit code of a command that ends with this error.
        exit: u8,
        /// Order among the failures of other tasks; none if no other task can have failed.
        rank: Option<FailureRank>,
    },
    /// Reports that no task of the worker reads any more.
    Settled {},
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: u64) -> BTreeMap<u64, String> {
        // Keys of named features have their highest bit set, so an `f64` cannot represent them.
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
