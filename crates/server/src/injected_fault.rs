//! Faults that the simulation injects, one at a time, to prove that its checker notices.

/// A rule that does not hold.
#[cfg_attr(not(feature = "fault-injection"), allow(unreachable_pub, reason = "shown only to the simulation"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// Pulls and pushes never wait.
    StalenessIgnored,
    /// A tick does not wait for the deferred push before it.
    TickOvertakesPush,
    /// A push that was applied before is applied again.
    DuplicatesApplied,
    /// The minimum clock is computed as the ticks of all tasks divided by the number of tasks.
    MinimumByCommits,
    /// When a task leaves, the tasks that wait for it are not released.
    RemovedTaskKeepsWaiters,
    /// A task that joins waits for the clocks of tasks that wait for it at the home lane.
    LateTasksWait,
    /// The first page of an import does not replace the rows that the matrix had.
    ImportKeepsOldRows,
    /// A change of a replicated job is acknowledged before its standby has it.
    AnswerBeforeStandby,
    /// A standby that has taken a job over confirms what the primary still sends.
    PrimaryIsNotRefused,
}
