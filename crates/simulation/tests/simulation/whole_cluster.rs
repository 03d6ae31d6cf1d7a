//! The whole cluster under one clock and one seed: a master that places jobs on the members that it considers alive,
//! servers with their lanes, workers with the agents of their tasks, and runners between them. A process that pauses or
//! dies does so for the master and for its peers. A process whose lease has expired works on until it learns of that.
//!
//! [`crate::control`] simulates the messages of the master and [`crate::cluster`] those of the tasks, each with its
//! checker. This module checks what lies between them. A job begins on the members that the master names. It ends when
//! its tasks do, or soon after one of its members is lost. It leaves nothing behind, neither state on the servers,
//! which serve the next job, nor tasks on the workers that wait for a lost server.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use rpc::Message;
use rpc::message::{CloseJob, JobId};

use crate::checker;
use crate::cluster::{Cluster, Lane, TOOL, time};
use crate::control::world::{ClusterEvent, World};
use crate::control::{self, Process};
use crate::history::TaskEvent;
use crate::scenario::{Disturbance, Scenario};
use crate::schedule::Event;
use crate::task::Task;

/// Longest wait of a task for other tasks.
const WAIT_LIMIT: Duration = Duration::from_secs(20);
/// A task that is not paused ends within this time after its job, in microseconds: it learns of the end and makes one
/// more call. The limit is much shorter than the wait for a lost server.
const END_LIMIT: u64 = 3_000_000;

/// Counts of what happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    /// Jobs whose tasks have finished their work.
    pub(crate) done: u64,
    /// Jobs that ended while their tasks worked.
    pub(crate) cut: u64,
    /// Lost servers and workers of running jobs.
    pub(crate) lost_servers: u64,
    pub(crate) lost_workers: u64,
    /// Jobs that ended because the lease of a live member had expired.
    pub(crate) forgotten: u64,
    /// Servers of a job that had served another one before.
    pub(crate) served_again: u64,
    /// Tasks that waited for a lost server when their job ended.
    pub(crate) woken: u64,
    pub(crate) pulls: u64,
}

impl Facts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.done += other.done;
        self.cut += other.cut;
        self.lost_servers += other.lost_servers;
        self.lost_workers += other.lost_workers;
        self.forgotten += other.forgotten;
        self.served_again += other.served_again;
        self.woken += other.woken;
        self.pulls += other.pulls;
    }

    /// Whether every count is above zero.
    pub(crate) fn is_whole(self) -> bool {
        let Self { done, cut, lost_servers, lost_workers, forgotten, served_again, woken, pulls } = self;
        let counts = [done, cut, lost_servers, lost_workers, forgotten, served_again, woken, pulls];
        counts.iter().all(|count| *count > 0)
    }
}

/// A fault that is injected into one member or into all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InjectedFault {
    Lane(server::InjectedFault),
    Master(master::InjectedFault),
    /// A job that ends is closed on the first of its servers only.
    ClosesTheFirstOnly,
    /// Workers ignore the end of a job: its tasks wait until their wait limit.
    TasksOutliveTheirJob,
}

/// A running job and its tasks.
#[derive(Debug)]
struct RunningJob {
    job: JobId,
    cluster: Cluster,
    /// Servers per lane, and workers per task.
    servers: Vec<Process>,
    workers: Vec<Process>,
    /// Whether the runner knows that the tasks have ended.
    is_told: bool,
    /// Time at which the runner ended and the servers closed the job.
    closed_at: Option<u64>,
}

#[derive(Debug)]
struct WholeCluster {
    world: World,
    injected_fault: Option<InjectedFault>,
    work: Option<RunningJob>,
    /// Jobs that begin when the running one is over.
    waiting: VecDeque<(JobId, Vec<Process>, Vec<Process>)>,
    /// Lanes of servers that no job uses.
    lanes: BTreeMap<Process, Lane>,
    faults: Vec<String>,
    facts: Facts,
}

/// The scenario of the master alone for this seed, but with one running job at a time.
pub(crate) fn scenario(seed: u64) -> control::Scenario {
    let mut scenario = control::Scenario::of(seed);
    scenario.settings.running_job_limit = 1;
    scenario.submissions += 2;
    scenario
}

/// Returns the faults of a run, and the counts of what happened.
pub(crate) fn run(seed: u64, injected_fault: Option<InjectedFault>) -> (Vec<String>, Facts) {
    let scenario = scenario(seed);
    let of_master = if let Some(InjectedFault::Master(rule)) = injected_fault { Some(rule) } else { None };
    let mut world = World::new(scenario.clone(), of_master);
    world.deeds = Some(Vec::new());
    let mut joined = WholeCluster {
        world,
        injected_fault,
        work: None,
        waiting: VecDeque::new(),
        lanes: BTreeMap::new(),
        faults: Vec::new(),
        facts: Facts::default(),
    };
    while joined.step() {}
    joined.end();
    let (mut faults, _) = control::check(&scenario, &joined.world.history);
    faults.append(&mut joined.faults);
    (faults, joined.facts)
}

