//! What has come for a branch of a trunk and was not taken yet.
//!
//! Waking a thread costs more than all else that is done with a small frame, so that whoever is woken first wakes the next:
//! see [`super::trunk`].

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
    /// Whether somebody waits: waking nobody is a call of the system too.
    is_awaited: bool,
    /// Whether the one who waits is to be woken, and was not yet.
    is_called: bool,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody waits for it who is not yet called: [`Self::call`] is to follow.
    pub(super) fn put(&self, frame: Frame) -> bool {
        let mut state = self.lock();
        state.frames.push_back(frame);
        let calls = state.is_awaited && !state.is_called;
        state.is_called |= calls;
        calls
    }

    /// Wakes the one who is to be woken. False when he has come by himself.
    pub(super) fn call(&self) -> bool {
        let is_called = self.lock().is_called;
        if is_called {
            self.changed.notify_one();
        }
        is_called
    }

    /// Nothing more comes; what is there can still be taken.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        drop(state);
        self.changed.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// The next, waiting for it as long as the limit; `None` when it did not come. `woken` is called after a wait.
    pub(super) fn take(&self, limit: Option<Duration>, woken: impl Fn()) -> Result<Option<Frame>, Error> {
        let mut state = self.lock();
        let rest = |deadline: &mut Option<Instant>| {
            let now = Instant::now();
            limit.map(|limit| deadline.get_or_insert(now + limit).saturating_duration_since(now))
        };
        let mut deadline = None;
        loop {
            if let Some(frame) = state.frames.pop_front() {
                return Ok(Some(frame));
            }
            if state.is_closed {
                return Err(Error::Closed);
            }
            let rest = rest(&mut deadline);
            if rest.is_some_and(|rest| rest.is_zero()) {
                return Ok(None);
            }
            state.is_awaited = true;
            state = match rest {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(rest) => {
                    self.changed.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0
                }
            };
            (state.is_awaited, state.is_called) = (false, false);
            drop(state);
            woken();
            state = self.lock();
        }
    }
}
