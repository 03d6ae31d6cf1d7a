//! The thread of a member: receives from the master, sends heartbeats, and reconnects.

use std::sync::Arc;
use std::sync::mpsc::Sender as Events;
use std::time::{Duration, Instant};

use rpc::message::{Control, ControlBody, Fault, FaultKind, JobId};
use rpc::reliable_queue::{ReliableQueue, SequenceCheck};
use rpc::trace::log_control;
use rpc::{Error, Message, Receiver};

use crate::config::{MemberConfig, MemberEvent};
use crate::registration::{
    AttemptResult, Backoff, MIN_ATTEMPT_TIME, MemberLease, RegisteredConnection, is_transient, try_register,
};
use crate::shared::{LEAVE_LIMIT, Shared};

/// Why the thread ends.
enum End {
    /// All handles of the member were dropped, or it leaves.
    Left,
    /// The master is lost.
    MasterLost(String),
    /// Another master has replaced it.
    MasterRestarted(Vec<JobId>),
}

pub(crate) struct MemberThread {
    config: MemberConfig,
    shared: Arc<Shared>,
    events: Events<MemberEvent>,
    id: u32,
    master_incarnation: u64,
    lease: Duration,
    heartbeat: Duration,
    /// When the last message of the master arrived.
    received_at: Instant,
}

impl MemberThread {
    pub(crate) fn new(
        config: MemberConfig,
        shared: Arc<Shared>,
        events: Events<MemberEvent>,
        registered: &MemberLease,
    ) -> Self {
        let MemberLease { id, lease, heartbeat, incarnation } = *registered;
        let received_at = Instant::now();
        Self { config, shared, events, id, master_incarnation: incarnation, lease, heartbeat, received_at }
    }

    pub(crate) fn run(mut self, mut receiver: Receiver) {
        let end = loop {
            let problem = match self.run_connection(&mut receiver) {
                Ok(end) => break end,
                Err(problem) => problem,
            };
            self.disconnect();
            tracing::warn!(master = %self.config.master, %problem, "lost the connection to the master");
            match self.reconnect(&problem) {
                Ok(again) => receiver = again,
                Err(end) => break end,
            }
        };
        self.disconnect();
        // The receiver of events may be gone.
        let _ = match end {
            End::Left => Ok(()),
            End::MasterLost(reason) => self.events.send(MemberEvent::MasterLost { reason }),
            End::MasterRestarted(continued) => self.events.send(MemberEvent::MasterRestarted { continued }),
        };
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
    }

    fn disconnect(&self) {
        if let Some(sender) = self.shared.lock().sender.take() {
            sender.shutdown();
        }
    }

