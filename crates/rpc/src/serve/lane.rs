//! A thread with one service: its connections, its timer, and the effects it wants.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc};
use tokio::task::LocalSet;
use tokio::time::timeout;

use super::accept::{Incoming, fault_of};
use super::connection;
use super::counters::{Counters, add, count};
use super::link::Link;
use super::{Shared, first_of, runtime};
use crate::error::Error;
use crate::limits::Limits;
use crate::log_request;
use crate::message::Message;
use crate::service::{ConnectionId, Effect, Service};
use crate::trace::{RequestIdentity, SLOW_REQUEST};

/// Shortest time between two calls of `on_time`, whatever the service says.
const TIMER_PAUSE: Duration = Duration::from_millis(1);

/// What the tasks of the thread share.
pub(super) struct Lane {
    shared: Shared,
    /// Its place among the lanes of the process.
    number: usize,
    state: RefCell<State>,
    /// The next time has changed.
    timer: Notify,
    /// A connection was removed.
    removed: Notify,
    is_stopping: Cell<bool>,
    has_panicked: Cell<bool>,
}

struct State {
    service: Box<dyn Service>,
    links: HashMap<ConnectionId, Rc<Link>>,
    /// Links with something to write.
    dirty: Vec<Rc<Link>>,
    effects: Vec<Effect>,
    next_time: Option<Duration>,
}

/// The thread: until the stop is raised.
pub(super) fn run(
    lane: usize,
    service: Box<dyn Service>,
    mut incoming: mpsc::UnboundedReceiver<Incoming>,
    shared: Shared,
) -> Result<(), Error> {
    let runtime = runtime()?;
    let stop = shared.stop.clone();
    let next_time = service.next_time();
    let state = State { service, links: HashMap::new(), dirty: Vec::new(), effects: Vec::new(), next_time };
    let this = Rc::new(Lane {
        shared,
        number: lane,
        state: RefCell::new(state),
        timer: Notify::new(),
        removed: Notify::new(),
        is_stopping: Cell::new(false),
        has_panicked: Cell::new(false),
    });
    let tasks = LocalSet::new();
    tasks.spawn_local(Rc::clone(&this).keep_time());
    tasks.block_on(&runtime, async {
        let mut next_id: ConnectionId = 1;
        loop {
            let stopped = async {
                stop.raised().await;
                None
            };
            match first_of(stopped, incoming.recv()).await {
                None => break,
                Some(Incoming::Connection(greeted)) => {
                    tokio::task::spawn_local(connection::run(Rc::clone(&this), next_id, *greeted));
                    next_id += 1;
                }
                Some(Incoming::Wake) => this.on_time(),
                Some(Incoming::Metrics(reply)) => {
                    let mut text = String::new();
                    this.state.borrow().service.metrics(&mut text);
                    // Who asked may be gone.
                    let _ = reply.send(text);
                }
            }
        }
        // What was said last is still written.
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

    pub(super) fn add(&self, link: &Rc<Link>) {
        self.state.borrow_mut().links.insert(link.id, Rc::clone(link));
    }

    /// The connection is over, and the service is told.
    pub(super) fn remove(&self, id: ConnectionId) {
        self.state.borrow_mut().links.remove(&id);
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
                "served slowly"
            );
        }
    }

    pub(super) fn wrote(&self, bytes: usize) {
        add(&self.counters().bytes_out, bytes);
    }

    /// Writes to all links what the last calls wanted written, as far as it goes at once.
    pub(super) fn flush(&self) {
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

    /// Calls the service and does what it wants.
    fn call(&self, call: impl FnOnce(&mut dyn Service, Duration, &mut Vec<Effect>)) {
        if self.has_panicked.get() {
            return;
        }
        let _guard = StopOnPanic(self);
        let now = self.now();
        let mut state = self.state.borrow_mut();
        let State { service, links, dirty, effects, next_time } = &mut *state;
        call(service.as_mut(), now, effects);
        for effect in effects.drain(..) {
            self.apply(effect, links, dirty);
        }
        let next = service.next_time();
        if *next_time != next {
            *next_time = next;
            self.timer.notify_one();
        }
    }

    fn apply(&self, effect: Effect, links: &HashMap<ConnectionId, Rc<Link>>, dirty: &mut Vec<Rc<Link>>) {
        match effect {
            Effect::Send { connection, message } => {
                let Some(link) = links.get(&connection).filter(|link| !link.is_closing.get()) else { return };
                self.send(link, message);
                if !link.is_dirty.replace(true) {
                    dirty.push(Rc::clone(link));
                }
            }
            Effect::Close { connection } => {
                if let Some(link) = links.get(&connection) {
                    link.close();
                }
            }
            Effect::Pause { connection } => {
                if let Some(link) = links.get(&connection) {
                    link.is_paused.set(true);
                }
            }
            Effect::Resume { connection } => {
                if let Some(link) = links.get(&connection) {
                    link.is_paused.set(false);
                    link.read_wake.notify_one();
                }
            }
        }
    }

    fn send(&self, link: &Link, message: Message) {
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
                tracing::error!(connection = link.id, kind, %error, "an answer cannot be sent");
                let _ = link.push(Message::Fault(fault_of(0, &error)), self.limits());
                link.close();
            }
        }
    }

    /// Calls the service when it wants to be called.
    async fn keep_time(self: Rc<Self>) {
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
        self.state.borrow().links.values().for_each(|link| link.close());
        while !self.state.borrow().links.is_empty() {
            self.removed.notified().await;
        }
    }
}

/// A service that panicked cannot be trusted any more.
struct StopOnPanic<'a>(&'a Lane);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.has_panicked.set(true);
            self.0.shared.stop.raise();
        }
    }
}
