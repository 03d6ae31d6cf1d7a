//! The surroundings of a driver: virtual time, the links to its workers, the parameters.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use driver::messages::{FromWorker, ToWorker};
use driver::progress::SilentProgress;
use driver::{
    Driver, DriverConfig, Effect, Error, Event, Incidents, JobDriver, ParameterPlace, ParametersRequest,
    RunEnd, SnapshotPurpose, WorkerInfo,
};
use job::raw::RawJob;
use job::{Exit, TrainJob};
use math::random::{Purpose, RandomStream, stream};
use rpc::message::{Member, MemberKind};
use serde_json::{Value, json};

use super::InjectedFault;
use super::scenario::{Misfortune, Scenario, WAIT_LIMIT};
use super::worker::{BarrierReason, Worker, WorkerAction};

/// Longest delay of a message, in microseconds.
const DELAY: u64 = 5_000;
/// Longest time of a step, in microseconds.
const STEP: u64 = 20_000;
/// Longest time of writing a file of a checkpoint, in microseconds.
const WRITE: u64 = 100_000;
/// Time between two looks of the driver at the clock, in microseconds.
const POLL: u64 = 50_000;
/// End of a run, in microseconds: no job of the scenarios takes so long.
const END: u64 = 120_000_000;
/// The text of the loss of a member.
pub(crate) const MEMBER_LOST: &str = "server-0 was lost";
/// The text of a failed request to the parameters.
pub(crate) const PARAMETERS_FAILED: &str = "the parameters failed";

/// Something that a checker can see.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a run is short")]
pub(crate) enum Seen {
    /// The driver has sent a message.
    Sent {
        worker: u32,
        message: ToWorker,
    },
    /// A message of a worker has reached the driver.
    Received(FromWorker),
    /// The user has asked the driver to stop.
    StopRequested,
    /// The loss of a member has reached the driver.
    MemberLost,
    /// A request to the parameters has failed.
    ParametersFailed,
    RowsRestored,
    /// A snapshot is taken for a checkpoint, if there is memory.
    SnapshotTaken {
        has_memory: bool,
    },
    /// A worker has written the rows as they were after this epoch.
    Saved {
        epoch: u64,
    },
    Closed,
    /// The job has ended with an error, or with whether it is complete.
    Ended(Result<bool, String>),
}

/// Everything that was seen, with its time in microseconds.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) seen: Vec<(u64, Seen)>,
    /// Workers that have received the end of the job.
    pub(crate) ended_workers: u32,
}

enum Planned {
    ToWorker {
        worker: u32,
        message: ToWorker,
    },
    ToDriver(u32, FromWorker),
    Step {
        worker: u32,
        task: u32,
    },
    /// Writing of a file ends.
    Written {
        worker: u32,
        message: FromWorker,
    },
    /// Whether there is memory for a snapshot.
    ParametersAnswer(Result<bool, Error>),
    Stop,
    MemberLost,
    Poll,
}

pub(crate) struct World {
    scenario: Scenario,
    injected_fault: Option<InjectedFault>,
    random: RandomStream,
    start: Instant,
    now: u64,
    driver: Driver,
    /// Whether the driver waits for an answer of the parameters; other events wait too.
    is_blocked: bool,
    waiting: VecDeque<Planned>,
    workers: Vec<Worker>,
    plan: BTreeMap<(u64, u64), Planned>,
    plan_count: u64,
    /// Arrival time of the last message of each worker and direction, because messages stay in order.
    last_arrival: BTreeMap<(u32, bool), u64>,
    request_count: u32,
    /// Epochs that are complete in the rows, and in their copy.
    rows: u64,
    copy: Option<u64>,
    /// The tasks that wait for the others.
    arrived: BTreeMap<u32, BarrierReason>,
    is_over: bool,
    history: History,
}

fn job_of(scenario: &Scenario) -> TrainJob {
    let mut set = json!({ "epochs": scenario.epochs, "early_stopping": scenario.patience });
    if !scenario.survey {
        set["optimizer"] = json!("adagrad");
        set["learning_rate"] = json!(0.1);
        set["standardize"] = json!(false);
        set["l2"] = json!(0);
    }
    let wait_limit = format!("{}", WAIT_LIMIT.as_secs());
    let every = match scenario.checkpoint_every {
        0 => "off".to_owned(),
        count => format!("{count}ticks"),
    };
    let spec = json!({
        "algorithm": "linear", "data": ["/data"], "model": "/model", "validate": ["/validation"], "set": set,
        "quiet": true, "wait_limit": wait_limit, "checkpoint_every": every,
    });
    let raw = RawJob::from_submitted(&spec).expect("the keys exist");
    TrainJob::check(&raw, &families::all()).expect("the values are in range")
}

