//! The connections that the tasks of a process share, one to each lane.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rpc::message::{Hello, Welcome};
use rpc::transport::MultiplexedConnection;
use rpc::{ConnectOptions, Error, Receiver, Sender};

use crate::lane_connection::connect_first;
use crate::layout::LaneAddress;

/// Lets the agents of several tasks of one process reach each lane over one connection. Messages of the same moment are
/// sent together, and so are the answers. Clones share the connections. A process with one task is faster without it.
#[derive(Clone, Debug, Default)]
pub struct Multiplexer(Arc<Mutex<BTreeMap<String, Slot>>>);

/// The connection to a lane. It is locked while it is opened, so that tasks that start together open only one.
type Slot = Arc<Mutex<Option<MultiplexedConnection>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Multiplexer {
    /// Opens a stream to a lane, over the connection that exists or over a new one.
    pub(crate) fn open(
        &self,
        place: &LaneAddress,
        limit: Duration,
        hello: &Hello,
    ) -> Result<(Sender, Receiver, Welcome), Error> {
        let start = Instant::now();
        let key = format!("{} {}", place.lane, place.addresses.join(" "));
        let slot = Arc::clone(lock(&self.0).entry(key).or_default());
        let mut slot = lock(&slot);
        if let Some(connection) = slot.as_ref().filter(|connection| !connection.is_over()).cloned() {
            // The answer may take a while, and the next task need not wait for it.
            drop(slot);
            return connection.open(limit, hello);
        }
        if start.elapsed() >= limit {
            // The task that held the lock has found that the lane cannot be reached.
            return Err(Error::TimedOut { during: "connecting" });
        }
        let connect =
            |address: &_| MultiplexedConnection::connect(address, limit, hello, ConnectOptions::default());
        let (connection, opened) = connect_first(place, connect)?;
        *slot = Some(connection);
        Ok(opened)
    }
}
