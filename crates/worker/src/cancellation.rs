//! Cancellation of a job from outside: its agents stop all waits.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rpc::Closer;

/// A cancellation token that the agents of a job share with its owner. It is cancelled once. Then it closes every
/// connection that it watches, so that no thread stays blocked in a send or a receive.
#[derive(Clone, Debug, Default)]
pub struct CancellationToken(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Every call of an agent reads this flag, so that it needs no lock.
    is_cancelled: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    reason: Option<String>,
    /// Each with the name of its server.
    connections: Vec<(String, Closer)>,
    lost_servers: BTreeSet<String>,
}

impl CancellationToken {
    /// Cancels the token and ends all waits. Only the first reason counts.
    pub fn cancel(&self, reason: &str) {
        let mut state = self.lock();
        state.reason.get_or_insert_with(|| reason.to_owned());
        let connections = std::mem::take(&mut state.connections);
        self.0.is_cancelled.store(true, Ordering::SeqCst);
        drop(state);
        self.0.changed.notify_all();
        for (_, connection) in connections {
            connection.close();
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::SeqCst)
    }

    /// The reason, if the token is cancelled.
    pub fn reason(&self) -> Option<String> {
        if self.is_cancelled() { self.lock().reason.clone() } else { None }
    }

    /// Waits until the token is cancelled, at most for `limit`.
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

    /// Closes the connections to a server that is lost: a machine that is frozen or cut off does not close them.
    pub fn on_server_lost(&self, server: &str) {
        let mut state = self.lock();
        state.lost_servers.insert(server.to_owned());
        let of_server = state.connections.iter().filter(|(name, _)| name == server);
        of_server.for_each(|(_, connection)| connection.close());
    }

    /// Whether a server is known to be lost.
    pub fn is_server_lost(&self, server: &str) -> bool {
        self.lock().lost_servers.contains(server)
    }

    /// Closes this connection to a server when the token is cancelled, at once if it is already, or when the server is
    /// lost.
    pub fn watch(&self, server: &str, closer: Closer) {
        let mut state = self.lock();
        if state.reason.is_some() {
            drop(state);
            return closer.close();
        }
        state.connections.retain(|(_, connection)| connection.is_open());
        state.connections.push((server.to_owned(), closer));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
