//! Checks a history of the master. The checker knows the input and output of the master, and nothing of its state.
//!
//! Members: a name is unique among the live members, and a number is never given twice. A member that sends in time
//! stays alive; one that is silent for the lease, or does not reconnect in time, is removed. Messages to and from a member arrive once, in order, and
//! completely as long as the member is alive. Jobs: see `check_job` and below.

mod jobs;

use std::collections::{BTreeMap, BTreeSet};

use control::JobState;
use rpc::message::JobId;

use super::history::{ControlEvent, Entry, Facts, History, MemberMessage, MemberView, Process};
use super::scenario::Scenario;

/// What the checker knows of a member, alive or not.
#[derive(Debug, Default)]
struct MemberRecord {
    process: Process,
    /// Times in microseconds: when the master last read a message of the member, and when that message had arrived.
    read_at: u64,
    came_at: u64,
    /// When the master learned that its connection has ended; none while it is connected.
    disconnected_at: Option<u64>,
    leaves: bool,
    is_dead: bool,
    said: Vec<MemberMessage>,
    told: usize,
    confirmed: u64,
    /// The member got more messages than it may leave unacknowledged.
    is_deaf: bool,
    /// Per job: number of messages from the member to the runner, sent and received.
    spoke: BTreeMap<JobId, u64>,
    heard: BTreeMap<JobId, u64>,
}

#[derive(Debug)]
struct Job {
    servers: u32,
    workers: u32,
    state: Option<JobState>,
    members: Vec<u32>,
    is_started: bool,
    was_queued_long: bool,
    /// A client cancelled the job before its end.
    is_cancelled: bool,
    is_withdrawn: bool,
    told_cancelled: bool,
    /// Members whose loss the master must still report to the runner.
    mourns: BTreeSet<u32>,
    ended: Option<bool>,
}

struct Checker<'a> {
    scenario: &'a Scenario,
    lease: u64,
    reconnect_limit: u64,
    heartbeat: u64,
    known: BTreeMap<u32, MemberRecord>,
    living: Vec<MemberView>,
    last_id: u32,
    woke_at: Option<u64>,
    jobs: BTreeMap<JobId, Job>,
    faults: Vec<String>,
    facts: Facts,
    now: u64,
}

/// Returns every fault, and the counts of what happened. No fault means that the history is correct.
pub(crate) fn check(scenario: &Scenario, history: &History) -> (Vec<String>, Facts) {
    let mut checker = Checker {
        scenario,
        lease: scenario.settings.lease.as_micros() as u64,
        reconnect_limit: scenario.settings.reconnect_limit.as_micros() as u64,
        heartbeat: scenario.settings.heartbeat.as_micros() as u64,
        known: BTreeMap::new(),
        living: Vec::new(),
        last_id: 0,
        woke_at: None,
        jobs: BTreeMap::new(),
        faults: history.seen.clone(),
        facts: Facts::default(),
        now: 0,
    };
    for entry in &history.entries {
        checker.take(entry);
    }
    checker.check_end();
    (checker.faults, checker.facts)
}

