//! How runners and clients reach the thread of the state machine: words in a queue, and a bell that wakes it.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Queue, SyncSender, TrySendError, sync_channel};

use control::{ClientCall, MasterHandle};
use rpc::message::{Fault, FaultKind, JobId};
use rpc::serve::Lanes;

use crate::runner::RunnerReport;

/// Most words that wait; a runner that says more waits too, a client is told to come later.
const INPUT_LIMIT: usize = 4096;
/// When a client may come again.
const RETRY_MS: u32 = 100;
/// The only lane of a master.
const LANE: u16 = 0;

/// What comes past the connections.
#[derive(Debug)]
pub(crate) enum MasterInput {
    /// The runner of a job says something.
    Runner(JobId, RunnerReport),
    /// A client calls.
    Client(ClientCall),
}

/// The end of those who speak.
#[derive(Clone, Debug)]
pub(crate) struct InputSender {
    inputs: SyncSender<MasterInput>,
    waker: Arc<Waker>,
}

/// Wakes the thread of the state machine.
#[derive(Debug, Default)]
pub(crate) struct Waker {
    /// It has been rung and not been heard yet.
    is_pending: AtomicBool,
    /// Known when the process begins to serve, which rings for all that came before.
    lanes: OnceLock<Lanes>,
}

impl InputSender {
    pub(crate) fn new(bell: Arc<Waker>) -> (Self, Queue<MasterInput>) {
        let (words, queue) = sync_channel(INPUT_LIMIT);
        (Self { inputs: words, waker: bell }, queue)
    }

    pub(crate) fn report(&self, job: JobId, word: RunnerReport) {
        // The queue is closed when the master has ended; then nobody wants to know.
        if self.inputs.send(MasterInput::Runner(job, word)).is_ok() {
            self.waker.wake();
        }
    }
}

impl MasterHandle for InputSender {
    fn start(&self, lanes: Lanes) {
        self.waker.set_lanes(lanes);
    }

    fn send(&self, call: ClientCall) -> Result<(), Fault> {
        let refusal = |kind, text: String, retry_after_ms| Fault { request: 0, kind, text, retry_after_ms };
        match self.inputs.try_send(MasterInput::Client(call)) {
            Ok(()) => {
                self.waker.wake();
                Ok(())
            }
            Err(TrySendError::Full(_)) => {
                let text = format!("{INPUT_LIMIT} calls and words of jobs wait already: come again later");
                Err(refusal(FaultKind::Busy, text, RETRY_MS))
            }
            Err(TrySendError::Disconnected(_)) => {
                Err(refusal(FaultKind::Stopped, "the master has ended".into(), 0))
            }
        }
    }
}

impl Waker {
    /// Wakes the thread, unless it has been woken and has not looked yet.
    pub(crate) fn wake(&self) {
        if !self.is_pending.swap(true, Ordering::SeqCst)
            && let Some(lanes) = self.lanes.get()
        {
            lanes.wake(LANE);
        }
    }

    /// The thread has woken; called before it looks, so that what comes later rings again.
    pub(crate) fn clear(&self) {
        self.is_pending.store(false, Ordering::SeqCst);
    }

    fn set_lanes(&self, lanes: Lanes) {
        lanes.wake(LANE);
        // A process serves once; a second call would bring the same lanes.
        let _ = self.lanes.set(lanes);
    }
}
