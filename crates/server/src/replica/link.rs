//! The connection of a primary to the standby of one job.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rpc::message::{Fault, FaultKind, Hello, JobId, Message, Role, Standby};
use rpc::{FrameLimits, Receiver, Sender};

use super::events::ClusterEvents;
use crate::changes::recorder::Frames;

/// Longest wait for a connection to the standby, and for bytes of it before the link looks whether it is still needed.
const WAIT_LIMIT: Duration = Duration::from_secs(1);
/// Pause between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(20);

/// Sends the changes of a job to its standby, in their order.
pub trait StandbyLink: Send {
    /// Sends frames of `count` changes.
    fn send(&mut self, frames: &[u8], count: u64);
    /// Number of changes that the standby has.
    fn confirmed_count(&self) -> u64;
    /// Why the standby takes no more; none if it does.
    fn refusal(&self) -> Option<LinkRefusal>;
}

/// Why a standby takes no more changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkRefusal {
    /// It has taken the job over, or the job has ended there.
    TakenOver,
    /// It could not follow, for this reason.
    Failed(String),
}

impl LinkRefusal {
    /// What the fault of a standby means.
    pub fn of(fault: &Fault) -> Self {
        if fault.kind == FaultKind::NoSuchJob { Self::TakenOver } else { Self::Failed(fault.text.clone()) }
    }
}

/// Connects to the standby of a job.
pub type OpenLink = Box<dyn FnMut(JobId, &Standby) -> Box<dyn StandbyLink> + Send>;

/// A link with a thread that sends and receives. All changes that come while it waits for the standby are sent together.
pub(crate) struct ThreadLink(Arc<Shared>);

#[derive(Default)]
struct Shared {
    confirmed_count: AtomicU64,
    outbox: Mutex<Outbox>,
    changed: Condvar,
}

#[derive(Default)]
struct Outbox {
    /// The changes that the thread has not taken.
    frames: Frames,
    is_closed: bool,
    refusal: Option<LinkRefusal>,
}

/// What the thread of a link knows.
pub(crate) struct LinkConfig {
    pub(crate) job: JobId,
    pub(crate) standby: Standby,
    pub(crate) token: Vec<u8>,
    /// The lane of the primary and the incarnation of its server.
    pub(crate) lane: u16,
    pub(crate) incarnation: u64,
    pub(crate) events: ClusterEvents,
}

impl ThreadLink {
    pub(crate) fn start(config: LinkConfig) -> Self {
        let shared = Arc::new(Shared::default());
        let thread = LinkThread {
            config,
            shared: Arc::clone(&shared),
            connection: None,
            unconfirmed: Frames::default(),
            confirmed_count: 0,
        };
        let started = std::thread::Builder::new().name("standby".into()).spawn(move || thread.run());
        if let Err(error) = started {
            let reason = format!("cannot start a thread: {error}");
            shared.lock().refusal = Some(LinkRefusal::Failed(reason));
        }
        Self(shared)
    }
}

impl StandbyLink for ThreadLink {
    fn send(&mut self, frames: &[u8], count: u64) {
        let mut outbox = self.0.lock();
        // The thread waits only for the first change.
        let may_wait = outbox.frames.count == 0;
        outbox.frames.bytes.extend_from_slice(frames);
        outbox.frames.count += count;
        drop(outbox);
        if may_wait {
            self.0.changed.notify_one();
        }
    }

    fn confirmed_count(&self) -> u64 {
        self.0.confirmed_count.load(Ordering::Acquire)
    }

    fn refusal(&self) -> Option<LinkRefusal> {
        self.0.lock().refusal.clone()
    }
}

impl Drop for ThreadLink {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct LinkThread {
    config: LinkConfig,
    shared: Arc<Shared>,
    connection: Option<(Sender, Receiver)>,
    /// The changes that were taken and are not confirmed.
    unconfirmed: Frames,
    confirmed_count: u64,
}

/// Why the thread sends no more now.
enum Interruption {
    /// The connection has ended; another one is tried.
    Disconnected(rpc::Error),
    /// The standby takes no more.
    Refused(LinkRefusal),
    /// The link is not needed any more.
    Closed,
}

impl LinkThread {
    fn run(mut self) {
        while self.take() {
            loop {
                match self.confirm_all() {
                    Ok(()) => break,
                    Err(Interruption::Closed) => return,
                    Err(Interruption::Refused(reason)) => {
                        self.shared.lock().refusal = Some(reason);
                        return self.config.events.wake(self.config.lane);
                    }
                    Err(Interruption::Disconnected(error)) => {
                        let (job, server) = (self.config.job, &self.config.standby.server);
                        tracing::debug!(job, server, %error, "no connection to a standby");
                        self.connection = None;
                        std::thread::sleep(PAUSE);
                    }
                }
            }
        }
    }