impl WholeCluster {
    /// Handles the event that comes first in either simulation. Returns false after the last one.
    fn step(&mut self) -> bool {
        let of_world = self.world.schedule.next_time().unwrap_or(u64::MAX);
        match &mut self.work {
            Some(work) if work.cluster.schedule.next_time().is_some_and(|next| next < of_world) => {
                let goes_on = work.cluster.step();
                self.world.now = self.world.now.max(work.cluster.now);
                if !goes_on {
                    let text = work.cluster.history.stuck.clone().unwrap_or_default();
                    self.faults.push(format!("job {} is stuck: {text}", work.job));
                    return false;
                }
            }
            _ if of_world == u64::MAX => return false,
            _ => {
                if !self.world.step() {
                    return false;
                }
                for deed in std::mem::take(self.world.deeds.as_mut().expect("somebody listens")) {
                    self.happens(deed);
                }
            }
        }
        self.perhaps_finish();
        true
    }

    fn happens(&mut self, deed: ClusterEvent) {
        let now = self.world.now;
        if let Some(work) = &mut self.work {
            work.cluster.now = now;
        }
        match deed {
            ClusterEvent::Started { job, servers, workers } => {
                self.waiting.push_back((job, servers, workers));
            }
            ClusterEvent::Ended { job } => {
                self.waiting.retain(|(other, ..)| *other != job);
                if self.work.as_ref().is_some_and(|work| work.job == job) {
                    self.close();
                }
            }
            ClusterEvent::Died { process } => self.dies(process),
            ClusterEvent::Stands { process, until } => self.stands(process, until),
        }
    }

    /// Begins the next job if none is running.
    fn perhaps_begin(&mut self) {
        while self.work.is_none()
            && let Some((job, servers, workers)) = self.waiting.pop_front()
        {
            let lives = |process: &Process| self.world.processes[*process].lives();
            if servers.iter().chain(&workers).all(lives) {
                self.begin(job, servers, workers);
            } else {
                // The driver that opens the job does not reach all members.
                self.world.work_is_over(job, false);
            }
        }
    }

    fn begin(&mut self, job: JobId, servers: Vec<Process>, workers: Vec<Process>) {
        let of_seed = Scenario::of(self.world.scenario.seed.wrapping_mul(1_000) + u64::from(job));
        let scenario = Scenario {
            job,
            lane_count: servers.len() as u16,
            task_count: workers.len() as u32,
            disturbance: Disturbance::Nothing,
            pauses: false,
            is_disturbed: true,
            wait_limit: WAIT_LIMIT,
            replicas: false,
            ..of_seed
        };
        let rule = if let Some(InjectedFault::Lane(rule)) = self.injected_fault { Some(rule) } else { None };
        let lanes = servers.iter().zip(0u16..).map(|(process, lane)| {
            let before = self.lanes.remove(process);
            self.facts.served_again += u64::from(before.is_some());
            before.unwrap_or_else(|| Lane::new(&scenario, lane, 1, rule))
        });
        let lanes: Vec<Lane> = lanes.collect();
        let cluster = Cluster::beginning_at(self.world.now, scenario, lanes, rule, None);
        let members: Vec<Process> = servers.iter().chain(&workers).copied().collect();
        self.work = Some(RunningJob { job, cluster, servers, workers, is_told: false, closed_at: None });
        for process in members {
            let until = self.world.processes[process].stands_until;
            if until > self.world.now {
                self.stands(process, until);
            }
        }
    }

    /// The runner has ended: live servers close the job, and paused ones close it when they resume.
    fn close(&mut self) {
        let Some(work) = &mut self.work else { return };
        work.closed_at = Some(self.world.now);
        let (job, request) = (work.job, 9);
        if work.cluster.tasks.iter().any(Task::is_alive) {
            self.facts.cut += 1;
            let believed = self.world.living.iter().map(|seen| self.world.registered[&seen.id]);
            let believed: BTreeSet<Process> = believed.collect();
            let is_forgotten =
                |process: &Process| self.world.processes[*process].lives() && !believed.contains(process);
            let forgotten = work.servers.iter().chain(&work.workers).any(is_forgotten);
            self.facts.forgotten += u64::from(forgotten);
            work.cluster.note(0, TaskEvent::Cut);
        }
        for task in 0..work.cluster.tasks.len() {
            let delay = work.cluster.delay();
            if self.injected_fault != Some(InjectedFault::TasksOutliveTheirJob) {
                work.cluster.schedule.put(self.world.now + delay, Event::EndOfJob { task });
            }
        }
        let first_only = self.injected_fault == Some(InjectedFault::ClosesTheFirstOnly);
        for lane in 0..if first_only { 1 } else { work.servers.len() } {
            let is_there = work.cluster.lanes[lane].state.is_some();
            let close = CloseJob { request, job, reason: "the job is over".into() };
            let answers = work.cluster.tool_says(lane, Message::CloseJob(close));
            if is_there && !matches!(answers[..], [Message::Done(_)]) {
                self.faults.push(format!("lane {lane} answers {answers:?} to the end of job {job}"));
            }
        }
    }

