//! A thread with one service: its connections, its timer, and the effects of the service.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc};
use tokio::task::LocalSet;
use tokio::time::timeout;

use super::accept::{LaneCommand, fault_of};
use super::connection;
use super::connection_writer::ConnectionWriter;
use super::counters::{Counters, add, count};
use super::socket::WriteHalf;
use super::{Shared, first_of, runtime};
use crate::error::Error;
use crate::limits::Limits;
use crate::log_request;
use crate::message::Message;
use crate::metrics::Metrics;
use crate::service::{ConnectionId, Effect, Service};
use crate::trace::{RequestIdentity, SLOW_REQUEST};

/// Shortest time between two calls of `on_time`, whatever the service asks for.
const TIMER_PAUSE: Duration = Duration::from_millis(1);

/// The state that the tasks of the thread share.
pub(super) struct Lane {
    shared: Shared,
    /// The position of the lane in the process.
    number: usize,
    state: RefCell<State>,
    /// Signals that the next time has changed.
    timer: Notify,
    /// Signals that a connection was removed.
    removed: Notify,
    next_id: Cell<ConnectionId>,
    is_stopping: Cell<bool>,
    has_panicked: Cell<bool>,
}

struct State {
    service: Box<dyn Service>,
    connections: HashMap<ConnectionId, Rc<ConnectionWriter>>,
    /// Writers with something to write.
    dirty: Vec<Rc<ConnectionWriter>>,
    effects: Vec<Effect>,
    next_time: Option<Duration>,
}

/// Runs the thread until the stop is raised.
pub(super) fn run(
    lane: usize,
    service: Box<dyn Service>,
    mut incoming: mpsc::UnboundedReceiver<LaneCommand>,
    shared: Shared,
) -> Result<(), Error> {
    let runtime = runtime()?;
    let stop = shared.stop.clone();
    let next_time = service.next_time();
    let state =
        State { service, connections: HashMap::new(), dirty: Vec::new(), effects: Vec::new(), next_time };
    let this = Rc::new(Lane {
        shared,
        number: lane,
        state: RefCell::new(state),
        timer: Notify::new(),
        removed: Notify::new(),
        next_id: Cell::new(1),
        is_stopping: Cell::new(false),
        has_panicked: Cell::new(false),
    });
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
                    let mut metrics = Metrics::default();
                    this.state.borrow().service.metrics(&mut metrics);
                    // The requester may be gone.
                    let _ = reply.send(metrics);
                }
            }
        }
        // The last messages are still written.
        let _ = timeout(this.limits().close_time, this.close_all()).await;
    });
    if this.has_panicked.get() { Err(Error::Lane { lane }) } else { Ok(()) }
}

impl Lane {
    pub(super) fn limits(&self) -> &Limits {
        &self.shared.config.limits
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.get()
    }

    /// Adds a connection; the service does not know it yet.
    pub(super) fn add(&self, checksum: bool, write: WriteHalf) -> Rc<ConnectionWriter> {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        let link = Rc::new(ConnectionWriter::new(id, checksum, write));
        self.state.borrow_mut().connections.insert(id, Rc::clone(&link));
        link
    }

    /// Removes a connection and informs the service.
    pub(super) fn remove(&self, id: ConnectionId) {
        self.state.borrow_mut().connections.remove(&id);
        self.call(|service, now, out| service.on_closed(now, id, out));
        self.flush();
        self.removed.notify_one();
    }

    pub(super) fn message(&self, id: ConnectionId, message: Message) {
        let (identity, start) = (RequestIdentity::of(&message), Instant::now());
        self.call(|service, now, out| service.on_message(now, id, message, out));
        let spent = start.elapsed();
        if spent >= SLOW_REQUEST
            && let Some(identity) = identity
        {
            log_request!(
                info,
                identity,
                lane = self.number,
                served_ms = spent.as_millis() as u64,
                "slow request"
            );
        }
    }

    pub(super) fn wrote(&self, bytes: usize) {
        add(&self.counters().bytes_out, bytes);
    }

