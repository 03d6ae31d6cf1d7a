//! What a task of a job receives.

use data::BatchStream;
use matrix::Agent;

use crate::coordinator::Coordinator;
use crate::model::Model;

/// One task of a job.
pub struct TrainTask<'a> {
    /// Access to the parameters.
    pub agent: &'a mut dyn Agent,
    /// The task's share of the training data.
    pub data: &'a mut dyn BatchStream,
    /// The task's share of the validation data.
    pub validation: Option<&'a mut dyn BatchStream>,
    /// Receives the progress, and decides after each epoch.
    pub coordinator: &'a dyn Coordinator,
    /// What scoring needs besides the matrices.
    pub model: &'a dyn Model,
    /// Whether the matrices already contain an earlier model.
    pub resumed: bool,
    /// The seed of the job.
    pub seed: u64,
}
