//! What one seed stands for: the settings of the master, its members, the quality of the network, and the injected
//! faults.

use std::time::Duration;

use master::Settings;
use math::random::RandomStream;

use crate::scenario::{one, random};

/// Times in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) settings: Settings,
    /// Seats, each of which processes of one kind fill one after another.
    pub(crate) seats: Vec<Seat>,
    pub(crate) longest_delay: u64,
    /// A connection breaks at one frame of this many; 0: never.
    pub(crate) frames_of_reset: u64,
    /// Whether frames travel as bytes.
    pub(crate) as_bytes: bool,
    /// Number of pauses of the master.
    pub(crate) master_pauses: u64,
    /// Number of pauses of members.
    pub(crate) member_pauses: u64,
    pub(crate) crashes: u64,
    /// Number of processes that pretend to be a live one.
    pub(crate) impostors: u64,
    pub(crate) leaves: u64,
    pub(crate) submissions: u64,
    pub(crate) cancels: u64,
    /// Maximum number of messages from a runner to each of its workers.
    pub(crate) asks: u64,
    pub(crate) longest_think: u64,
    /// Time up to which faults are injected. Afterwards no message is lost.
    pub(crate) disturbed_until: u64,
}

/// A place in the cluster that a process of this kind fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seat {
    Server,
    Worker,
}

impl Scenario {
    pub(crate) fn of(seed: u64) -> Self {
        let mut random = random(seed, 2);
        let r = &mut random;
        let servers = r.below(4) as usize;
        let workers = r.below(4) as usize;
        let settings = settings(r);
        let tenth_of_lease = settings.lease.as_micros() as u64 / 10;
        let mut seats = vec![Seat::Server; servers];
        seats.extend(vec![Seat::Worker; workers.max(usize::from(servers == 0))]);
        let calm = r.below(4) == 0;
        let some =
            |r: &mut RandomStream, most: u64| if calm || r.below(2) == 0 { 0 } else { r.below(most + 1) };
        Self {
            seed,
            settings,
            seats,
            longest_delay: one(r, &[100, 2_000, tenth_of_lease]),
            frames_of_reset: if calm { 0 } else { one(r, &[0, 200, 50, 15]) },
            as_bytes: r.below(4) == 0,
            master_pauses: some(r, 3),
            member_pauses: some(r, 5),
            crashes: some(r, 5),
            impostors: some(r, 2),
            leaves: some(r, 3),
            submissions: 1 + r.below(8),
            cancels: r.below(5),
            asks: one(r, &[1, 5, 40, 150]),
            longest_think: one(r, &[1_000, 50_000, 400_000]),
            disturbed_until: 2_000_000 + r.below(12_000_000),
        }
    }

    /// Describes the scenario for a reader of a failing seed.
    pub(crate) fn summary(&self) -> String {
        format!(
            "a master of {:?}, delays up to {} us, one reset in {} frames, {} crashes, {} + {} pauses, {} leaves, {} \
             impostors, {} jobs, {} cancels, lease {:?}, {:?} to reconnect, {} running, {} queued, {} unconfirmed",
            self.seats,
            self.longest_delay,
            self.frames_of_reset,
            self.crashes,
            self.master_pauses,
            self.member_pauses,
            self.leaves,
            self.impostors,
            self.submissions,
            self.cancels,
            self.settings.lease,
            self.settings.reconnect_limit,
            self.settings.running_job_limit,
            self.settings.queued_job_limit,
            self.settings.unconfirmed_limit
        )
    }
}

fn settings(random: &mut RandomStream) -> Settings {
    let heartbeat = one(random, &[100, 300, 500]);
    let lease = heartbeat * one(random, &[3, 6, 10]);
    Settings {
        heartbeat: Duration::from_millis(heartbeat),
        lease: Duration::from_millis(lease),
        reconnect_limit: Duration::from_millis(heartbeat * one(random, &[2, 4, 20])),
        running_job_limit: 1 + random.below(3) as usize,
        queued_job_limit: one(random, &[1, 2, 1000]),
        ended_job_limit: one(random, &[0, 2, 100]),
        unconfirmed_limit: one(random, &[8, 200, 4096]),
        member_limit: one(random, &[3, 4096, 4096]),
        ..Settings::default()
    }
}
