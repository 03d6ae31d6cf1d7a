//! The lanes of a process, for its other threads.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::counters::Counters;
use super::lane_command::{AuthenticatedConnection, LaneCommand};
use crate::metrics::Metrics;

/// A lane that does not answer within this time is not healthy.
const LANE_TIME: Duration = Duration::from_secs(2);

/// All lanes, lane 0 first. Clones reach the same lanes. A lane that has ended ignores commands.
#[derive(Clone, Debug)]
pub struct Lanes {
    senders: Arc<[mpsc::UnboundedSender<LaneCommand>]>,
    counters: Arc<Counters>,
}

impl Lanes {
    pub(super) fn new(senders: Vec<mpsc::UnboundedSender<LaneCommand>>, counters: Arc<Counters>) -> Self {
        Self { senders: senders.into(), counters }
    }

    pub(super) fn count(&self) -> usize {
        self.senders.len()
    }

    /// Passes a connection to its lane. If the lane does not exist or has ended, the connection is closed.
    pub(super) fn hand_to_lane(&self, lane: u16, greeted: AuthenticatedConnection) {
        if let Some(sender) = self.senders.get(usize::from(lane)) {
            let _ = sender.send(LaneCommand::Connection(Box::new(greeted)));
        }
    }

    /// Makes the lane call [`crate::Service::on_time`] soon, as if its time had come. It is for input that does not
    /// come over connections. A caller that calls often must limit how many calls wait.
    pub fn wake(&self, lane: u16) {
        if let Some(sender) = self.senders.get(usize::from(lane)) {
            // A lane that has ended needs no waking.
            let _ = sender.send(LaneCommand::Wake);
        }
    }

    /// The metrics of the connections and of all lanes; the error names a lane that did not answer within 2 s.
    pub async fn metrics(&self) -> Result<Metrics, String> {
        let unwell = |lane: usize| format!("lane {lane} did not answer within {} s", LANE_TIME.as_secs());
        let mut replies = Vec::new();
        for (lane, sender) in self.senders.iter().enumerate() {
            let (reply, answered) = oneshot::channel();
            sender.send(LaneCommand::Metrics(reply)).map_err(|_| unwell(lane))?;
            replies.push(answered);
        }
        let mut all = Metrics::default();
        self.counters.metrics(&mut all);
        for (lane, answered) in replies.into_iter().enumerate() {
            let Ok(Ok(of_lane)) = timeout(LANE_TIME, answered).await else { return Err(unwell(lane)) };
            all.merge(of_lane);
        }
        Ok(all)
    }
}
