//! The interface between a job of any family of algorithms and the caller that runs it.

use std::fmt::Debug;
use std::sync::Arc;

use data::LabelRule;
use matrix::{Consistency, MatrixSpec};

use crate::advice::{Remedies, TrainingReport};
pub use crate::data_facts::{DataFacts, DataProfile, Resolution, ResolvedSettings};
use crate::error::Error;
use crate::learner::Learner;
pub use crate::model::evaluate;
use crate::model::{Model, check_continues};
pub use crate::needs::{Epochs, Needs};
pub use crate::output::{Explanation, Output};
use crate::param::CheckedParams;
pub use crate::scorer::Scorer;
use crate::task_state::TaskState;
pub use crate::train_task::TrainTask;

/// Checked parameters of one algorithm. The caller goes through these steps in order: `resolve_settings`, and a new job
/// from the resolved settings; `needs`; open the data; `label_rule`; `model`; `matrices`; create them in that
/// order as `MatrixId(0)`, `MatrixId(1)`, ...; [`train`](crate::task_loop::train) on the thread of each task; save the model with the matrices.
pub trait Job: Debug + Send + Sync {
    /// The algorithm, and every setting with its value in force.
    fn settings(&self) -> &CheckedParams;

    /// Chooses values for the settings that are left open. With `previous`, training continues from that model. If the
    /// data must be surveyed first, they are opened with the `needs` of this unresolved job.
    fn resolve_settings(
        &self,
        _known: &DataProfile<'_>,
        _previous: Option<&dyn Model>,
    ) -> Result<Resolution, Error> {
        Ok(Resolution::Resolved(ResolvedSettings { settings: self.settings().all(), reasons: Vec::new() }))
    }

    /// What the job requires of its data, and of how it runs.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The model without its matrices. With `previous`, training continues from that model, whose family and matrices are
    /// those of this one (`check_continues`).
    fn model(&self, facts: &DataFacts, previous: Option<&dyn Model>) -> Result<Arc<dyn Model>, Error>;

    /// The matrices, in order of creation. The caller sets their consistency and their seed.
    fn matrices(&self, model: &dyn Model, layout: TableLayout) -> Result<Vec<MatrixSpec>, Error>;

    /// Begins one task, on its own thread. Without `saved`, the first values of the matrices are written, or they
    /// contain an earlier model ([`TrainTask::resumed`]). With `saved`, the matrices are as they were when it was
    /// saved: nothing may be pushed that changes them.
    fn begin<'a>(
        &'a self,
        task: &mut TrainTask<'a>,
        saved: Option<&TaskState>,
    ) -> Result<Box<dyn Learner + 'a>, Error>;

    /// What a user can change if the parameters are no longer finite.
    fn divergence_advice(&self) -> String {
        "Lower the step sizes, or scale the values".to_owned()
    }

    /// Notices about a training that has ended: what its losses say, and what may help.
    fn advice(&self, report: &TrainingReport<'_>) -> Vec<String> {
        if self.needs().uses_labels { Remedies::default().notices(report) } else { Vec::new() }
    }
}

impl dyn Job + '_ {
    pub fn algorithm(&self) -> &'static str {
        self.settings().algorithm()
    }

    /// The model without its matrices. With `previous`, training continues from that model.
    ///
    /// # Errors
    /// If the data do not suit the algorithm, or the earlier model does not suit this training.
    pub fn new_model(
        &self,
        facts: &DataFacts,
        previous: Option<&dyn Model>,
    ) -> Result<Arc<dyn Model>, Error> {
        let model = self.model(facts, previous)?;
        previous.map_or(Ok(()), |previous| check_continues(&*model, previous))?;
        Ok(model)
    }

    /// The matrices of a training with this consistency and seed, in order of creation.
    ///
    /// # Errors
    /// If the model belongs to another family.
    pub fn training_matrices(
        &self,
        model: &dyn Model,
        consistency: Consistency,
        layout: TableLayout,
        seed: u64,
    ) -> Result<Vec<MatrixSpec>, Error> {
        let specs = self.matrices(model, layout)?;
        let settled = |spec: MatrixSpec| {
            // Lists do not change while they are read.
            let consistency = if spec.storage.has_lists() { Consistency::Asp } else { consistency };
            MatrixSpec { consistency, seed, ..spec }
        };
        Ok(specs.into_iter().map(settled).collect())
    }

    /// How labels become numbers, once the names in the label column are known. `names` is empty if labels are numbers.
    pub fn label_rule(&self, names: &[String]) -> Result<LabelRule, Error> {
        self.needs().label_rule(names)
    }
}

/// What the matrices of a training depend on besides the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLayout {
    /// Number of partitions of a matrix.
    pub partition_count: u32,
    /// Number of tasks of the job.
    pub task_count: u32,
}
