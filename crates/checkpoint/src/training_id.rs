//! The identity of a training.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The identity of a training, the same in all its runs: a text that no other training has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrainingId(String);

impl From<&str> for TrainingId {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for TrainingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
