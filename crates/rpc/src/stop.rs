//! The request to end, shared by all parts of a process.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// A flag that is raised once and that all its clones see, in threads and tasks.
#[derive(Clone, Debug)]
pub struct Stop {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    watch: watch::Sender<bool>,
    raised: Mutex<bool>,
    changed: Condvar,
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}

impl Stop {
    /// A flag that is not raised.
    pub fn new() -> Self {
        let inner =
            Inner { watch: watch::Sender::new(false), raised: Mutex::new(false), changed: Condvar::new() };
        Self { inner: Arc::new(inner) }
    }

    /// Raises the flag; further calls do nothing.
    pub fn raise(&self) {
        *self.inner.raised.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.inner.changed.notify_all();
        self.inner.watch.send_replace(true);
    }

    pub fn is_raised(&self) -> bool {
        *self.inner.watch.borrow()
    }

    /// Waits for at most `limit`; returns whether the flag was raised.
    pub fn wait(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut raised = self.inner.raised.lock().unwrap_or_else(PoisonError::into_inner);
        while !*raised {
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                break;
            }
            raised = self.inner.changed.wait_timeout(raised, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
        *raised
    }

    /// Ends when the flag is raised.
    pub async fn raised(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.inner.watch.subscribe().wait_for(|raised| *raised).await;
    }
}
