//! The thread of a lane.

use std::rc::Rc;

use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio::time::timeout;

use super::connection;
use super::lane::Lane;
use super::lane_command::LaneCommand;
use super::runtime::{first_of, runtime};
use super::shared::Shared;
use crate::error::Error;
use crate::service::Service;

/// Runs the thread until the stop is raised.
pub(super) fn run(
    lane: usize,
    service: Box<dyn Service>,
    mut incoming: mpsc::UnboundedReceiver<LaneCommand>,
    shared: Shared,
) -> Result<(), Error> {
    let runtime = runtime()?;
    let stop = shared.stop.clone();
    let this = Rc::new(Lane::new(lane, service, shared));
    let tasks = LocalSet::new();
    tasks.spawn_local(Rc::clone(&this).run_timer());
    tasks.block_on(&runtime, async {
        loop {
            let stopped = async {
                stop.raised().await;
                None
            };
            match first_of(stopped, incoming.recv()).await {
                None => break,
                Some(LaneCommand::Connection(greeted)) => {
                    tokio::task::spawn_local(connection::run(Rc::clone(&this), *greeted));
                }
                Some(LaneCommand::Wake) => this.on_time(),
                Some(LaneCommand::Metrics(reply)) => {
                    // The requester may be gone.
                    let _ = reply.send(this.metrics());
                }
            }
        }
        // The last messages are still written.
        let _ = timeout(this.limits().close_time, this.close_all()).await;
    });
    if this.has_panicked() { Err(Error::Lane { lane }) } else { Ok(()) }
}