    /// Waits for changes, and takes them. False: the link is not needed any more.
    fn take(&mut self) -> bool {
        let mut outbox = self.shared.lock();
        while outbox.frames.count == 0 && !outbox.is_closed {
            outbox = self.shared.changed.wait(outbox).unwrap_or_else(PoisonError::into_inner);
        }
        // Both buffers are kept.
        self.unconfirmed.clear();
        std::mem::swap(&mut self.unconfirmed, &mut outbox.frames);
        !outbox.is_closed
    }

    /// Sends what is not confirmed, over a new connection if there is none, and waits until it is.
    fn confirm_all(&mut self) -> Result<(), Interruption> {
        let target = self.confirmed_count + self.unconfirmed.count;
        let (mut sender, mut receiver) = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        sender.send_frames(&self.unconfirmed.bytes, &mut receiver).map_err(Interruption::Disconnected)?;
        let mut confirmed = self.confirmed_count;
        while confirmed < target {
            match receiver.receive() {
                Ok(Message::Done(done)) => confirmed = done.request,
                Ok(Message::Fault(fault)) => return Err(Interruption::Refused(LinkRefusal::of(&fault))),
                Ok(other) => {
                    let error = rpc::Error::Unexpected { expected: "Done", actual: other.kind_name() };
                    return Err(Interruption::Disconnected(error));
                }
                Err(rpc::Error::TimedOut { .. }) if self.shared.lock().is_closed => {
                    return Err(Interruption::Closed);
                }
                Err(rpc::Error::TimedOut { .. }) => {}
                Err(error) => return Err(Interruption::Disconnected(error)),
            }
        }
        self.connection = Some((sender, receiver));
        self.unconfirmed.clear();
        self.set_confirmed(target);
        Ok(())
    }

    fn set_confirmed(&mut self, count: u64) {
        self.confirmed_count = count;
        self.shared.confirmed_count.store(count, Ordering::Release);
        self.config.events.wake(self.config.lane);
    }

