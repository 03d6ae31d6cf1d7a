//! What one seed stands for: a job, its window sizes, the quality of the network, and the injected faults.

use std::time::Duration;

use math::random::{Purpose, RandomStream, stream};
use matrix::{
    Axis, Consistency, ElementType, FunctionTable, Initializer, MatrixSpec, Partitioner, Placement, Prefetch,
    PushRule, Storage,
};
use rpc::layout::{JobLayout, LaneAddress, assign_partitions};
use rpc::message::Standby;

/// Number of counters in a partition: no job has more tasks, including those that join.
pub(crate) const TASK_LIMIT: u32 = 8;
pub(crate) const JOB: u32 = 3;

/// The faults of the members, besides delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disturbance {
    Nothing,
    /// A tool removes a slow task while it works.
    Remove,
    /// One more task joins while the others work.
    Join,
    /// A lane loses all of its state; it may come back empty.
    Crash,
    /// One task is paused for ever, under ASP.
    PausedForEver,
    /// Tasks die now and then, and another attempt of each continues.
    Restart,
}

/// A matrix of counters: every partition has one for each task.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    pub(crate) spec: MatrixSpec,
    /// Key, partition and task, in ascending order of key.
    pub(crate) cells: Vec<(u64, u32, u32)>,
    /// Of ten steps of a task, the number that push to the matrix.
    pub(crate) pushes_of_ten: u64,
}

/// Times in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) job: u32,
    pub(crate) lane_count: u16,
    pub(crate) task_count: u32,
    pub(crate) counters: Vec<Counters>,
    pub(crate) disturbance: Disturbance,
    /// Number of stretches of steps, which barriers separate.
    pub(crate) stretch_count: u64,
    pub(crate) steps_of_stretch: u64,
    pub(crate) longest_think: u64,
    /// Factor on the computing time of the slowest task.
    pub(crate) slowness: u64,
    pub(crate) longest_delay: u64,
    /// A connection breaks at one frame of this many; 0: never.
    pub(crate) frames_of_reset: u64,
    /// A lane gets messages a second time after one frame of this many; 0: never.
    pub(crate) frames_of_duplicate: u64,
    /// Whether members pause now and then.
    pub(crate) pauses: bool,
    /// Whether lanes pause now and then because another job on them does.
    pub(crate) is_disturbed: bool,
    /// Whether frames travel as bytes.
    pub(crate) as_bytes: bool,
    /// Whether an agent receives between its calls; a blocking one does not.
    pub(crate) listens: bool,
    pub(crate) agent_window: u64,
    pub(crate) lane_window: u64,
    pub(crate) deferred_limit: u64,
    pub(crate) key_list_limit: u64,
    pub(crate) wait_limit: Duration,
    /// Whether the job has a replica of each lane, and a server with two lanes is lost.
    pub(crate) replicas: bool,
}

pub(crate) fn random(seed: u64, what: u64) -> RandomStream {
    stream(seed, Purpose::Test, what, 0)
}

