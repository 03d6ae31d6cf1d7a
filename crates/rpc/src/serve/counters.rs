//! The counters of connections, and the limit of their number.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::metrics::Metrics;

/// The counters of one `serve`.
#[derive(Debug, Default)]
pub(super) struct Counters {
    connections: AtomicUsize,
    pub(super) accepted: AtomicU64,
    pub(super) accept_errors: AtomicU64,
    /// Connections above the limit.
    pub(super) refused_full: AtomicU64,
    /// Connections with a wrong token, another version, no `Hello` in time, or no frame.
    pub(super) refused_hello: AtomicU64,
    /// Connections that sent invalid or damaged frames after a valid `Hello`.
    pub(super) closed_bad_frame: AtomicU64,
    /// Connections for which too many bytes waited because they did not read.
    pub(super) closed_outbound: AtomicU64,
    pub(super) frames_in: AtomicU64,
    pub(super) frames_out: AtomicU64,
    pub(super) bytes_in: AtomicU64,
    pub(super) bytes_out: AtomicU64,
}

/// Holds the slot of one connection until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot(Arc<Counters>);

impl Counters {
    /// Returns a slot if fewer than `limit` are in use.
    pub(super) fn reserve_slot(self: &Arc<Self>, limit: usize) -> Option<ConnectionSlot> {
        let taken = self.connections.fetch_add(1, Ordering::Relaxed);
        let place = ConnectionSlot(Arc::clone(self));
        (taken < limit).then_some(place)
    }

    pub(super) fn metrics(&self, out: &mut Metrics) {
        let connections = self.connections.load(Ordering::Relaxed) as u64;
        out.gauge("seraphim_rpc_connections", "Open connections", &[], connections);
        for (name, help, count) in [
            ("accepted", "Connections accepted", &self.accepted),
            ("accept_errors", "Connections that the system could not provide", &self.accept_errors),
            ("refused_full", "Connections refused because the limit was reached", &self.refused_full),
            ("refused_hello", "Connections refused before an accepted Hello or token", &self.refused_hello),
            ("closed_bad_frame", "Connections closed for an invalid frame", &self.closed_bad_frame),
            (
                "closed_outbound",
                "Connections closed because the other end did not read",
                &self.closed_outbound,
            ),
            ("frames_in", "Frames received", &self.frames_in),
            ("frames_out", "Frames sent", &self.frames_out),
            ("bytes_in", "Bytes received", &self.bytes_in),
            ("bytes_out", "Bytes sent", &self.bytes_out),
        ] {
            let count = count.load(Ordering::Relaxed);
            out.counter(&format!("seraphim_rpc_{name}_total"), help, &[], count);
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(super) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

pub(super) fn add(counter: &AtomicU64, number: usize) {
    counter.fetch_add(number as u64, Ordering::Relaxed);
}
