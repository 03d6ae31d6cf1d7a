//! How runners and clients reach the thread of the state machine: words in a queue, and a bell that wakes it.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Queue, SyncSender, TrySendError, sync_channel};

use control::{Call, Clerk};
use rpc::message::{Fault, FaultKind, JobId};
use rpc::serve::Lanes;

use crate::runner::RunnerWord;

/// Most words that wait; a runner that says more waits too, a client is told to come later.
const WORD_LIMIT: usize = 4096;
/// When a client may come again.
const RETRY_MS: u32 = 100;
/// The only lane of a master.
const LANE: u16 = 0;

/// What comes past the connections.
#[derive(Debug)]
pub(crate) enum Word {
    /// The runner of a job says something.
    Runner(JobId, RunnerWord),
    /// A client calls.
    Client(Call),
}

/// The end of those who speak.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    words: SyncSender<Word>,
    bell: Arc<Bell>,
}

/// Wakes the thread of the state machine.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    /// It has been rung and not been heard yet.
    is_rung: AtomicBool,
    /// Known when the process begins to serve, which rings for all that came before.
    lanes: OnceLock<Lanes>,
}

impl Port {
    pub(crate) fn new(bell: Arc<Bell>) -> (Self, Queue<Word>) {
        let (words, queue) = sync_channel(WORD_LIMIT);
        (Self { words, bell }, queue)
    }

    pub(crate) fn say(&self, job: JobId, word: RunnerWord) {
        // The queue is closed when the master has ended; then nobody wants to know.
        if self.words.send(Word::Runner(job, word)).is_ok() {
            self.bell.ring();
        }
    }
}

impl Clerk for Port {
    fn begin(&self, lanes: Lanes) {
        self.bell.hang(lanes);
    }

    fn hear(&self, call: Call) -> Result<(), Fault> {
        let refusal = |kind, text: String, retry_after_ms| Fault { request: 0, kind, text, retry_after_ms };
        match self.words.try_send(Word::Client(call)) {
            Ok(()) => {
                self.bell.ring();
                Ok(())
            }
            Err(TrySendError::Full(_)) => {
                let text = format!("{WORD_LIMIT} calls and words of jobs wait already: come again later");
                Err(refusal(FaultKind::Busy, text, RETRY_MS))
            }
            Err(TrySendError::Disconnected(_)) => {
                Err(refusal(FaultKind::Stopped, "the master has ended".into(), 0))
            }
        }
    }
}

impl Bell {
    /// Wakes the thread, unless it has been woken and has not looked yet.
    pub(crate) fn ring(&self) {
        if !self.is_rung.swap(true, Ordering::SeqCst)
            && let Some(lanes) = self.lanes.get()
        {
            lanes.wake(LANE);
        }
    }

    /// The thread has woken; called before it looks, so that what comes later rings again.
    pub(crate) fn heard(&self) {
        self.is_rung.store(false, Ordering::SeqCst);
    }

    fn hang(&self, lanes: Lanes) {
        lanes.wake(LANE);
        // A process serves once; a second call would bring the same lanes.
        let _ = self.lanes.set(lanes);
    }
}