/// Returns a random element of a list.
pub(crate) fn one<T: Copy>(random: &mut RandomStream, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

impl Scenario {
    pub(crate) fn of(seed: u64) -> Self {
        use Disturbance::{Crash, Join, Nothing, PausedForEver, Remove, Restart};
        let mut axes = random(seed, 5);
        let mut random = random(seed, 0);
        let r = &mut random;
        let disturbance = one(
            r,
            &[
                Nothing,
                Nothing,
                Nothing,
                Nothing,
                Remove,
                Remove,
                Join,
                Join,
                Crash,
                PausedForEver,
                Restart,
                Restart,
            ],
        );
        let barriers = matches!(disturbance, Nothing | Remove | Join) && r.below(2) == 0;
        let frames_of_reset = one(r, &[0, 0, 400, 100, 30]);
        let matrices = 1 + r.below(4);
        Self {
            seed,
            job: JOB,
            lane_count: 1 + r.below(4) as u16,
            task_count: if disturbance == Nothing { 1 + r.below(5) as u32 } else { 2 + r.below(4) as u32 },
            counters: (0..matrices)
                .map(|i| Counters::any(r, i, disturbance == PausedForEver).perhaps_by_column(&mut axes))
                .collect(),
            disturbance,
            stretch_count: if barriers { 1 + r.below(4) } else { 1 },
            steps_of_stretch: 1 + r.below(if barriers { 5 } else { 14 }),
            longest_think: one(r, &[100, 5_000, 20_000]),
            slowness: one(r, if disturbance == Remove { &[10, 30, 100] } else { &[1, 1, 10, 30] }),
            longest_delay: one(r, &[100, 2_000, 30_000]),
            frames_of_reset,
            frames_of_duplicate: one(r, &[0, 0, 0, 100, 20]),
            pauses: r.below(3) == 0,
            is_disturbed: false,
            as_bytes: r.below(3) == 0,
            listens: r.below(2) == 0,
            agent_window: one(r, &[1, 500, 4_000, 1 << 20]),
            lane_window: one(r, &[1, 500, 4_000, 1 << 20]),
            deferred_limit: one(r, &[600, 1 << 20, 1 << 20]),
            key_list_limit: one(r, &[0, 600, 1 << 20]),
            wait_limit: Duration::from_secs(if disturbance == Crash { 20 } else { 300 }),
            replicas: false,
        }
        .perhaps_replicated()
    }

    /// Some of the seeds in which nothing else happens to lanes have replicas.
    fn perhaps_replicated(self) -> Self {
        let is_calm = matches!(self.disturbance, Disturbance::Nothing | Disturbance::Restart);
        let replicas = is_calm && self.lane_count > 1 && random(self.seed, 6).below(2) == 0;
        Self { replicas, ..self }
    }

    /// Some seeds have another job on the same lanes; it shares nothing else with this one.
    pub(crate) fn second(&self) -> Option<Self> {
        let mut random = random(self.seed, 4);
        if self.replicas || self.disturbance == Disturbance::Crash || random.below(3) > 0 {
            return None;
        }
        let other = (0..64)
            .map(|i| Self::of(!self.seed - i))
            .find(|other| other.disturbance != Disturbance::Crash)?;
        Some(Self {
            job: JOB + 1,
            lane_count: self.lane_count,
            lane_window: self.lane_window,
            deferred_limit: self.deferred_limit,
            key_list_limit: self.key_list_limit,
            pauses: false,
            is_disturbed: self.pauses,
            replicas: false,
            ..other
        })
    }

    /// Describes the scenario for a reader of a failing seed.
    pub(crate) fn summary(&self) -> String {
        let matrices: Vec<_> = self.counters.iter().map(|of| of.spec.consistency).collect();
        format!(
            "{} lanes, {} tasks, {matrices:?}, {:?}, {} stretches of {} steps, one reset in {} frames, one duplicate in {}, pauses: {}, replicas: {}",
            self.lane_count,
            self.task_count,
            self.disturbance,
            self.stretch_count,
            self.steps_of_stretch,
            self.frames_of_reset,
            self.frames_of_duplicate,
            self.pauses,
            self.replicas
        )
    }

    /// Whether messages arrive soon, and lanes grant requests as soon as they may.
    pub(crate) fn is_quiet(&self) -> bool {
        let calm =
            self.frames_of_reset == 0 && self.frames_of_duplicate == 0 && !self.pauses && !self.is_disturbed;
        let is_calm =
            calm && !self.replicas && matches!(self.disturbance, Disturbance::Nothing | Disturbance::Remove);
        is_calm && self.deferred_limit >= 1 << 20 && self.listens
    }

    pub(crate) fn layout(&self) -> JobLayout {
        let lane = |i: u16| LaneAddress {
            addresses: vec![format!("tcp:lane{i}:1")],
            lane: 0,
            server: server_name(usize::from(i)),
            standby: self.replicas.then(|| self.standby_of(i)),
        };
        let owners =
            |of: &Counters| assign_partitions(of.spec.partitioner.partition_count(), self.lane_count);
        JobLayout {
            job: self.job,
            task_count: self.task_count,
            wait_limit: self.wait_limit,
            window_bytes: self.agent_window,
            matrices: self.counters.iter().map(|of| of.spec.clone()).collect(),
            lanes: (0..self.lane_count).map(lane).collect(),
            owners: self.counters.iter().map(owners).collect(),
            home: (self.seed % u64::from(self.lane_count)) as u16,
            wire: Vec::new(),
            prefetch: self.prefetch(),
        }
    }

    fn standby_of(&self, lane: u16) -> Standby {
        let next = (lane + 1) % self.lane_count;
        let addresses = vec![format!("tcp:lane{next}:1")];
        let (primary, server) = (server_name(usize::from(lane)), server_name(usize::from(next)));
        Standby { primary, server, addresses, lane: 1 }
    }

    /// Drawn from a random stream of its own, so that the rest of the seed does not depend on it.
    pub(crate) fn prefetch(&self) -> Prefetch {
        one(&mut random(self.seed, 2), &[Prefetch::Off, Prefetch::Exact, Prefetch::Exact])
    }

    /// Whether all tasks bring numbers to this barrier, which it sums.
    pub(crate) fn sums_at(&self, generation: u64) -> bool {
        (self.seed + generation).is_multiple_of(2)
    }
}

/// The server of a lane.
pub(crate) fn server_name(lane: usize) -> String {
    format!("server-{lane}")
}

impl Counters {
    fn any(random: &mut RandomStream, i: u64, asp: bool) -> Self {
        let consistency = if asp {
            Consistency::Asp
        } else {
            match random.below(7) {
                0..3 => Consistency::Bsp,
                3 => Consistency::Ssp { staleness: 0 },
                4 => Consistency::Ssp { staleness: 1 + random.below(2) },
                5 => Consistency::Ssp { staleness: 3 + random.below(6) },
                _ => Consistency::Asp,
            }
        };
        let partition_count = 1 + random.below(8) as u32;
        let element = one(random, &[ElementType::F32, ElementType::F64, ElementType::I64]);
        let pushes_of_ten = one(random, &[10, 10, 7, 1, 0]);
        Self::new(i, consistency, partition_count, element, random.below(2) == 0, pushes_of_ten)
    }

    pub(crate) fn new(
        i: u64,
        consistency: Consistency,
        partition_count: u32,
        element: ElementType,
        dense: bool,
        pushes_of_ten: u64,
    ) -> Self {
        let width = u64::from(TASK_LIMIT);
        let spec = MatrixSpec {
            name: format!("m{i}"),
            element,
            rows: if dense { u64::from(partition_count) * width } else { 1 << 40 },
            columns: 1,
            axis: Axis::Row,
            storage: if dense { Storage::Dense } else { Storage::Sparse },
            partitioner: if dense {
                Partitioner::Range { partition_count }
            } else {
                Partitioner::Hash { partition_count }
            },
            initializer: Initializer::Zero,
            rule: PushRule::Add,
            consistency,
            seed: 1,
        };
        let placement = spec.placement(&FunctionTable::builtin()).expect("a good spec");
        Self { cells: cells(&placement, partition_count), spec, pushes_of_ten }
    }

    /// Turns some of the dense matrices into columns of one row, on which functions work.
    fn perhaps_by_column(mut self, random: &mut RandomStream) -> Self {
        if random.below(2) == 0 && self.spec.storage == Storage::Dense {
            let columns = self.spec.rows;
            self.spec = MatrixSpec { rows: 1, columns, axis: Axis::Column, ..self.spec };
        }
        self
    }
}

/// The first keys in each partition, one for each task.
fn cells(placement: &Placement, partition_count: u32) -> Vec<(u64, u32, u32)> {
    let mut counts = vec![0; partition_count as usize];
    let mut cells = Vec::new();
    let mut key = 0;
    while cells.len() < (partition_count * TASK_LIMIT) as usize {
        let partition = placement.partition_of(key);
        if counts[partition] < TASK_LIMIT {
            cells.push((key, partition as u32, counts[partition]));
            counts[partition] += 1;
        }
        key += 1;
    }
    cells
}