    fn dies(&mut self, process: Process) {
        self.lanes.remove(&process);
        let Some(work) = &mut self.work else { return };
        if let Some(lane) = work.servers.iter().position(|server| *server == process) {
            self.facts.lost_servers += 1;
            work.cluster.crash(lane);
        }
        if let Some(task) = work.workers.iter().position(|worker| *worker == process)
            && work.cluster.tasks[task].is_alive()
        {
            self.facts.lost_workers += 1;
            work.cluster.note(0, TaskEvent::Cut);
            work.cluster.kill_task(task);
        }
    }

    fn stands(&mut self, process: Process, until: u64) {
        if let Some(lane) = self.lanes.get_mut(&process) {
            lane.stands_until = until;
        }
        let Some(work) = &mut self.work else { return };
        if let Some(lane) = work.servers.iter().position(|server| *server == process) {
            work.cluster.lanes[lane].stands_until = until;
            work.cluster.schedule.put(until, Event::ResumeLane { lane });
        }
        if let Some(task) = work.workers.iter().position(|worker| *worker == process) {
            work.cluster.tasks[task].stands_until = until;
            work.cluster.schedule.put(until, Event::ResumeTask { task });
        }
    }

    /// When all tasks of a job have ended, its runner learns of it. When the runner has ended too, its servers are
    /// free.
    fn perhaps_finish(&mut self) {
        let is_over = |work: &RunningJob| !work.cluster.tasks.iter().any(Task::is_alive);
        if let Some(work) = self.work.as_mut().filter(|work| is_over(work)) {
            if !work.is_told && work.closed_at.is_none() {
                work.is_told = true;
                if work.cluster.lanes.iter().all(|lane| lane.state.is_some()) {
                    work.cluster.end();
                }
                let failed = |entry: &crate::history::Entry| {
                    matches!(entry.what, TaskEvent::Failed { .. } | TaskEvent::Cut | TaskEvent::Crashed)
                };
                let is_well = !work.cluster.history.entries.iter().any(failed);
                self.facts.done += u64::from(is_well);
                self.world.work_is_over(work.job, is_well);
            }
            if work.closed_at.is_some() {
                self.finish();
            }
        }
        self.perhaps_begin();
    }

    fn finish(&mut self) {
        let Some(mut work) = self.work.take() else { return };
        self.facts.woken += work.cluster.woken_count;
        let stood = work.cluster.tasks.iter().map(|task| task.stands_until).max().unwrap_or(0);
        let ended = work.closed_at.unwrap_or(self.world.now);
        if self.world.now > ended.max(stood) + END_LIMIT {
            let late = (self.world.now - ended) / 1_000;
            self.faults.push(format!("the last task of job {} ended {late} ms after its job", work.job));
        }
        let (found, reached) = checker::check(&work.cluster.scenario, &work.cluster.history);
        self.facts.pulls += reached.pulls;
        self.faults.extend(found.into_iter().map(|text| format!("job {}: {text}", work.job)));
        for (process, mut lane) in work.servers.into_iter().zip(std::mem::take(&mut work.cluster.lanes)) {
            let Some(state) = &mut lane.state else { continue };
            state.on_closed(time(self.world.now), TOOL - u64::from(work.job), &mut Vec::new());
            for (at, connection) in work.cluster.connections.iter().enumerate() {
                if connection.is_served {
                    // The effects for closed connections are not needed.
                    state.on_closed(time(self.world.now), work.cluster.number(at), &mut Vec::new());
                }
            }
            // No other job is running, so no state may be left.
            if !state.lane().is_empty() {
                let text: String = format!("{state:?}").chars().take(1_000).collect();
                self.faults.push(format!("job {} has left something on process {process}: {text}", work.job));
            }
            self.lanes.insert(process, lane);
        }
    }

    fn end(&mut self) {
        if let Some(work) = &self.work {
            self.faults.push(format!("job {} is at work when all have left", work.job));
        }
    }
}
