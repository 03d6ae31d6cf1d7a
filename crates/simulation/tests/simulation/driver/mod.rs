//! The driver of a job in the simulation: workers that answer late, tasks that fail, users that stop the job, members
//! and parameters that are lost. A checker that sees only the messages of the driver checks the run.

mod checker;
mod scenario;
mod worker;
mod world;

pub(crate) use scenario::Scenario;

/// A fault in the surroundings of the driver, to see whether the checker notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InjectedFault {
    /// The rows of the best epoch are not restored.
    RowsAreNotRestored,
    /// The last worker does not receive the end of the job.
    OneWorkerIsNotEnded,
    /// The tasks do not read on to the first failure.
    FirstFailureIsNotAwaited,
    /// The tasks are not told to stop.
    StopIsNotSent,
    /// A decision is sent to the first worker twice.
    DecisionIsRepeated,
    /// Workers agree to save at a clock that their tasks have passed.
    EveryPlanIsAccepted,
    /// A worker writes the states of its tasks but one.
    StatesAreForgotten,
    /// The tasks go on before the snapshot for a checkpoint is taken.
    SnapshotIsNotTaken,
}

/// How often something happened in the runs of many seeds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) finished: u64,
    pub(crate) restored: u64,
    pub(crate) surveyed: u64,
    pub(crate) imported: u64,
    pub(crate) stopped_before_training: u64,
    pub(crate) stopped_in_training: u64,
    pub(crate) failed_tasks: u64,
    pub(crate) earlier_failures: u64,
    pub(crate) failed_workers: u64,
    pub(crate) lost_members: u64,
    pub(crate) failed_parameters: u64,
    pub(crate) silent_tasks: u64,
    pub(crate) checkpoints: u64,
    pub(crate) checkpoints_within_epochs: u64,
    pub(crate) refused_plans: u64,
    pub(crate) failed_checkpoints: u64,
    pub(crate) checkpoints_beside_steps: u64,
    pub(crate) checkpoints_without_snapshot: u64,
}

impl Facts {
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            finished,
            restored,
            surveyed,
            imported,
            stopped_before_training,
            stopped_in_training,
            failed_tasks,
            earlier_failures,
            failed_workers,
            lost_members,
            failed_parameters,
            silent_tasks,
            checkpoints,
            checkpoints_within_epochs,
            refused_plans,
            failed_checkpoints,
            checkpoints_beside_steps,
            checkpoints_without_snapshot,
        } = other;
        self.finished += finished;
        self.restored += restored;
        self.surveyed += surveyed;
        self.imported += imported;
        self.stopped_before_training += stopped_before_training;
        self.stopped_in_training += stopped_in_training;
        self.failed_tasks += failed_tasks;
        self.earlier_failures += earlier_failures;
        self.failed_workers += failed_workers;
        self.lost_members += lost_members;
        self.failed_parameters += failed_parameters;
        self.silent_tasks += silent_tasks;
        self.checkpoints += checkpoints;
        self.checkpoints_within_epochs += checkpoints_within_epochs;
        self.refused_plans += refused_plans;
        self.failed_checkpoints += failed_checkpoints;
        self.checkpoints_beside_steps += checkpoints_beside_steps;
        self.checkpoints_without_snapshot += checkpoints_without_snapshot;
    }

    /// Whether everything happened at least once.
    pub(crate) fn is_whole(self) -> bool {
        [
            self.finished,
            self.restored,
            self.surveyed,
            self.imported,
            self.stopped_before_training,
            self.stopped_in_training,
            self.failed_tasks,
            self.earlier_failures,
            self.failed_workers,
            self.lost_members,
            self.failed_parameters,
            self.silent_tasks,
            self.checkpoints,
            self.checkpoints_within_epochs,
            self.refused_plans,
            self.failed_checkpoints,
            self.checkpoints_beside_steps,
            self.checkpoints_without_snapshot,
        ]
        .iter()
        .all(|count| *count > 0)
    }
}

/// Returns the faults of a run, and the counts of what happened.
pub(crate) fn run(seed: u64, injected_fault: Option<InjectedFault>) -> (Vec<String>, Facts) {
    let scenario = Scenario::of(seed);
    let history = world::World::new(scenario.clone(), injected_fault).run();
    checker::check(&scenario, &history)
}

/// Returns the history of a seed as text.
pub(crate) fn history_text(seed: u64) -> String {
    format!("{:?}", world::World::new(Scenario::of(seed), None).run())
}