impl World {
    pub(crate) fn new(scenario: Scenario, injected_fault: Option<InjectedFault>) -> Self {
        let start = Instant::now();
        let job = job_of(&scenario);
        let kind =
            MemberKind::Server { addresses: vec!["unix:/s".into()], lanes: 2, memory_limit_bytes: 1 << 30 };
        let server = Member { id: 9, name: "server-0".into(), incarnation: 1, kind, host: String::new() };
        let worker = |id| WorkerInfo { id, name: Some(format!("worker-{id}")), slots: 1 };
        let config = DriverConfig {
            threads: 1,
            job: 1,
            workers: (0..scenario.workers).map(worker).collect(),
            parameters: ParameterPlace::Servers(vec![server]),
            progress: Arc::new(SilentProgress),
            families: families::all(),
            run: 1,
            begun: None,
            record_times: BTreeMap::new(),
            move_count: 0,
            earlier_time: Duration::ZERO,
            incidents: Incidents::default(),
        };
        Self {
            random: stream(scenario.seed, Purpose::Test, 1, 0),
            driver: Driver::new(config, job, start).expect("the algorithm is known"),
            workers: (0..scenario.workers)
                .map(|number| Worker::new(number, injected_fault == Some(InjectedFault::EveryPlanIsAccepted)))
                .collect(),
            scenario,
            injected_fault,
            start,
            now: 0,
            is_blocked: false,
            waiting: VecDeque::new(),
            plan: BTreeMap::new(),
            plan_count: 0,
            last_arrival: BTreeMap::new(),
            request_count: 0,
            rows: 0,
            copy: None,
            arrived: BTreeMap::new(),
            is_over: false,
            history: History::default(),
        }
    }

    pub(crate) fn run(mut self) -> History {
        match self.scenario.misfortune {
            Misfortune::Stop(time) => self.plan_at(time, Planned::Stop),
            Misfortune::MemberLost(time) => self.plan_at(time, Planned::MemberLost),
            _ => {}
        }
        self.plan_at(POLL, Planned::Poll);
        let effects = self.driver.start();
        self.carry_out(effects);
        while let Some(((time, _), planned)) = self.plan.pop_first() {
            self.now = time;
            if time > END {
                break;
            }
            self.handle(planned);
        }
        self.history.ended_workers = self.workers.iter().filter(|worker| worker.has_ended).count() as u32;
        self.history
    }

    fn plan_at(&mut self, time: u64, planned: Planned) {
        self.plan_count += 1;
        self.plan.insert((time, self.plan_count), planned);
    }

    /// Plans the arrival of a message after those of the same worker and direction.
    fn plan_message(&mut self, worker: u32, is_to_driver: bool, planned: Planned) {
        let arrival = self.now + self.random.below(DELAY);
        let last = self.last_arrival.entry((worker, is_to_driver)).or_default();
        *last = arrival.max(*last);
        let time = *last;
        self.plan_at(time, planned);
    }

    fn note(&mut self, seen: Seen) {
        self.history.seen.push((self.now, seen));
    }

    fn handle(&mut self, planned: Planned) {
        let is_event = !matches!(
            planned,
            Planned::ToWorker { .. }
                | Planned::Step { .. }
                | Planned::Written { .. }
                | Planned::ParametersAnswer(_)
        );
        if is_event && self.is_blocked {
            return self.waiting.push_back(planned);
        }
        match planned {
            Planned::ToWorker { worker, message } => {
                let actions = self.workers[worker as usize].on_message(&self.scenario, message);
                self.act(worker, actions);
            }
            Planned::Step { worker, task } => {
                let actions = self.workers[worker as usize].step(&self.scenario, task);
                self.act(worker, actions);
            }
            Planned::ToDriver(worker, message) => {
                self.note(Seen::Received(message.clone()));
                if let FromWorker::EpochEnded { report, .. } = &message {
                    self.rows = report.epoch;
                }
                self.tell_driver(Event::FromWorker { worker, message });
            }
            Planned::ParametersAnswer(result) => {
                self.is_blocked = false;
                self.tell_driver(match result {
                    Ok(has_memory) => Event::ParametersDone(Value::Bool(has_memory)),
                    Err(error) => Event::Failed(error),
                });
                for planned in std::mem::take(&mut self.waiting) {
                    self.handle(planned);
                }
            }
            Planned::Written { worker, message } => {
                self.plan_message(worker, true, Planned::ToDriver(worker, message));
            }
            Planned::Stop => {
                self.note(Seen::StopRequested);
                self.tell_driver(Event::StopRequested);
            }
            Planned::MemberLost => {
                self.note(Seen::MemberLost);
                self.tell_driver(Event::Failed(io_error(MEMBER_LOST)));
            }
            Planned::Poll => {
                self.tell_driver(Event::Timeout);
                if !self.is_over {
                    self.plan_at(self.now + POLL, Planned::Poll);
                }
            }
        }
    }

