//! Clients and runners. A runner sends questions to its workers, a few at a time. It ends when it has all answers, or
//! soon after a member is lost or the job is cancelled.

use std::collections::BTreeMap;

use master::runner::{JobEvent as Told, JobStart, RunnerCommand, RunnerReport};
use rpc::message::JobId;
use serde_json::{Value, json};

use super::client_port::JobRequest;
use super::history::{ControlEvent, MemberMessage};
use super::world::{ClusterEvent, Event, World};
use super::{bytes, numbers};

/// One job of this many fails by itself.
const FAILS: u64 = 8;

#[derive(Debug)]
pub(crate) struct Runner {
    workers: Vec<u32>,
    /// Number of questions that are not sent yet, of all workers together.
    left: u64,
    /// Per worker: number of questions that were sent.
    asked: BTreeMap<u32, u64>,
    /// Number of answers that were requested, and number that arrived.
    expected: u64,
    heard: u64,
    fails: bool,
    /// Whether the tasks of the job are working.
    works: bool,
    /// Why the job has to end early.
    problem: Option<&'static str>,
    pub(crate) is_over: bool,
}

impl World {
    pub(crate) fn submit(&mut self) {
        if self.master_stands_until > self.now {
            return self.schedule.put(self.master_stands_until, Event::Submit);
        }
        let least = u64::from(self.deeds.is_some());
        let mut some = || (least + self.random.below(3 - least)) as u32;
        let wish = JobRequest { servers: some(), workers: some() };
        let job = self.door.submit(wish);
        self.submitted.extend(job);
        self.note(ControlEvent::Submitted { job, servers: wish.servers, workers: wish.workers });
        self.master_did(Vec::new(), false);
    }

    pub(crate) fn cancel_any(&mut self) {
        if self.master_stands_until > self.now {
            return self.schedule.put(self.master_stands_until, Event::Cancel);
        }
        if self.submitted.is_empty() {
            return;
        }
        let at = self.random.below(self.submitted.len() as u64) as usize;
        self.cancel(self.submitted[at]);
    }

    pub(crate) fn cancel_all(&mut self) {
        for job in self.submitted.clone() {
            self.cancel(job);
        }
    }

    fn cancel(&mut self, job: JobId) {
        let was_live = self.door.cancel(job);
        self.note(ControlEvent::Cancelled { job, was_live });
        self.master_did(Vec::new(), false);
    }

    /// Executes a command of the master to the process around it.
    pub(crate) fn run_order(&mut self, order: RunnerCommand) {
        match order {
            RunnerCommand::StartJob(start) => self.start_job(start),
            RunnerCommand::ToRunner { job, event } => self.tell_runner(job, event),
        }
    }

    fn start_job(&mut self, start: JobStart) {
        let JobStart { job, servers, workers, .. } = start;
        let ids = |members: &[rpc::message::Member]| members.iter().map(|member| member.id).collect();
        let (servers, workers): (Vec<u32>, Vec<u32>) = (ids(&servers), ids(&workers));
        self.note(ControlEvent::Started { job, servers: servers.clone(), workers: workers.clone() });
        let left = if workers.is_empty() { 0 } else { self.random.below(self.scenario.asks + 1) };
        let fails = self.random.below(FAILS) == 0;
        let (asked, problem) = (BTreeMap::new(), None);
        let works = self.deeds.is_some();
        let processes = |ids: &[u32]| ids.iter().map(|id| self.registered[id]).collect();
        self.tell(ClusterEvent::Started { job, servers: processes(&servers), workers: processes(&workers) });
        let (expected, heard, is_over) = (0, 0, false);
        let runner = Runner { workers, left, asked, expected, heard, fails, works, problem, is_over };
        if self.runners.insert(job, runner).is_some() {
            self.history.seen.push(format!("job {job} was started twice"));
        }
        let think = self.think();
        self.schedule.put(self.now + think, Event::RunnerTime { job });
    }

