//! What happens to one job.

use std::time::Duration;

use math::random::{Purpose, RandomStream, stream};

/// Length of a wait limit in the scenarios with a silent task.
pub(crate) const WAIT_LIMIT: Duration = Duration::from_secs(20);

/// The misfortune of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfortune {
    None,
    /// The user stops the job at this time, in microseconds.
    Stop(u64),
    /// A worker fails when it handles its n-th message.
    WorkerFails {
        worker: u32,
        message: u32,
    },
    /// A member is lost at this time, in microseconds.
    MemberLost(u64),
    /// The n-th request to the parameters fails.
    ParametersFail(u32),
    /// A task does not report the end of this epoch.
    SilentTask {
        task: u32,
        epoch: u64,
    },
}

/// A job and what happens to it.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) workers: u32,
    pub(crate) tasks: u32,
    pub(crate) epochs: u64,
    /// Batches of each task in each epoch.
    pub(crate) batches: u64,
    /// Whether settings are open, so that the data are surveyed.
    pub(crate) survey: bool,
    /// Epochs without improvement after which training stops; 0: off.
    pub(crate) patience: u64,
    /// The loss of each epoch.
    pub(crate) losses: Vec<f64>,
    /// Whether training continues from an earlier model.
    pub(crate) resumed: bool,
    /// Steps between two checkpoints; 0: none.
    pub(crate) checkpoint_every: u64,
    /// The number of the checkpoint that cannot be written.
    pub(crate) failed_checkpoint: Option<u64>,
    /// Whether there is memory for snapshots.
    pub(crate) has_memory_for_snapshots: bool,
    /// Tasks that fail, each with the epoch and the batch.
    pub(crate) failures: Vec<(u64, u64, u32)>,
    pub(crate) misfortune: Misfortune,
}

impl Scenario {
    pub(crate) fn of(seed: u64) -> Self {
        let mut random = stream(seed, Purpose::Test, 0, 0);
        let workers = 1 + random.below(4) as u32;
        let tasks = 1 + random.below(8) as u32;
        let (epochs, batches) = (1 + random.below(5), 1 + random.below(10));
        let patience = if random.below(2) == 0 { 1 + random.below(2) } else { 0 };
        let losses = (0..epochs).map(|_| random.below(8) as f64).collect();
        let mut failures = Vec::new();
        if random.below(3) == 0 {
            for _ in 0..=random.below(3) {
                let task = random.below(u64::from(tasks)) as u32;
                if failures.iter().all(|(_, _, other)| *other != task) {
                    failures.push((random.below(epochs), 1 + random.below(batches), task));
                }
            }
            failures.sort_unstable();
        }
        let misfortune = Self::misfortune(&mut random, workers, tasks, epochs);
        let (survey, resumed) = (random.below(2) == 0, random.below(3) == 0);
        let checkpoint_every = random.below(3) * (1 + random.below(6));
        let failed_checkpoint = (random.below(4) == 0).then(|| 1 + random.below(3));
        let has_memory_for_snapshots = random.below(4) > 0;
        Self {
            seed,
            workers,
            tasks,
            epochs,
            batches,
            survey,
            patience,
            losses,
            resumed,
            checkpoint_every,
            failed_checkpoint,
            has_memory_for_snapshots,
            failures,
            misfortune,
        }
    }

    fn misfortune(random: &mut RandomStream, workers: u32, tasks: u32, epochs: u64) -> Misfortune {
        match random.below(10) {
            0..=1 => Misfortune::Stop(random.below(400_000)),
            2 => Misfortune::WorkerFails {
                worker: random.below(u64::from(workers)) as u32,
                message: random.below(4) as u32,
            },
            3 => Misfortune::MemberLost(random.below(400_000)),
            4 => Misfortune::ParametersFail(random.below(4) as u32),
            // A job with a single task waits for nobody.
            5 if tasks > 1 => Misfortune::SilentTask {
                task: random.below(u64::from(tasks)) as u32,
                epoch: random.below(epochs),
            },
            _ => Misfortune::None,
        }
    }

    /// Returns a description for people.
    pub(crate) fn summary(&self) -> String {
        format!("{self:?}")
    }

    /// The epoch after which training stops, and the epoch whose rows are the result, if nothing goes wrong.
    pub(crate) fn outcome(&self) -> (u64, u64) {
        let last = self.epochs - 1;
        if self.patience == 0 {
            return (last, last);
        }
        let mut best = 0;
        for epoch in 0..=last {
            if self.losses[epoch as usize] < self.losses[best as usize] {
                best = epoch;
            }
            if epoch - best >= self.patience {
                return (epoch, best);
            }
        }
        (last, best)
    }
}
