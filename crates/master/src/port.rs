//! How runners reach the thread of the state machine: words in a queue, and a nudge over a connection of the process to
//! itself, because frames are what wakes that thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Queue, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rpc::Message;
use rpc::message::{Control, ControlBody, Hello, JobId, Role};
use rpc::transport::{Address, Receiver, Sender, open};

use crate::runner::RunnerWord;

/// Most words that wait; a runner that says more waits too.
const WORD_LIMIT: usize = 4096;
/// Longest wait for the own address.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// The runners' end.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    words: SyncSender<(JobId, RunnerWord)>,
    bell: Arc<Bell>,
}

/// Wakes the thread of the state machine.
#[derive(Debug)]
pub(crate) struct Bell {
    address: Address,
    token: Vec<u8>,
    /// It has been rung and not been heard yet.
    is_rung: AtomicBool,
    /// The last ring could not be sent: the thread has to look by itself.
    is_broken: AtomicBool,
    line: Mutex<Option<(Sender, Receiver)>>,
}

/// What a ring is on the wire: something that nobody else says to a master, and that does nothing.
pub(crate) fn is_ring(message: &Message) -> bool {
    matches!(message, Message::Control(Control { request: 0, body: ControlBody::Alive }))
}

impl Port {
    pub(crate) fn new(bell: Arc<Bell>) -> (Self, Queue<(JobId, RunnerWord)>) {
        let (words, queue) = sync_channel(WORD_LIMIT);
        (Self { words, bell }, queue)
    }

    pub(crate) fn say(&self, job: JobId, word: RunnerWord) {
        // The queue is closed when the master has ended; then nobody wants to know.
        if self.words.send((job, word)).is_ok() {
            self.bell.ring();
        }
    }
}

impl Bell {
    pub(crate) fn new(address: Address, token: Vec<u8>) -> Self {
        let (is_rung, is_broken) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { address, token, is_rung, is_broken, line: Mutex::new(None) }
    }

    /// Wakes the thread, unless it has been woken and has not looked yet.
    pub(crate) fn ring(&self) {
        if self.is_rung.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let is_sent = Self::send(&mut line) || {
            *line = self.connect();
            Self::send(&mut line)
        };
        self.is_broken.store(!is_sent, Ordering::SeqCst);
        if !is_sent {
            self.is_rung.store(false, Ordering::SeqCst);
        }
    }

    /// The thread has woken; called before it looks, so that what comes later rings again.
    pub(crate) fn heard(&self) {
        self.is_rung.store(false, Ordering::SeqCst);
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::SeqCst)
    }

    fn send(line: &mut Option<(Sender, Receiver)>) -> bool {
        let ring = Message::Control(Control { request: 0, body: ControlBody::Alive });
        line.as_mut().is_some_and(|(sender, _)| sender.send(&ring).is_ok())
    }

    fn connect(&self) -> Option<(Sender, Receiver)> {
        let hello = Hello { request: 1, token: self.token.clone(), role: Role::Tool, lane: 0 };
        match open(&self.address, CONNECT_LIMIT, &hello) {
            Ok((sender, receiver, _)) => Some((sender, receiver)),
            Err(error) => {
                tracing::warn!(address = %self.address, %error, "a runner cannot reach its own master");
                None
            }
        }
    }
}
