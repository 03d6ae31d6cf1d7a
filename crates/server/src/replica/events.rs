//! What the lanes of a process hear of the cluster.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rpc::message::JobId;
use rpc::serve::Lanes;

/// An event that the lanes of a server must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterEvent {
    /// The master has lost the server of this name.
    ServerLost(String),
    /// These jobs end on this server, whatever their standbys do: they go on without it, or not at all.
    JobsEnd(Vec<JobId>),
}

/// Brings events to the lanes of a process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct ClusterEvents(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// None before the lanes run.
    lanes: Option<Lanes>,
    /// The events that lanes have not taken, by lane.
    events: BTreeMap<u16, VecDeque<ClusterEvent>>,
}

impl ClusterEvents {
    /// Tells all lanes.
    pub fn tell(&self, event: &ClusterEvent) {
        let mut state = self.lock();
        for events in state.events.values_mut() {
            events.push_back(event.clone());
        }
        let lanes: Vec<u16> = state.events.keys().copied().collect();
        for lane in lanes {
            state.wake(lane);
        }
    }

    /// A lane takes events from now on.
    pub(super) fn subscribe(&self, lane: u16) {
        self.lock().events.entry(lane).or_default();
    }

    /// The next event for a lane.
    pub(super) fn take(&self, lane: u16) -> Option<ClusterEvent> {
        self.lock().events.get_mut(&lane)?.pop_front()
    }

    pub(crate) fn set_lanes(&self, lanes: Lanes) {
        self.lock().lanes = Some(lanes);
    }

    /// Lets a lane look at what does not come over its connections.
    pub(super) fn wake(&self, lane: u16) {
        self.lock().wake(lane);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake(&self, lane: u16) {
        if let Some(lanes) = &self.lanes {
            lanes.wake(lane);
        }
    }
}
