//! The counters of HTTP connections.

use std::sync::atomic::{AtomicU64, Ordering};

use rpc::Metrics;

/// The counters of one HTTP port.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) open: AtomicU64,
    pub(crate) accepted: AtomicU64,
    pub(crate) accept_errors: AtomicU64,
    /// Connections above the limit.
    pub(crate) refused_full: AtomicU64,
    /// Connections that made no call or showed no token in time.
    pub(crate) closed_unauthenticated: AtomicU64,
    /// Connections that did not read their answers.
    pub(crate) closed_unread: AtomicU64,
}

impl Counters {
    pub(crate) fn metrics(&self, out: &mut Metrics) {
        let open = self.open.load(Ordering::Relaxed);
        out.gauge("seraphim_http_connections", "Open HTTP connections", &[], open);
        for (name, help, count) in [
            ("accepted", "HTTP connections accepted", &self.accepted),
            ("accept_errors", "HTTP connections that the system could not provide", &self.accept_errors),
            ("refused_full", "HTTP connections refused because the limit was reached", &self.refused_full),
            (
                "closed_unauthenticated",
                "HTTP connections closed because they made no call or showed no token in time",
                &self.closed_unauthenticated,
            ),
            (
                "closed_unread",
                "HTTP connections closed because the other end did not read",
                &self.closed_unread,
            ),
        ] {
            let count = count.load(Ordering::Relaxed);
            out.counter(&format!("seraphim_http_{name}_total"), help, &[], count);
        }
    }
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
