//! The settings of a lane, and what the process around it sees of its jobs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use matrix::FunctionTable;
use rpc::message::{Base64Bytes, JobId};

use crate::broken::Broken;

/// Makes the functions of a job: those of the server and, besides, those of the modules that the job brings. The error says
/// which module is wrong, and how.
pub type ModuleLoader = fn(&FunctionTable, &[Base64Bytes]) -> Result<FunctionTable, String>;

/// Makes the functions of jobs that bring modules: once in a process, for all of its lanes and for jobs that bring the same.
#[derive(Clone, Debug)]
pub struct ModuleCache {
    load: ModuleLoader,
    tables: Arc<Mutex<Vec<CachedTable>>>,
}

/// The functions of some modules, while a job has them.
#[derive(Debug)]
struct CachedTable {
    modules: Vec<Base64Bytes>,
    table: Weak<FunctionTable>,
}

impl ModuleCache {
    /// None are made yet.
    pub fn new(of: ModuleLoader) -> Self {
        Self { load: of, tables: Arc::default() }
    }

    /// The functions of `clock_table`, which is that of the process, and of the modules. Waits while another lane makes some.
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

/// What a lane is told at its start.
#[derive(Clone, Debug)]
pub struct LaneConfig {
    /// Its number, from 0.
    pub lane: u16,
    /// Number of lanes of the process.
    pub lanes: u16,
    /// Another number at each start of the process.
    pub incarnation: u64,
    /// Most bytes of rows on this lane, kept copies included.
    pub memory_limit_bytes: u64,
    /// Most bytes of requests behind a held push of one connection before the lane stops reading it.
    pub window_bytes: u64,
    /// Most bytes of held requests of all connections; beyond it, pulls that would have to wait are sent away.
    pub held_limit_bytes: u64,
    /// Most bytes that attempts of foreign hosts have staged and not committed, on this lane.
    pub staged_limit_bytes: u64,
    /// Most bytes of key lists that are remembered for one connection.
    pub key_list_limit_bytes: u64,
    /// The rule that is taken out.
    #[cfg(feature = "broken")]
    pub broken: Option<Broken>,
}

impl LaneConfig {
    /// Whether a rule is taken out.
    #[cfg(feature = "broken")]
    pub(crate) fn lacks(&self, rule: Broken) -> bool {
        self.broken == Some(rule)
    }

    /// Whether a rule is taken out: never.
    #[cfg(not(feature = "broken"))]
    #[allow(clippy::unused_self, reason = "the same call with the feature and without")]
    pub(crate) fn lacks(&self, _rule: Broken) -> bool {
        false
    }
}

/// The jobs that are open on any lane of a process, for whoever has to know whether it may end, or has to end them.
#[derive(Clone, Debug, Default)]
pub struct OpenJobs(Arc<Mutex<BTreeMap<JobId, OpenJobEntry>>>);

/// How many lanes have a job, and when the first took it.
#[derive(Debug)]
struct OpenJobEntry {
    lane_count: u32,
    since: Instant,
}

impl OpenJobs {
    /// Their numbers.
    pub fn list(&self) -> Vec<JobId> {
        self.lock().keys().copied().collect()
    }

    /// Of those that were opened before a time.
    pub fn list_before(&self, time: Instant) -> Vec<JobId> {
        self.lock().iter().filter(|(_, open)| open.since < time).map(|(job, _)| *job).collect()
    }

    pub(crate) fn add(&self, job: JobId) {
        let mut jobs = self.lock();
        jobs.entry(job)
            .or_insert_with(|| OpenJobEntry { lane_count: 0, since: Instant::now() })
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
        jobs.add(1);
        let after = Instant::now() + std::time::Duration::from_nanos(1);
        assert_eq!(jobs.list_before(after), [1]);
        let since = jobs.lock()[&1].since;
        assert!(jobs.list_before(since).is_empty());
    }
}
