//! A running job on a worker, with the thread that handles the driver's messages one after the other. Messages that must
//! reach running tasks do not wait for that thread.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use driver::messages::ToWorker;

use crate::failures::BusyGuard;
use crate::worker::coordinator::TaskCoordinator;
use crate::worker::job::{SharedClaim, WorkerJob};
use crate::worker::{WorkerContext, checkpoints, lock};

/// Time between two checks whether the thread has ended.
const JOIN_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A running job: what its owner needs to reach its thread.
pub struct JobHandle {
    sender: Sender<(ToWorker, BusyGuard)>,
    coordinator: Arc<TaskCoordinator>,
    checkpoints: Arc<Mutex<Option<String>>>,
    claim: SharedClaim,
    thread: JoinHandle<()>,
}

impl JobHandle {
    /// Starts the thread of a job. It ends with the message `End`, or when the handle is dropped.
    pub fn start(context: WorkerContext) -> Self {
        let coordinator = TaskCoordinator::new(context);
        let (sender, receiver) = channel::<(ToWorker, BusyGuard)>();
        let checkpoints = Arc::<Mutex<Option<String>>>::default();
        let claim = SharedClaim::default();
        let mut job = WorkerJob::new(Arc::clone(&coordinator), Arc::clone(&checkpoints), Arc::clone(&claim));
        let running = Arc::clone(&coordinator);
        let thread = std::thread::spawn(move || {
            for (message, busy) in receiver {
                if matches!(message, ToWorker::End { .. }) {
                    break;
                }
                job.on_message(message, busy);
            }
            job.release_claim();
            let WorkerContext { job, metrics, .. } = running.context();
            metrics.remove_job(*job);
        });
        Self { sender, coordinator, checkpoints, claim, thread }
    }

    /// Handles a message of the driver.
    pub fn on_message(&self, message: ToWorker) {
        let busy = BusyGuard::new(self.coordinator.failures());
        match message {
            ToWorker::EpochDecided { epoch, decision } => self.coordinator.set_decision(epoch, decision),
            ToWorker::Stop => self.coordinator.stop(),
            ToWorker::PlanSave { plan, clock } => self.coordinator.plan_save(plan, clock),
            ToWorker::DecideSave { plan, is_confirmed } => self.coordinator.decide_save(plan, is_confirmed),
            ToWorker::EndSave => self.coordinator.end_save(),
            message @ (ToWorker::WritePart { .. } | ToWorker::CommitCheckpoint { .. }) => {
                checkpoints::write(&self.coordinator, message);
            }
            ToWorker::DropCheckpoint { checkpoint } => checkpoints::drop_parts(checkpoint),
            ToWorker::FinishReading { position } => self.coordinator.finish_reading(position),
            message => {
                match &message {
                    ToWorker::PrepareData { first, count, .. } => {
                        self.coordinator.begin(*first..*first + *count);
                    }
                    ToWorker::End { reason } => {
                        // The job has ended for its user, who may begin another one before the tasks have ended.
                        lock(&self.claim).take();
                        if let Some(reason) = reason {
                            self.cancel(reason);
                        }
                    }
                    _ => {}
                }
                // An error is ignored: the thread may have ended already.
                let _ = self.sender.send((message, busy));
            }
        }
    }

    /// Ends all waits of the tasks.
    pub fn cancel(&self, reason: &str) {
        self.coordinator.fail(reason);
    }

    /// The place of the job's checkpoints, once it is known; none: there are none.
    pub fn checkpoints(&self) -> Option<String> {
        lock(&self.checkpoints).clone()
    }

    /// Whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the thread; false if it has not ended by the deadline.
    pub fn join(self, deadline: Instant) -> bool {
        drop(self.sender);
        while !self.thread.is_finished() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(JOIN_POLL_INTERVAL);
        }
        true
    }

    /// Waits for the thread.
    pub fn wait(self) {
        drop(self.sender);
        // Panics of tasks are caught in their threads; any other one was printed.
        let _ = self.thread.join();
    }
}
