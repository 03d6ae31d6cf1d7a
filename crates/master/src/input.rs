//! How runners and clients reach the thread of the state machine: a queue of inputs, and a waker for the thread.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Queue, SyncSender, TrySendError, sync_channel};

use control::{ClientCall, MasterHandle};
use rpc::message::{Fault, FaultKind, JobId};
use rpc::serve::Lanes;

use crate::runner::RunnerReport;

/// Most inputs that wait. With more, a runner waits, and a client is told to retry later.
const INPUT_LIMIT: usize = 4096;
/// Milliseconds after which a client may retry.
const RETRY_MS: u32 = 100;
/// The only lane of a master.
const LANE: u16 = 0;

/// Input that does not come over frame connections.
#[derive(Debug)]
pub(crate) enum MasterInput {
    Runner(JobId, RunnerReport),
    Client(ClientCall),
}

/// The sending end of the queue.
#[derive(Clone, Debug)]
pub(crate) struct InputSender {
    inputs: SyncSender<MasterInput>,
    waker: Arc<Waker>,
}

/// Wakes the thread of the state machine.
#[derive(Debug, Default)]
pub(crate) struct Waker {
    /// The thread was woken and has not read its inputs yet.
    is_pending: AtomicBool,
    /// Set when the process begins to serve, which wakes the thread for all earlier inputs.
    lanes: OnceLock<Lanes>,
}

impl InputSender {
    pub(crate) fn new(waker: Arc<Waker>) -> (Self, Queue<MasterInput>) {
        let (inputs, queue) = sync_channel(INPUT_LIMIT);
        (Self { inputs, waker }, queue)
    }

    pub(crate) fn report(&self, job: JobId, report: RunnerReport) {
        // The queue is closed when the master has ended; then nobody needs the report.
        if self.inputs.send(MasterInput::Runner(job, report)).is_ok() {
            self.waker.wake();
        }
    }
}

impl MasterHandle for InputSender {
    fn send(&self, call: ClientCall) -> Result<(), Fault> {
        let refusal = |kind, text: String, retry_after_ms| Fault { request: 0, kind, text, retry_after_ms };
        match self.inputs.try_send(MasterInput::Client(call)) {
            Ok(()) => {
                self.waker.wake();
                Ok(())
            }
            Err(TrySendError::Full(_)) => {
                let text =
                    format!("{INPUT_LIMIT} calls and reports of jobs are queued, the limit: retry later");
                Err(refusal(FaultKind::Busy, text, RETRY_MS))
            }
            Err(TrySendError::Disconnected(_)) => {
                // Another one may replace it.
                Err(refusal(FaultKind::Busy, "the master has ended".into(), RETRY_MS))
            }
        }
    }
}

impl Waker {
    /// Wakes the thread, unless it was woken and has not read its inputs yet.
    pub(crate) fn wake(&self) {
        if !self.is_pending.swap(true, Ordering::SeqCst)
            && let Some(lanes) = self.lanes.get()
        {
            lanes.wake(LANE);
        }
    }

    /// The thread calls this before it reads its inputs, so that later inputs wake it again.
    pub(crate) fn clear(&self) {
        self.is_pending.store(false, Ordering::SeqCst);
    }

    /// Called once, when the process begins to serve.
    pub(crate) fn set_lanes(&self, lanes: Lanes) {
        lanes.wake(LANE);
        // A process serves once; a second call would pass the same lanes.
        let _ = self.lanes.set(lanes);
    }
}
