//! Rules that the simulation takes out, one at a time, to prove that its checker notices.

/// A rule that is taken out.
#[cfg_attr(not(feature = "broken"), allow(unreachable_pub, reason = "shown only to the simulation"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Pulls and pushes never wait.
    StalenessIgnored,
    /// A tick does not wait for the held push before it.
    TickOvertakesPush,
    /// A push that was applied before is applied again.
    DuplicatesApplied,
    /// The minimum is the number of ticks of all by the number of tasks.
    MinimumByCommits,
    /// When a task leaves, nobody is released.
    RemovedTaskKeepsWaiters,
    /// A task that joins waits for the clocks of tasks that wait for it at the home lane.
    LateTasksWait,
    /// The first page of an import does not replace what was there.
    ImportKeepsOldRows,
}
