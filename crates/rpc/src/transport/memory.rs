//! A connection inside one process, for tests: two bounded pipes of bytes, so that the codec and the waiting are those
//! of a socket.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most bytes under way in one direction.
const CAPACITY_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Memory {
    incoming: Arc<Pipe>,
    outgoing: Arc<Pipe>,
}

#[derive(Debug, Default)]
struct Pipe {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: VecDeque<u8>,
    is_closed: bool,
    read_limit: Option<Duration>,
    write_limit: Option<Duration>,
}

/// The two ends of one connection.
pub(super) fn pair() -> (Memory, Memory) {
    let (there, back) = (Arc::new(Pipe::default()), Arc::new(Pipe::default()));
    let one = Memory { incoming: Arc::clone(&back), outgoing: Arc::clone(&there) };
    (one, Memory { incoming: there, outgoing: back })
}

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the condition holds or the limit of the state has passed.
    fn wait(
        &self,
        limit: impl Fn(&State) -> Option<Duration>,
        is_ready: impl Fn(&State) -> bool,
    ) -> io::Result<MutexGuard<'_, State>> {
        let started = Instant::now();
        let mut state = self.lock();
        while !is_ready(&state) {
            let limit = limit(&state).unwrap_or(Duration::MAX);
            let rest = limit.saturating_sub(started.elapsed());
            if rest.is_zero() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            state = self.changed.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(state)
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }
}

impl Memory {
    pub(super) fn set_read_limit(&self, limit: Option<Duration>) {
        self.incoming.lock().read_limit = limit;
    }

    pub(super) fn set_write_limit(&self, limit: Option<Duration>) {
        self.outgoing.lock().write_limit = limit;
    }

    pub(super) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut state = self
            .incoming
            .wait(|state| state.read_limit, |state| !state.bytes.is_empty() || state.is_closed)?;
        let count = into.len().min(state.bytes.len());
        for (to, byte) in into.iter_mut().zip(state.bytes.drain(..count)) {
            *to = byte;
        }
        self.incoming.changed.notify_all();
        Ok(count)
    }

    pub(super) fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = self
            .outgoing
            .wait(|state| state.write_limit, |state| state.bytes.len() < CAPACITY_BYTES || state.is_closed)?;
        if state.is_closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut count = 0;
        for slice in slices {
            let taken = slice.len().min(CAPACITY_BYTES - state.bytes.len());
            state.bytes.extend(&slice[..taken]);
            count += taken;
        }
        self.outgoing.changed.notify_all();
        Ok(count)
    }

    pub(super) fn shutdown(&self) {
        self.incoming.close();
        self.outgoing.close();
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.shutdown();
    }
}
