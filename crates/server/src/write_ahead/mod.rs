//! The write-ahead log of a lane: every change is written to a file before its acknowledgement is sent. A server that
//! dies is started again, reads the file, and is what it was: no task goes back.
//!
//! A lane is a pure state machine, so the log is the messages that have changed it, as frames, in the order of the
//! changes. A message that was refused is not in it, nor is a pull. Requests that wait are not in it either: their tasks
//! send them again over the next connection.
//!
//! The loop around a service calls `Service::persist` before it writes to any socket, so one write, or one sync, serves all messages that were
//! handled since the last. The process that reads a log has the incarnation of the one that wrote it: agents then connect again as after a reset, and
//! the master knows it as the same member. If the master has lost that member, the new process closes what it has read.

pub mod files;
mod folder;
pub(crate) mod image;
mod lane;

use crate::changes::{recorder, replay};
use crate::state::LaneState;

impl LaneState {
    /// Records all changes from now on.
    pub fn start_recording(&mut self) {
        self.recorder = Some(recorder::Recorder::Log(recorder::Frames::default()));
    }

    /// The frames of the changes since the last call. Before anything is sent that depends on them, they have to be
    /// durable.
    pub fn take_recorded(&mut self) -> Vec<u8> {
        self.recorder.as_mut().map(recorder::Recorder::take).unwrap_or_default()
    }

    /// The lists of keys of earlier pushes are not in what is recorded from now on.
    pub(crate) fn forget_recorded_key_lists(&mut self) {
        for connection in self.connections.values_mut() {
            connection.recorded_count += recorder::LIST_COUNT as u64 + 1;
        }
    }

    /// Repeats the changes of a log on a new lane. The last one may be incomplete. The error says why the lane is not what
    /// it was.
    pub fn replay(&mut self, log: &[u8]) -> Result<(), String> {
        replay::replay_frames(log, self).map(drop)
    }
}