    fn act(&mut self, worker: u32, actions: Vec<WorkerAction>) {
        for action in actions {
            match action {
                WorkerAction::WriteLater(mut message) => {
                    if let (FromWorker::PartWritten { part, .. }, Some(InjectedFault::StatesAreForgotten)) =
                        (&mut message, self.injected_fault)
                    {
                        part.tasks.pop_last();
                    }
                    let time = self.now + 1 + self.random.below(WRITE);
                    self.plan_at(time, Planned::Written { worker, message });
                }
                WorkerAction::Send(message) => {
                    self.plan_message(worker, true, Planned::ToDriver(worker, message));
                }
                WorkerAction::Arrive { task, reason } => {
                    self.arrived.insert(task, reason);
                    self.end_barrier();
                }
                WorkerAction::StepLater(task) => {
                    let time = self.now + 1 + self.random.below(STEP);
                    self.plan_at(time, Planned::Step { worker, task });
                }
                WorkerAction::SaveModel(message) => {
                    self.note(Seen::Saved { epoch: self.rows });
                    self.plan_message(worker, true, Planned::ToDriver(worker, message));
                }
            }
        }
    }

    /// When all tasks have come, they save if one of them is to and none was stopped; otherwise they end their epoch.
    fn end_barrier(&mut self) {
        if self.arrived.len() < self.scenario.tasks as usize {
            return;
        }
        let reasons: Vec<BarrierReason> = std::mem::take(&mut self.arrived).into_values().collect();
        let saves = reasons.contains(&BarrierReason::Save) && !reasons.contains(&BarrierReason::Stopped);
        for worker in 0..self.scenario.workers {
            let actions = self.workers[worker as usize].on_met(&self.scenario, saves);
            self.act(worker, actions);
        }
    }

    fn tell_driver(&mut self, event: Event) {
        let now = self.start + Duration::from_micros(self.now);
        let effects = self.driver.on_event(now, event);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send { worker, message } => self.send(worker, message),
                Effect::Parameters(request) => self.request(&request),
                Effect::Close { .. } => self.note(Seen::Closed),
                Effect::Status(_) | Effect::TrainingKnown(_) | Effect::DropSnapshot(_) => {}
                Effect::End(result) => {
                    self.is_over = true;
                    let result =
                        result.map(|end| matches!(end, RunEnd::Finished(finished) if finished.is_complete));
                    self.note(Seen::Ended(result.map_err(|error| error.to_string())));
                }
            }
        }
    }

    fn send(&mut self, worker: u32, message: ToWorker) {
        self.note(Seen::Sent { worker, message: message.clone() });
        let is_last = worker + 1 == self.scenario.workers;
        match (self.injected_fault, &message) {
            (Some(InjectedFault::OneWorkerIsNotEnded), ToWorker::End { .. }) if is_last => return,
            (Some(InjectedFault::StopIsNotSent), ToWorker::Stop) => return,
            (Some(InjectedFault::FirstFailureIsNotAwaited), ToWorker::FinishReading { .. }) => {
                let finished = Planned::ToDriver(worker, FromWorker::ReadingFinished);
                return self.plan_at(self.now, finished);
            }
            (Some(InjectedFault::DecisionIsRepeated), ToWorker::EpochDecided { .. }) if worker == 0 => {
                self.note(Seen::Sent { worker, message: message.clone() });
            }
            _ => {}
        }
        self.plan_message(worker, false, Planned::ToWorker { worker, message });
    }

    fn request(&mut self, request: &ParametersRequest) {
        let number = self.request_count;
        self.request_count += 1;
        self.is_blocked = true;
        let time = self.now + self.random.below(DELAY);
        if self.scenario.misfortune == Misfortune::ParametersFail(number) {
            self.note(Seen::ParametersFailed);
            return self.plan_at(time, Planned::ParametersAnswer(Err(io_error(PARAMETERS_FAILED))));
        }
        match request {
            ParametersRequest::Create { .. } | ParametersRequest::Stats => {}
            ParametersRequest::TakeSnapshot { purpose: SnapshotPurpose::BestEpoch, .. } => {
                self.copy = Some(self.rows);
            }
            ParametersRequest::TakeSnapshot { purpose: SnapshotPurpose::Checkpoint, .. } => {
                let has_memory = self.scenario.has_memory_for_snapshots;
                if self.injected_fault != Some(InjectedFault::SnapshotIsNotTaken) {
                    self.note(Seen::SnapshotTaken { has_memory });
                }
                return self.plan_at(time, Planned::ParametersAnswer(Ok(has_memory)));
            }
            ParametersRequest::RestoreBest => {
                self.note(Seen::RowsRestored);
                if self.injected_fault != Some(InjectedFault::RowsAreNotRestored) {
                    self.rows = self.copy.expect("rows are copied before they are restored");
                }
            }
        }
        self.plan_at(time, Planned::ParametersAnswer(Ok(false)));
    }
}

fn io_error(text: &str) -> Error {
    Error::Cluster { text: text.into(), exit: Exit::Io }
}