    /// Connects, and drops the changes that have arrived over an earlier connection.
    fn connect(&mut self) -> Result<(Sender, Receiver), Interruption> {
        if self.shared.lock().is_closed {
            return Err(Interruption::Closed);
        }
        let LinkConfig { job, incarnation, .. } = self.config;
        let standby = &self.config.standby;
        let role = Role::Primary { job, incarnation };
        let hello = Hello { request: 1, token: self.config.token.clone(), role, lane: standby.lane };
        let (sender, receiver, welcome) = match rpc::open_first(&standby.addresses, WAIT_LIMIT, &hello) {
            Ok(opened) => opened,
            Err(rpc::Error::Refused(fault)) if !fault.kind.retry_may_help() => {
                return Err(Interruption::Refused(LinkRefusal::of(&fault)));
            }
            Err(error) => return Err(Interruption::Disconnected(error)),
        };
        receiver.set_timeout(Some(WAIT_LIMIT)).map_err(Interruption::Disconnected)?;
        // Another process at these addresses has less. The master will say that the standby is lost.
        let known = welcome.clock.checked_sub(self.confirmed_count);
        let Some(known) = known.filter(|known| *known <= self.unconfirmed.count) else {
            return Err(Interruption::Disconnected(rpc::Error::Closed));
        };
        drop_first(&mut self.unconfirmed, known);
        if known > 0 {
            self.set_confirmed(self.confirmed_count + known);
        }
        Ok((sender, receiver))
    }
}

/// Drops the first frames.
fn drop_first(frames: &mut Frames, count: u64) {
    let limits = FrameLimits::default();
    let mut at = 0;
    for _ in 0..count {
        let head = frames.bytes[at..].first_chunk().expect("whole frames were taken");
        let header = rpc::header::Header::from_bytes(head, &limits).expect("this process has written it");
        at += header.frame_bytes() as usize;
    }
    frames.bytes.drain(..at);
    frames.count -= count;
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use rpc::codec::put_frame;
    use rpc::message::{Done, PushPosition, Tick, Welcome};
    use rpc::service::{ConnectionId, Effect, Service};
    use rpc::{Address, Listener, ServeConfig, Stop, serve};

    use super::*;

    fn frame(clock: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let tick = Message::Tick(Tick { request: clock, job: 1, task: 0, clock });
        put_frame(&tick, false, &FrameLimits::default(), &mut bytes).expect("it fits");
        bytes
    }

    /// Refuses a few connections, and then confirms every change.
    struct FakeStandby {
        refusal_count: u32,
        refusal: FaultKind,
        confirmed_count: u64,
    }

    impl Service for FakeStandby {
        fn on_message(
            &mut self,
            _: Duration,
            connection: ConnectionId,
            message: Message,
            out: &mut Vec<Effect>,
        ) {
            let (minimum, applied) = (0, PushPosition::default());
            let answer = match message {
                Message::Hello(_) if self.refusal_count > 0 => {
                    self.refusal_count -= 1;
                    let text = "refused".to_owned();
                    Message::Fault(Fault { request: 1, kind: self.refusal, text, retry_after_ms: 0 })
                }
                Message::Hello(_) => Message::Welcome(Welcome {
                    request: 1,
                    incarnation: 1,
                    lanes: 1,
                    window_bytes: 1 << 20,
                    applied,
                    clock: self.confirmed_count,
                    minimum,
                }),
                _ => {
                    self.confirmed_count += 1;
                    Message::Done(Done { request: self.confirmed_count, minimum, applied })
                }
            };
            out.push(Effect::Send { connection, message: answer });
        }

        fn on_closed(&mut self, _: Duration, _: ConnectionId, _: &mut Vec<Effect>) {}
        fn on_time(&mut self, _: Duration, _: &mut Vec<Effect>) {}
        fn next_time(&self) -> Option<Duration> {
            None
        }
        fn metrics(&self, _: &mut rpc::Metrics) {}
    }

    /// Sends two changes to a standby that refuses the first two connections. Returns how many are confirmed, and why it
    /// takes no more.
    fn send_to_standby_that_refuses(refusal: FaultKind) -> (u64, Option<LinkRefusal>) {
        let listener = Listener::bind(&Address::Tcp("127.0.0.1:0".into())).expect("a free port");
        let standby = Standby {
            primary: "a".into(),
            server: "b".into(),
            addresses: vec![listener.address().to_string()],
            lane: 0,
        };
        let stop = Stop::new();
        let raised = stop.clone();
        let service = Box::new(FakeStandby { refusal_count: 2, refusal, confirmed_count: 0 });
        let serving = std::thread::spawn(move || {
            serve(vec![listener], vec![service], ServeConfig::default(), raised, |_| Ok(()))
                .expect("it serves");
        });
        let events = ClusterEvents::default();
        let config = LinkConfig { job: 1, standby, token: Vec::new(), lane: 0, incarnation: 1, events };
        let mut link = ThreadLink::start(config);
        link.send(&[frame(1), frame(2)].concat(), 2);
        let start = Instant::now();
        while link.confirmed_count() < 2
            && link.refusal().is_none()
            && start.elapsed() < Duration::from_secs(20)
        {
            std::thread::sleep(PAUSE);
        }
        let end = (link.confirmed_count(), link.refusal());
        drop(link);
        stop.raise();
        serving.join().expect("it has ended");
        end
    }

    #[test]
    fn a_standby_that_is_busy_is_tried_again_and_one_that_has_taken_over_is_not() {
        assert_eq!(send_to_standby_that_refuses(FaultKind::Busy), (2, None));
        assert_eq!(send_to_standby_that_refuses(FaultKind::NoSuchJob), (0, Some(LinkRefusal::TakenOver)));
        let failed = Some(LinkRefusal::Failed("refused".into()));
        assert_eq!(send_to_standby_that_refuses(FaultKind::Invalid), (0, failed));
    }

    #[test]
    fn the_first_frames_are_dropped_and_the_others_stay() {
        let mut frames = Frames { bytes: (1..=3).flat_map(frame).collect(), count: 3 };
        drop_first(&mut frames, 0);
        assert_eq!((frames.count, frames.bytes.len()), (3, 3 * frame(1).len()));
        drop_first(&mut frames, 2);
        assert_eq!((frames.count, &frames.bytes), (1, &frame(3)));
        drop_first(&mut frames, 1);
        assert_eq!((frames.count, frames.bytes.len()), (0, 0));
    }
}
