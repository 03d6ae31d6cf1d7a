//! Frames that have arrived for a stream of a multiplexed connection and were not taken yet, and the task that waits
//! for them.
//!
//! Waking a thread costs more than all other work for a small frame, so each thread that is woken wakes the next one. A
//! task is **marked** when it is to be woken. The thread that marked it wakes it, or an earlier thread in the queue
//! does ([`super::multiplexed_connection`]).

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::frame::Frame;

#[derive(Debug, Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    frames: VecDeque<Frame>,
    is_closed: bool,
    /// Whether a task waits, or is about to.
    is_waiting: bool,
    /// Whether the waiting task is marked.
    is_wake_pending: bool,
}

impl State {
    fn request_wake(&mut self) -> bool {
        let calls = self.is_waiting && !self.is_wake_pending;
        self.is_wake_pending |= calls;
        calls
    }
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a frame. Returns whether it has marked the task: then [`Self::wake`] must follow.
    pub(super) fn put(&self, frame: Frame) -> bool {
        let mut state = self.lock();
        state.frames.push_back(frame);
        state.request_wake()
    }

    /// Marks and wakes a task that waits, though no frame has arrived for it. Returns false when no unmarked task
    /// waits.
    pub(super) fn wake_waiting(&self) -> bool {
        let calls = self.lock().request_wake();
        if calls {
            self.changed.notify_one();
        }
        calls
    }

    /// Wakes the marked task. Returns false when it is already awake.
    pub(super) fn wake(&self) -> bool {
        let is_called = self.lock().is_wake_pending;
        if is_called {
            self.changed.notify_one();
        }
        is_called
    }

    /// No more frames arrive; those that are there can still be taken.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// The next frame, if there is one.
    pub(super) fn take(&self) -> Result<Option<Frame>, Error> {
        let mut state = self.lock();
        match state.frames.pop_front() {
            None if state.is_closed => Err(Error::Closed),
            frame => Ok(frame),
        }
    }

    /// The task is about to wait: from now on [`Self::put`] marks it.
    pub(super) fn begin_wait(&self) {
        self.lock().is_waiting = true;
    }

    /// The task does not wait any more.
    pub(super) fn end_wait(&self) {
        let mut state = self.lock();
        (state.is_waiting, state.is_wake_pending) = (false, false);
    }

    /// Waits until a frame is there, the task is marked, the inbox is closed, or the deadline has passed.
    pub(super) fn wait(&self, deadline: Option<Instant>) {
        let mut state = self.lock();
        while !state.is_wake_pending && !state.is_closed && state.frames.is_empty() {
            let rest = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            state = match rest {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return,
                Some(rest) => {
                    self.changed.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}