    /// Writes what the last calls have queued for all connections, as far as the sockets accept it at once.
    pub(super) fn flush(&self) {
        {
            let mut state = self.state.borrow_mut();
            if !state.dirty.is_empty() {
                state.service.persist();
            }
        }
        loop {
            let Some(link) = self.state.borrow_mut().dirty.pop() else { return };
            link.is_dirty.set(false);
            if let Ok(bytes) = link.flush() {
                self.wrote(bytes);
            } else {
                link.clear();
                link.close();
            }
        }
    }

    fn on_time(&self) {
        self.call(|service, now, out| service.on_time(now, out));
        self.flush();
    }

    fn now(&self) -> Duration {
        self.shared.started.elapsed()
    }

    /// Calls the service and applies its effects.
    fn call(&self, call: impl FnOnce(&mut dyn Service, Duration, &mut Vec<Effect>)) {
        if self.has_panicked.get() {
            return;
        }
        let _guard = StopOnPanic(self);
        let now = self.now();
        let mut state = self.state.borrow_mut();
        let State { service, connections, dirty, effects, next_time } = &mut *state;
        call(service.as_mut(), now, effects);
        for effect in effects.drain(..) {
            self.apply(effect, connections, dirty);
        }
        let next = service.next_time();
        if *next_time != next {
            *next_time = next;
            self.timer.notify_one();
        }
    }

    fn apply(
        &self,
        effect: Effect,
        connections: &HashMap<ConnectionId, Rc<ConnectionWriter>>,
        dirty: &mut Vec<Rc<ConnectionWriter>>,
    ) {
        let (Effect::Send { connection, .. }
        | Effect::Close { connection }
        | Effect::Pause { connection }
        | Effect::Resume { connection }) = &effect;
        let Some(link) = connections.get(connection) else { return };
        match effect {
            Effect::Send { .. } if link.is_closing.get() => {}
            Effect::Send { message, .. } => self.push(link, message, dirty),
            Effect::Close { .. } => link.close(),
            Effect::Pause { .. } => link.pause(),
            Effect::Resume { .. } => link.resume(),
        }
    }

    fn push(&self, link: &Rc<ConnectionWriter>, message: Message, dirty: &mut Vec<Rc<ConnectionWriter>>) {
        let kind = message.kind_name();
        match link.push(message, self.limits()) {
            Ok(bytes) if bytes > self.limits().outbound_bytes => {
                count(&self.counters().closed_outbound);
                tracing::warn!(
                    connection = link.id,
                    bytes,
                    "closed a connection that does not read its answers"
                );
                link.clear();
                link.close();
            }
            Ok(_) => count(&self.counters().frames_out),
            Err(error) => {
                tracing::error!(connection = link.id, kind, %error, "cannot send an answer");
                let fault = Message::Fault(fault_of(0, &error));
                let _ = link.push(fault, self.limits());
                link.close();
            }
        }
        if !link.is_dirty.replace(true) {
            dirty.push(Rc::clone(link));
        }
    }

    /// Calls the service at the times that it asks for.
    async fn run_timer(self: Rc<Self>) {
        loop {
            let next = self.state.borrow().next_time;
            match next {
                None => self.timer.notified().await,
                Some(next) if next > self.now() => {
                    let due = tokio::time::Instant::from_std(self.shared.started + next);
                    first_of(tokio::time::sleep_until(due), self.timer.notified()).await;
                }
                Some(_) => {
                    self.on_time();
                    tokio::time::sleep(TIMER_PAUSE).await;
                }
            }
        }
    }

    async fn close_all(&self) {
        self.is_stopping.set(true);
        self.state.borrow().connections.values().for_each(|link| link.close());
        while !self.state.borrow().connections.is_empty() {
            self.removed.notified().await;
        }
    }
}

/// Stops the process when the service panics, because its state cannot be trusted any more.
struct StopOnPanic<'a>(&'a Lane);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.has_panicked.set(true);
            self.0.shared.stop.raise();
        }
    }
}
