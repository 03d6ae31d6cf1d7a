//! Runs services, one thread with a current-thread runtime each. The calling thread accepts connections, reads their
//! `Hello` and passes them to the thread of their lane.

mod accept;
mod connection;
mod connection_writer;
mod counters;
mod faults;
mod handshake;
mod lane;
mod lane_command;
mod lane_thread;
mod lanes;
mod listener;
mod ports;
mod runtime;
mod shared;
mod socket;

use std::sync::Arc;
use std::time::Instant;

pub use lanes::Lanes;
pub use listener::{AsyncListener, Listener};
pub use ports::Ports;
pub use runtime::first_of;
pub use shared::ServeConfig;
pub use socket::Socket;

use crate::error::Error;
use crate::service::Service;
use crate::stop::Stop;
use accept::Acceptor;
use counters::Counters;
use shared::Shared;
use tokio::sync::mpsc;

/// Runs the services, lane 0 first, until `stop` is raised. It returns when all threads have ended. Before the first
/// connection is accepted, it gives the lanes to `on_start`, and it drops the returned value after `stop` was raised.
pub fn serve<T>(
    listeners: Vec<Listener>,
    services: Vec<Box<dyn Service>>,
    config: ServeConfig,
    stop: Stop,
    on_start: impl FnOnce(Lanes) -> Result<T, Error>,
) -> Result<(), Error> {
    let counters = Arc::new(Counters::default());
    let shared =
        Shared { config: Arc::new(config), counters: Arc::clone(&counters), stop, started: Instant::now() };
    let (mut lanes, mut threads) = (Vec::new(), Vec::new());
    for (lane, service) in services.into_iter().enumerate() {
        let (sender, receiver) = mpsc::unbounded_channel();
        let of_lane = shared.clone();
        let run = move || {
            // However the thread ends, it raises the stop, so that the other threads do not continue without it.
            let _raised = RaiseOnDrop(of_lane.stop.clone());
            lane_thread::run(lane, service, receiver, of_lane)
        };
        let thread = std::thread::Builder::new().name(format!("lane-{lane}")).spawn(run);
        let thread = thread.map_err(|source| Error::Io { what: format!("start lane {lane}"), source });
        match thread {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                shared.stop.raise();
                return Err(error);
            }
        }
        lanes.push(sender);
    }
    let (stop, lanes) = (shared.stop.clone(), Lanes::new(lanes, counters));
    let served = on_start(lanes.clone()).and_then(|_dropped_at_the_end| {
        let accepted = Acceptor::new(lanes, shared).run(&listeners);
        drop(listeners);
        stop.raise();
        accepted
    });
    stop.raise();
    let ended: Vec<_> = threads.into_iter().map(std::thread::JoinHandle::join).collect();
    for (lane, result) in ended.into_iter().enumerate() {
        result.unwrap_or(Err(Error::Lane { lane }))?;
    }
    served
}

struct RaiseOnDrop(Stop);

impl Drop for RaiseOnDrop {
    fn drop(&mut self) {
        self.0.raise();
    }
}
