//! The end of a job from outside: its agents stop waiting, whatever they wait for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rpc::{Closer, Sender};

/// A cancellation token, shared by the agents of a job and whoever may end it. It is raised once. Then every connection that
/// it watches is closed, so that no thread stays blocked in a send or a receive.
#[derive(Clone, Debug, Default)]
pub struct CancellationToken(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Looked at before the lock: every call of an agent asks.
    is_cancelled: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    reason: Option<String>,
    connections: Vec<Closer>,
}

impl CancellationToken {
    /// Ends all waits. Only the first reason counts.
    pub fn cancel(&self, reason: &str) {
        let mut state = self.lock();
        state.reason.get_or_insert_with(|| reason.to_owned());
        let connections = std::mem::take(&mut state.connections);
        self.0.is_cancelled.store(true, Ordering::SeqCst);
        drop(state);
        self.0.changed.notify_all();
        connections.iter().for_each(Closer::close);
    }

    /// Whether it was raised.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::SeqCst)
    }

    /// Why it was raised, if it was.
    pub fn reason(&self) -> Option<String> {
        if self.is_cancelled() { self.lock().reason.clone() } else { None }
    }

    /// Waits until it is raised, at most so long.
    pub fn wait(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        let mut state = self.lock();
        while state.reason.is_none() {
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return;
            }
            state = self.0.changed.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Closes this connection when it is raised; at once, when it was.
    pub fn watch(&self, sender: &Sender) {
        let mut state = self.lock();
        if state.reason.is_some() {
            drop(state);
            return sender.closer().close();
        }
        state.connections.retain(Closer::is_open);
        state.connections.push(sender.closer());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
