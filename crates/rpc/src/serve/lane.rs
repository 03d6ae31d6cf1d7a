//! A service with its connections and its timer; carries out the effects of the service.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::connection_writer::ConnectionWriter;
use super::counters::{Counters, add, count};
use super::faults::fault_of;
use super::runtime::first_of;
use super::shared::Shared;
use super::socket::WriteHalf;
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

impl Lane {
    pub(super) fn new(number: usize, service: Box<dyn Service>, shared: Shared) -> Self {
        let next_time = service.next_time();
        let state =
            State { service, connections: HashMap::new(), dirty: Vec::new(), effects: Vec::new(), next_time };
        Self {
            shared,
            number,
            state: RefCell::new(state),
            timer: Notify::new(),
            removed: Notify::new(),
            next_id: Cell::new(1),
            is_stopping: Cell::new(false),
            has_panicked: Cell::new(false),
        }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.shared.config.limits
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    pub(super) fn has_panicked(&self) -> bool {
        self.has_panicked.get()
    }

    /// The metrics of the service.
    pub(super) fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::default();
        self.state.borrow().service.metrics(&mut metrics);
        metrics
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

    pub(super) fn on_time(&self) {
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
    pub(super) async fn run_timer(self: Rc<Self>) {
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

    /// Closes all connections and waits until they are written out.
    pub(super) async fn close_all(&self) {
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
