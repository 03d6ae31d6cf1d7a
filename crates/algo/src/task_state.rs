//! What a task keeps besides the matrices, for a task that begins with it.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;

/// What a task keeps besides the matrices.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskState {
    /// The algorithm that has saved it.
    pub algorithm: String,
    pub task: u32,
    pub task_count: u32,
    /// The epoch that comes next, or that continues.
    pub epoch: u64,
    /// Ticks since the training began, before the run that has saved it too.
    pub clock: u64,
    /// What [`crate::Learner::save_state`] returned.
    pub bytes: Vec<u8>,
}

impl TaskState {
    /// What the learner has saved.
    ///
    /// # Errors
    /// [`Error::TaskState`] if it is of another type, as after a change of the program.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let mut rest = self.bytes.as_slice();
        let value = rmp_serde::from_read(&mut rest).map_err(|error| self.misfit(error.to_string()))?;
        if rest.is_empty() {
            return Ok(value);
        }
        Err(self.misfit(format!("{} bytes follow its end", rest.len())))
    }

    /// The error that this state does not fit, for this reason.
    pub fn misfit(&self, reason: String) -> Error {
        Error::TaskState { task: self.task, algorithm: self.algorithm.clone(), reason }
    }
}

/// The bytes of a state.
///
/// # Errors
/// [`Error::EncodeState`] if the value has a form that cannot be encoded, such as a map whose length is not known.
pub fn encode(state: &impl Serialize) -> Result<Vec<u8>, Error> {
    rmp_serde::to_vec(state).map_err(|source| Error::EncodeState { source })
}
