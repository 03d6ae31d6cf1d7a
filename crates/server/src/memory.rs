//! The memory of a lane: when it is counted, and what is refused because of it.

use matrix::MatrixSpec;
use rpc::message::{FaultKind, OpenJob};

use crate::job::Job;
use crate::refusal::Refusal;
use crate::state::LaneState;

/// Number of pushed elements after which the memory is counted again.
const RECOUNT_ELEMENTS: usize = 1 << 16;

/// The bytes of all jobs of a lane at the last count, and what was pushed since.
#[derive(Debug, Default)]
pub(crate) struct MemoryCount {
    bytes: u64,
    /// Elements pushed since the count.
    uncounted_elements: usize,
}

impl MemoryCount {
    /// Bytes of rows, row copies and modules at the last count.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Notes that elements were pushed.
    pub(crate) fn add_elements(&mut self, count: usize) {
        self.uncounted_elements += count;
    }

    pub(crate) fn uncounted_elements(&self) -> usize {
        self.uncounted_elements
    }
}

impl LaneState {
    /// Counts the bytes of all jobs.
    pub(crate) fn count_memory(&mut self) {
        let bytes = self.jobs.values().map(|job| job.bytes() * self.copies_of(&job.open_request)).sum();
        self.memory = MemoryCount { bytes, uncounted_elements: 0 };
    }

    /// Refuses a push when the rows exceed the memory limit. The rows are counted from time to time, so the bound is
    /// not exact.
    pub(crate) fn check_memory(&mut self, element_count: usize) -> Result<(), Refusal> {
        if self.memory.uncounted_elements() + element_count >= RECOUNT_ELEMENTS {
            self.count_memory();
        }
        let (used, limit) = (self.memory.bytes(), self.config.memory_limit_bytes);
        if used <= limit {
            return Ok(());
        }
        let of = |(id, job): (&u32, &Job)| format!("job {id}: {}", job.bytes());
        let parts: Vec<String> = self.jobs.iter().map(of).collect();
        let text = format!(
            "the rows on lane {} take {used} bytes ({}), and the lane's share of the memory limit of its server is \
             {limit}: use more servers or a larger --memory-limit",
            self.config.lane,
            parts.join(", ")
        );
        Err(Refusal::new(FaultKind::TooLarge, text))
    }

    /// How often a job takes its memory on this server: the standby of a lane of another server, which has as much of the
    /// job, is here too.
    pub(crate) fn copies_of(&self, open: &OpenJob) -> u64 {
        let replicates = self.recorder.as_ref().is_some_and(|recorder| !recorder.is_log());
        if replicates && open.standby.is_some() { 2 } else { 1 }
    }

    /// Refuses matrices whose dense partitions do not fit in the memory that is left. `modules` is the bytes of
    /// modules, `copies` how often all of it takes memory. The text of the refusal shows the sum.
    pub(crate) fn check_matrix_memory(
        &mut self,
        specs: &[&MatrixSpec],
        owned_partitions: &[&[u32]],
        modules: u64,
        copies: u64,
    ) -> Result<(), Refusal> {
        self.count_memory();
        let first: Vec<u64> = specs
            .iter()
            .zip(owned_partitions)
            .map(|(spec, owned_partitions)| spec.initial_size_bytes(owned_partitions))
            .collect();
        let sum = first.iter().fold(modules, |sum, bytes| sum.saturating_add(*bytes));
        let sum = sum.saturating_mul(copies);
        let used = self.memory.bytes().saturating_add(self.staged_bytes());
        let limit = self.config.memory_limit_bytes;
        if used.saturating_add(sum) <= limit {
            return Ok(());
        }
        let part = |(spec, bytes): (&&MatrixSpec, &u64)| format!("{} {bytes}", spec.name);
        let modules = (modules > 0).then(|| format!("modules {modules}"));
        let parts: Vec<String> = specs.iter().zip(&first).map(part).chain(modules).collect();
        let twice = if copies > 1 { " with their replicas" } else { "" };
        let text = format!(
            "its matrices take {} = {sum} bytes{twice} on lane {}, where {used} bytes are used; the limit is {limit}. \
             Use more servers, a larger memory limit, or sparse storage",
            parts.join(" + "),
            self.config.lane
        );
        Err(Refusal::new(FaultKind::TooLarge, text))
    }
}