impl Checker<'_> {
    fn fault(&mut self, mut text: String) {
        text.insert_str(0, &format!("at {} us: ", self.now));
        self.faults.push(text);
    }

    fn take(&mut self, entry: &Entry) {
        self.now = entry.time;
        match &entry.what {
            ControlEvent::Registered { id, process } => self.registered(*id, *process),
            ControlEvent::Read { id, arrived } => {
                self.check_lease(*id);
                let now = self.now;
                let known = self.of(*id);
                (known.read_at, known.came_at) = (now, *arrived);
            }
            ControlEvent::Leaves { id } => self.of(*id).leaves = true,
            ControlEvent::Confirmed { id, count } => {
                let known = self.of(*id);
                known.confirmed = known.confirmed.max(*count);
            }
            ControlEvent::Living { members, unread } => self.lives(members, unread),
            ControlEvent::Woke => {
                self.facts.wakes += 1;
                self.woke_at = Some(self.now);
            }
            ControlEvent::Said { id, word } => self.said(*id, *word),
            ControlEvent::Told { process, id, word } => self.told(*process, *id, *word),
            ControlEvent::Spoke { id, job, number } => {
                let expected = self.of(*id).spoke.entry(*job).or_default();
                assert_eq!(expected, number, "workers count what they say");
                *expected += 1;
            }
            ControlEvent::Heard { id, job, number } => self.heard(*id, *job, *number),
            ControlEvent::Submitted { job, servers, workers } => self.submitted(*job, *servers, *workers),
            ControlEvent::Cancelled { job, was_live } => self.cancelled(*job, *was_live),
            ControlEvent::Started { job, servers, workers } => self.started(*job, servers, workers),
            ControlEvent::ToldCancelled { job } => self.told_cancelled(*job),
            ControlEvent::ToldGone { job, id } => {
                let known = self.jobs.get_mut(job).is_some_and(|known| known.mourns.remove(id));
                if !known {
                    self.fault(format!("the runner of job {job} is told that {id} is gone, for no reason"));
                }
            }
            ControlEvent::ToldBack { job, id } => {
                self.facts.came_back += 1;
                if !self.jobs.get(job).is_some_and(|known| known.members.contains(id)) {
                    self.fault(format!(
                        "the runner of job {job} is told that {id} is back, which it has not"
                    ));
                }
            }
            ControlEvent::Ended { job, is_well } => {
                if let Some(known) = self.jobs.get_mut(job) {
                    known.ended = Some(*is_well);
                }
            }
            ControlEvent::Job { job, state } => self.check_job(*job, *state),
            ControlEvent::Forgotten { job, was_over } => self.forgotten(*job, *was_over),
            ControlEvent::Looked => self.check_all(),
            ControlEvent::Crashed => self.facts.crashes += 1,
            ControlEvent::Quiet { members } => self.check_quiet(members),
        }
    }

    fn of(&mut self, id: u32) -> &mut MemberRecord {
        self.known.entry(id).or_default()
    }

    fn registered(&mut self, id: u32, process: Process) {
        let now = self.now;
        let is_new = !self.known.contains_key(&id);
        if is_new && id <= self.last_id {
            self.fault(format!("number {id} is given again"));
        }
        self.last_id = self.last_id.max(id);
        let known = self.of(id);
        let before = std::mem::replace(&mut known.process, process);
        let is_dead = known.is_dead;
        (known.read_at, known.came_at, known.disconnected_at) = (now, now, None);
        self.facts.registrations += u64::from(is_new);
        if is_dead || !is_new && before != process {
            self.fault(format!("process {process} comes back as {id}, which is dead or process {before}"));
        }
    }

    /// The master has read a message of a live member within its lease. After a pause of the master the member gets one
    /// more heartbeat.
    fn check_lease(&mut self, id: u32) {
        let end = self.end_of(id);
        if self.now > end {
            self.fault(format!("member {id} is thought alive, its lease was over at {end} us"));
        }
    }

    fn end_of(&mut self, id: u32) -> u64 {
        let (lease, reconnect_limit) = (self.lease, self.reconnect_limit);
        let known = self.of(id);
        let lost_at = known.disconnected_at.map_or(u64::MAX, |time| time + reconnect_limit);
        let end = lost_at.min(known.read_at + lease);
        self.woke_at.map_or(end, |woke| end.max(woke + self.heartbeat))
    }

    fn lives(&mut self, members: &[MemberView], unread: &[(u32, Vec<u64>)]) {
        for (i, seen) in members.iter().enumerate() {
            if members[..i].iter().any(|other| other.name == seen.name) {
                self.fault(format!("two members are named {}", seen.name));
            }
            if self.living.iter().all(|other| other.id != seen.id) && !self.known.contains_key(&seen.id) {
                self.fault(format!("member {} has not registered", seen.id));
            }
        }
        let limit = self.scenario.settings.member_limit;
        if members.len() > limit {
            self.fault(format!("{} members live, the limit is {limit}", members.len()));
        }
        let now = self.now;
        for seen in members {
            let known = self.of(seen.id);
            known.disconnected_at = (!seen.is_connected).then(|| known.disconnected_at.unwrap_or(now));
        }
        let before = std::mem::replace(&mut self.living, members.to_vec());
        let mut alive: Vec<u32> = before.iter().map(|seen| seen.id).collect();
        for seen in &before {
            if members.iter().any(|other| other.id == seen.id) {
                continue;
            }
            let unread = unread.iter().find(|(id, _)| *id == seen.id).map_or(&[][..], |(_, times)| times);
            alive.retain(|id| *id != seen.id);
            let is_replaced = !seen.is_connected && members.iter().any(|other| other.name == seen.name);
            self.died(seen.id, unread, is_replaced, &alive);
        }
        // The master reports to a member that comes in this call none of the members that went before it.
    }

    /// The master may remove a member that leaves, acknowledges nothing, was silent for the lease, has not reconnected for
    /// the reconnect limit, or whose connection has ended and whose name a new process has. After a pause of the master, a member must have been
    /// silent or away for the time less one heartbeat.
    fn died(&mut self, id: u32, unread: &[u64], is_replaced: bool, others: &[u32]) {
        let (now, lease, heartbeat) = (self.now, self.lease, self.heartbeat);
        let reconnect_limit = self.reconnect_limit;
        self.facts.deaths += 1;
        let known = self.of(id);
        known.is_dead = true;
        let is_deaf = known.is_deaf;
        let (leaves, read_at, mut last) = (known.leaves, known.read_at, known.came_at);
        let ends = unread.iter().chain(std::iter::once(&now));
        let silence = ends.map(|time| time.saturating_sub(std::mem::replace(&mut last, *time))).max();
        let is_silent = now >= read_at + lease && silence.is_some_and(|time| time >= lease - heartbeat);
        let is_lost = known.disconnected_at.is_some_and(|time| {
            let back_at = unread.iter().copied().find(|arrived| *arrived > time).unwrap_or(now);
            now >= time + reconnect_limit && back_at >= time + reconnect_limit - heartbeat
        });
        self.facts.deaf += u64::from(is_deaf && !leaves && !is_silent);
        self.facts.replaced += u64::from(is_replaced);
        self.facts.not_back += u64::from(is_lost && !leaves && !is_silent);
        if !leaves && !is_deaf && !is_silent && !is_lost && !is_replaced {
            self.fault(format!(
                "member {id} is taken for dead, it was read {} us ago and {unread:?} wait to be read; its lease is {lease} us",
                now - read_at
            ));
        }
        for other in others {
            self.say(*other, MemberMessage::Gone { id });
        }
        for job in self.jobs.values_mut() {
            if job.state == Some(JobState::Running) && job.ended.is_none() && job.members.contains(&id) {
                job.mourns.insert(id);
            }
        }
    }

    fn said(&mut self, id: u32, word: MemberMessage) {
        self.facts.words += 1;
        self.say(id, word);
    }

    fn say(&mut self, id: u32, word: MemberMessage) {
        let limit = self.scenario.settings.unconfirmed_limit as u64;
        let known = self.of(id);
        known.is_deaf |= known.said.len() as u64 >= known.confirmed + limit;
        known.said.push(word);
    }

    /// A member receives what was sent to it, in this order.
    fn told(&mut self, process: Process, id: u32, word: MemberMessage) {
        let known = self.of(id);
        let expected = known.said.get(known.told).copied();
        known.told += 1;
        let owner = known.process;
        if expected != Some(word) || owner != process {
            self.fault(format!("process {process} hears {word:?} as member {id}, expected {expected:?}"));
        }
    }

    fn heard(&mut self, id: u32, job: JobId, number: u64) {
        self.facts.answers += 1;
        let known = self.of(id);
        let spoke = known.spoke.get(&job).copied().unwrap_or(0);
        let expected = known.heard.entry(job).or_default();
        let text = (*expected != number || number >= spoke).then(|| {
            format!("the runner of job {job} hears {number} of {id}, expected {expected} of {spoke}")
        });
        *expected = number + 1;
        self.faults.extend(text);
    }

    /// All messages to and from live members have arrived.
    fn check_quiet(&mut self, members: &[(u32, Process)]) {
        let runs = |job: &JobId| self.jobs.get(job).is_some_and(|job| job.state == Some(JobState::Running));
        let mut found = Vec::new();
        for seen in &self.living {
            let Some(known) = self.known.get(&seen.id) else { continue };
            if !members.contains(&(seen.id, known.process)) {
                found.push(format!("member {} is thought alive, and does not know it", seen.id));
                continue;
            }
            if known.told < known.said.len() {
                let missing = &known.said[known.told..];
                found.push(format!("member {} was never told {missing:?}", seen.id));
            }
            for (job, count) in known.spoke.iter().filter(|(job, _)| runs(job)) {
                let heard = known.heard.get(job).copied().unwrap_or(0);
                if heard < *count {
                    found.push(format!(
                        "the runner of job {job} heard {heard} of {count} words of {}",
                        seen.id
                    ));
                }
            }
        }
        for (id, process) in members {
            if self.living.iter().all(|seen| seen.id != *id) {
                found.push(format!("process {process} takes itself for member {id}, which does not live"));
            }
        }
        for text in found {
            self.fault(text);
        }
    }
}
