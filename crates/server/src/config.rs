//! The settings of a lane, and the jobs of a process as the process sees them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use matrix::FunctionTable;
use rpc::message::{Base64Bytes, JobId};

use crate::injected_fault::InjectedFault;

/// Makes the function table of a job: the functions of the server and those of the modules that the job brings. The
/// error says which module is wrong, and why.
pub type ModuleLoader = fn(&FunctionTable, &[Base64Bytes]) -> Result<FunctionTable, String>;

/// Makes the function tables of jobs with modules. A process makes each table once, for all of its lanes and for all
/// jobs with the same modules.
#[derive(Clone, Debug)]
pub struct ModuleCache {
    load: ModuleLoader,
    tables: Arc<Mutex<Vec<CachedTable>>>,
}

/// The function table of some modules, while a job uses it.
#[derive(Debug)]
struct CachedTable {
    modules: Vec<Base64Bytes>,
    table: Weak<FunctionTable>,
}

impl ModuleCache {
    /// An empty cache.
    pub fn new(of: ModuleLoader) -> Self {
        Self { load: of, tables: Arc::default() }
    }

    /// The functions of `table`, which is that of the process, and of the modules. Waits while another lane makes a
    /// table.
    pub(crate) fn table(
        &self,
        table: &FunctionTable,
        modules: &[Base64Bytes],
    ) -> Result<Arc<FunctionTable>, String> {
        let mut made = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        made.retain(|one| one.table.strong_count() > 0);
        let known = made.iter().filter(|one| one.modules == modules).find_map(|one| one.table.upgrade());
        if let Some(table) = known {
            return Ok(table);
        }
        let table = Arc::new((self.load)(table, modules)?);
        made.push(CachedTable { modules: modules.to_vec(), table: Arc::downgrade(&table) });
        Ok(table)
    }
}

/// The settings of a lane.
#[derive(Clone, Debug)]
pub struct LaneConfig {
    /// Number of the lane, from 0.
    pub lane: u16,
    /// Number of lanes of the process.
    pub lanes: u16,
    /// A number that differs at each start of the process.
    pub incarnation: u64,
    /// Most bytes of rows on this lane, row copies included.
    pub memory_limit_bytes: u64,
    /// Most bytes of requests of one connection behind a deferred push. Beyond it the lane stops reading the
    /// connection.
    pub window_bytes: u64,
    /// Most bytes of deferred requests of all connections. Beyond it, pulls that would have to wait are refused as
    /// busy.
    pub deferred_limit_bytes: u64,
    /// Most bytes on this lane that attempts of foreign hosts have staged and not committed.
    pub staged_limit_bytes: u64,
    /// Most bytes of cached key lists of one connection.
    pub key_list_limit_bytes: u64,
    /// The fault that is injected, if any.
    #[cfg(any(test, feature = "fault-injection"))]
    pub injected_fault: Option<InjectedFault>,
}

impl LaneConfig {
    /// Whether a fault is injected.
    #[cfg(any(test, feature = "fault-injection"))]
    pub(crate) fn injects(&self, fault: InjectedFault) -> bool {
        self.injected_fault == Some(fault)
    }

    /// Always false: no fault is injected without the feature.
    #[cfg(not(any(test, feature = "fault-injection")))]
    #[allow(clippy::unused_self, reason = "the same call with the feature and without")]
    pub(crate) fn injects(&self, _fault: InjectedFault) -> bool {
        false
    }
}

/// The jobs that are open on any lane of a process. The process uses it to know whether it may end, and which jobs to
/// end.
#[derive(Clone, Debug, Default)]
pub struct OpenJobs(Arc<Mutex<BTreeMap<JobId, OpenJobEntry>>>);

/// Number of lanes that have the job, and the time at which the first lane opened it.
#[derive(Debug)]
struct OpenJobEntry {
    lane_count: u32,
    since: Instant,
    is_session: bool,
}

impl OpenJobs {
    /// Numbers of all open jobs.
    pub fn list(&self) -> Vec<JobId> {
        self.lock().keys().copied().collect()
    }

    /// Numbers of the open sessions of the parameter service, which no worker saves.
    pub fn list_sessions(&self) -> Vec<JobId> {
        self.lock().iter().filter(|(_, open)| open.is_session).map(|(job, _)| *job).collect()
    }

    /// Numbers of the jobs that were opened before `time`.
    pub fn list_before(&self, time: Instant) -> Vec<JobId> {
        self.lock().iter().filter(|(_, open)| open.since < time).map(|(job, _)| *job).collect()
    }

    pub(crate) fn add(&self, job: JobId, is_session: bool) {
        let mut jobs = self.lock();
        jobs.entry(job)
            .or_insert_with(|| OpenJobEntry { lane_count: 0, since: Instant::now(), is_session })
            .lane_count += 1;
    }

    pub(crate) fn remove(&self, job: JobId) {
        let mut jobs = self.lock();
        if let Some(open) = jobs.get_mut(&job) {
            open.lane_count -= 1;
            if open.lane_count == 0 {
                jobs.remove(&job);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobId, OpenJobEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_were_open_before_a_time_are_those_of_an_earlier_master() {
        let jobs = OpenJobs::default();
        jobs.add(1, false);
        let after = Instant::now() + std::time::Duration::from_nanos(1);
        assert_eq!(jobs.list_before(after), [1]);
        let since = jobs.lock()[&1].since;
        assert!(jobs.list_before(since).is_empty());
        jobs.add(2, true);
        assert_eq!(jobs.list_sessions(), [2]);
    }
}
