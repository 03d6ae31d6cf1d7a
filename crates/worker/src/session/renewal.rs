//! The thread that renews the lease of a session.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rpc::Message;
use rpc::message::{JobId, RenewSession};

use super::request::ask_done;
use crate::lane_client::LaneClient;

/// Renews the lease until it is dropped: then the thread finds its channel closed.
pub(super) struct Renewal {
    _stop: Sender<()>,
}

impl Renewal {
    /// Renews the lease of the session `job` over a connection of its own, with these pauses.
    pub(super) fn start(mut master: LaneClient, pause: Duration, job: JobId) -> Self {
        let (stop, stopped) = channel();
        std::thread::spawn(move || {
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                // If the session is over, its next request says why.
                if ask_done(&mut master, Message::RenewSession(RenewSession { request: 1, job }), 1).is_err()
                {
                    return;
                }
            }
        });
        Self { _stop: stop }
    }
}
