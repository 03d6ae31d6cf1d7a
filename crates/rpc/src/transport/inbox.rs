//! What has come for a branch of a trunk and was not taken yet, and the task that waits for it.
//!
//! Waking a thread costs more than all else that is done with a small frame, so that whoever is woken first wakes the next:
//! a task is **called** when it is to be woken, and whoever calls it, or it itself, sees to those behind it
//! ([`super::trunk`]).

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
    /// Whether that is to be woken.
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

    /// Whether the task is called by this: [`Self::wake`] is to follow.
    pub(super) fn put(&self, frame: Frame) -> bool {
        let mut state = self.lock();
        state.frames.push_back(frame);
        state.request_wake()
    }

    /// Calls and wakes a task that waits, though nothing has come for it. False when there is none that was not called.
    pub(super) fn wake_waiting(&self) -> bool {
        let calls = self.lock().request_wake();
        if calls {
            self.changed.notify_one();
        }
        calls
    }

    /// Wakes the task that was called. False when it has come by itself.
    pub(super) fn wake(&self) -> bool {
        let is_called = self.lock().is_wake_pending;
        if is_called {
            self.changed.notify_one();
        }
        is_called
    }

    /// Nothing more comes; what is there can still be taken.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// The next, if it is there.
    pub(super) fn take(&self) -> Result<Option<Frame>, Error> {
        let mut state = self.lock();
        match state.frames.pop_front() {
            None if state.is_closed => Err(Error::Closed),
            frame => Ok(frame),
        }
    }

    /// The task is about to wait: from now on it is called for what comes.
    pub(super) fn begin_wait(&self) {
        self.lock().is_waiting = true;
    }

    /// It does not wait any more.
    pub(super) fn end_wait(&self) {
        let mut state = self.lock();
        (state.is_waiting, state.is_wake_pending) = (false, false);
    }

    /// Waits until something is there, or it is called, or nothing more comes, or the time has come.
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
