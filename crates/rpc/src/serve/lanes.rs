//! The lanes of a process as its other threads reach them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::accept::{AuthenticatedConnection, LaneCommand};
use crate::metrics::Metrics;

/// A lane that does not answer for so long is not well.
const LANE_TIME: Duration = Duration::from_secs(2);

/// All lanes, lane 0 first. Clones reach the same ones; one that has ended hears nothing any more.
#[derive(Clone, Debug)]
pub struct Lanes(Arc<[mpsc::UnboundedSender<LaneCommand>]>);

impl Lanes {
    pub(super) fn new(senders: Vec<mpsc::UnboundedSender<LaneCommand>>) -> Self {
        Self(senders.into())
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// A lane that is gone is stopping, and closes all connections; so is one that is not there.
    pub(super) fn hand_to_lane(&self, lane: u16, greeted: AuthenticatedConnection) {
        if let Some(sender) = self.0.get(usize::from(lane)) {
            let _ = sender.send(LaneCommand::Connection(Box::new(greeted)));
        }
    }

    /// Calls the service of a lane as if its time had come ([`crate::ParameterServiceConfig::on_time`]), soon: for what reaches it past
    /// its connections. Whoever calls often sees to it that not many calls wait.
    pub fn wake(&self, lane: u16) {
        if let Some(sender) = self.0.get(usize::from(lane)) {
            // One that is gone needs no waking.
            let _ = sender.send(LaneCommand::Wake);
        }
    }

    /// Whether all lanes answer within 2 s; the text names the first that does not.
    pub async fn check(&self) -> Result<(), String> {
        self.metrics().await.map(drop)
    }

    /// The metrics of all lanes, or which one did not answer.
    pub(super) async fn metrics(&self) -> Result<Metrics, String> {
        let unwell = |lane: usize| format!("lane {lane} did not answer in {} s", LANE_TIME.as_secs());
        let mut replies = Vec::new();
        for (lane, sender) in self.0.iter().enumerate() {
            let (reply, answered) = oneshot::channel();
            sender.send(LaneCommand::Metrics(reply)).map_err(|_| unwell(lane))?;
            replies.push(answered);
        }
        let mut all = Metrics::default();
        for (lane, answered) in replies.into_iter().enumerate() {
            let Ok(Ok(of_lane)) = timeout(LANE_TIME, answered).await else { return Err(unwell(lane)) };
            all.merge(of_lane);
        }
        Ok(all)
    }
}