    fn tell_runner(&mut self, job: JobId, event: Told) {
        let Some(runner) = self.runners.get_mut(&job).filter(|runner| !runner.is_over) else {
            return self.history.seen.push(format!("job {job} has no runner, and it was told {event:?}"));
        };
        let what = match event {
            Told::FromTask { worker, body } => {
                runner.heard += 1;
                let number = numbers(&body).first().copied().unwrap_or(u64::MAX);
                ControlEvent::Heard { id: worker, job, number }
            }
            Told::MemberLost { member, .. } => {
                runner.problem = Some("a member is gone");
                ControlEvent::ToldGone { job, id: member.id }
            }
            Told::MemberDisconnected { .. } => return,
            Told::ServerTakesOver { .. } => {
                return self
                    .history
                    .seen
                    .push("a job without replicas was told that a replica takes over".into());
            }
            Told::Members { .. } => return self.history.seen.push("a runner got members".into()),
            Told::MemberReconnected { member, .. } => ControlEvent::ToldBack { job, id: member.id },
            Told::Cancelled => {
                runner.problem = Some("cancelled");
                ControlEvent::ToldCancelled { job }
            }
            Told::CheckpointRequested => {
                return self.history.seen.push("a runner was asked for a checkpoint".into());
            }
            Told::Session { .. } => return self.history.seen.push("a runner was asked for a session".into()),
            Told::Timeout => return self.history.seen.push("a runner was told nothing".into()),
        };
        self.note(what);
        let think = self.think();
        self.schedule.put(self.now + think, Event::RunnerTime { job });
    }

    pub(crate) fn runner_time(&mut self, job: JobId) {
        if self.master_stands_until > self.now {
            return self.schedule.put(self.master_stands_until, Event::RunnerTime { job });
        }
        let Some(runner) = self.runners.get_mut(&job).filter(|runner| !runner.is_over) else { return };
        if let Some(problem) = runner.problem {
            return self.end_job(job, Err(problem.to_owned()));
        }
        if runner.left > 0 {
            runner.left -= 1;
            return self.ask_a_worker(job);
        }
        if runner.heard >= runner.expected && !runner.works {
            let result = if runner.fails { Err("it did not work".to_owned()) } else { Ok(Value::Null) };
            self.end_job(job, result);
        }
    }

    /// The tasks of a job have ended.
    pub(crate) fn work_is_over(&mut self, job: JobId, is_well: bool) {
        let Some(runner) = self.runners.get_mut(&job) else { return };
        runner.works = false;
        runner.fails |= !is_well;
        self.schedule.put(self.now, Event::RunnerTime { job });
    }

    fn ask_a_worker(&mut self, job: JobId) {
        let (choice, answers) = (self.random.next_u64(), self.random.below(3));
        let Some(runner) = self.runners.get_mut(&job) else { return };
        let worker = runner.workers[(choice % runner.workers.len() as u64) as usize];
        let asked = runner.asked.entry(worker).or_default();
        let number = *asked;
        *asked += 1;
        runner.expected += answers;
        if self.living.iter().any(|seen| seen.id == worker) {
            self.note(ControlEvent::Said { id: worker, word: MemberMessage::ToTask { job, number } });
        }
        let body = bytes(&[number, answers]);
        let mut effects = Vec::new();
        self.door.runner_says(job, RunnerReport::ToTask { worker, body }, &mut effects);
        let progress = RunnerReport::Progress(json!({ "asked": number }));
        self.door.runner_says(job, progress, &mut effects);
        self.master_did(effects, true);
        let think = self.think();
        self.schedule.put(self.now + think, Event::RunnerTime { job });
    }

    fn end_job(&mut self, job: JobId, result: Result<Value, String>) {
        if let Some(runner) = self.runners.get_mut(&job) {
            runner.is_over = true;
        }
        self.note(ControlEvent::Ended { job, is_well: result.is_ok() });
        self.tell(ClusterEvent::Ended { job });
        let mut effects = Vec::new();
        self.door.runner_says(job, RunnerReport::Ended(result.map(Into::into)), &mut effects);
        self.master_did(effects, false);
    }
}