    /// Whether somebody still has a handle of the member and it does not leave.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.shared) > 1 && !self.shared.leave_requested.is_raised()
    }

    /// Sends again what the master may not have received, and makes the connection available to senders.
    fn adopt_connection(&mut self, contact: RegisteredConnection, before: Instant) -> Receiver {
        let RegisteredConnection { mut sender, receiver, lease: registered, .. } = contact;
        self.received_at = Instant::now();
        (self.lease, self.heartbeat) = (registered.lease, registered.heartbeat);
        let mut link = self.shared.lock();
        if registered.id != self.id {
            // The receiver of events may be gone.
            let _ = self.events.send(MemberEvent::LeaseExpired { before });
            self.id = registered.id;
            link.id = registered.id;
            link.queue = ReliableQueue::default();
        }
        link.queue.reset_acknowledgement();
        let mut messages: Vec<Message> = link.queue.unacknowledged().cloned().map(Message::Control).collect();
        let confirmation = link.queue.take_acknowledgement();
        messages.extend(confirmation.map(|body| Message::Control(Control { request: 0, body })));
        if !messages.is_empty() && sender.send_all(&messages).is_err() {
            // The receiver notices it, and the messages are sent again on the next connection.
            sender.shutdown();
        }
        link.sender = Some(sender);
        receiver
    }

    /// Receives from the master until the connection is lost (an error) or the thread is to end.
    fn run_connection(&mut self, receiver: &mut Receiver) -> Result<End, Error> {
        // The first heartbeat is sent at once, so that the master shows the report of a new member.
        let mut beat_at = Instant::now();
        let mut leaving_since = None;
        loop {
            let now = Instant::now();
            if Arc::strong_count(&self.shared) == 1 && !self.shared.leave_requested.is_raised() {
                return Ok(End::Left);
            }
            if self.shared.leave_requested.is_raised() {
                let since = *leaving_since.get_or_insert_with(|| {
                    // Sends `Leave` again, because the connection may be newer than the request to leave. The master
                    // closes the connection.
                    self.shared.lock().send(Control { request: 0, body: ControlBody::Leave });
                    now
                });
                if now.duration_since(since) >= LEAVE_LIMIT {
                    return Ok(End::Left);
                }
            }
            if now.duration_since(self.received_at) >= self.lease.min(self.config.lost_limit) {
                return Err(Error::TimedOut { during: "waiting for a message from the master" });
            }
            if now >= beat_at {
                self.send_heartbeat();
                beat_at = now + self.heartbeat;
            }
            receiver.set_timeout(Some(beat_at.saturating_duration_since(Instant::now())))?;
            match receiver.receive() {
                Ok(message) => {
                    self.received_at = Instant::now();
                    self.on_message(message)?;
                }
                Err(Error::TimedOut { .. }) => {}
                Err(_) if self.shared.leave_requested.is_raised() => return Ok(End::Left),
                Err(error) => return Err(error),
            }
        }
    }

    fn send_heartbeat(&self) {
        let mut link = self.shared.lock();
        let body = ControlBody::Heartbeat { id: self.id, report: link.report.clone() };
        link.send(Control { request: 0, body });
        if let Some(body) = link.queue.take_acknowledgement() {
            link.send(Control { request: 0, body });
        }
    }

    fn on_message(&self, message: Message) -> Result<(), Error> {
        match message {
            Message::Control(Control { request, body }) => match body {
                ControlBody::Heard { count } => {
                    self.shared.lock().queue.acknowledge_up_to(count);
                    self.shared.changed.notify_all();
                }
                ControlBody::ToTask { .. } | ControlBody::Gone { .. } => self.on_numbered(request, body)?,
                // Other messages only renew the time of the last message.
                _ => {}
            },
            // The master does not know this connection any more: register again.
            Message::Fault(fault) if fault.kind == FaultKind::NotFound => return Err(Error::Refused(fault)),
            Message::Fault(Fault { kind, text, .. }) => {
                tracing::warn!(?kind, text, "the master refused a message of this member");
            }
            other => {
                return Err(Error::Unexpected { expected: "Control", actual: other.kind_name() });
            }
        }
        Ok(())
    }

    fn on_numbered(&self, number: u64, body: ControlBody) -> Result<(), Error> {
        let mut link = self.shared.lock();
        let arrival = link.queue.receive(number);
        if link.queue.is_acknowledgement_due()
            && let Some(body) = link.queue.take_acknowledgement()
        {
            link.send(Control { request: 0, body });
        }
        drop(link);
        match arrival {
            SequenceCheck::New => {
                log_control("received from the master", self.id, number, &body);
                // The receiver of events may be gone.
                let _ = self.events.send(MemberEvent::Message(body));
                Ok(())
            }
            SequenceCheck::Duplicate => Ok(()),
            SequenceCheck::Gap => {
                Err(Error::Unexpected { expected: "the next message", actual: "a later message" })
            }
        }
    }

    /// Retries with growing pauses until the master has been silent for the limit. It makes at least one attempt,
    /// because this process may have been suspended itself.
    fn reconnect(&mut self, problem: &Error) -> Result<Receiver, End> {
        let deadline = self.received_at + self.config.lost_limit;
        let (mut last, mut attempt_count, mut pauses) = (problem.to_string(), 0, Backoff::new());
        loop {
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() && attempt_count > 0 {
                return Err(End::MasterLost(format!(
                    "no master answers at {} for {:.1} s, the limit: {attempt_count} attempts, the last: {last}",
                    self.config.master,
                    self.config.lost_limit.as_secs_f64()
                )));
            }
            attempt_count += 1;
            let before = Instant::now();
            match try_register(
                &self.config,
                rest.max(MIN_ATTEMPT_TIME).min(self.lease),
                Some(self.master_incarnation),
            ) {
                Ok(AttemptResult::MasterRestarted { continued }) => {
                    return Err(End::MasterRestarted(continued));
                }
                Ok(AttemptResult::Registered(contact)) => {
                    let receiver = self.adopt_connection(contact, before);
                    // The receiver of events may be gone.
                    let _ = self.events.send(MemberEvent::Reconnected);
                    return Ok(receiver);
                }
                Err(error) if is_transient(&error) => last = error.to_string(),
                Err(error) => return Err(End::MasterLost(error.to_string())),
            }
            let pause = pauses.next().min(deadline.saturating_duration_since(Instant::now()));
            self.shared.leave_requested.wait(pause);
            if !self.is_in_use() {
                return Err(End::Left);
            }
        }
    }
}
