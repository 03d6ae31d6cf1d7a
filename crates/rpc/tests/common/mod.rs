//! A service for tests, and a process that serves it.
#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use matrix::OwnedValues;
use rpc::message::{
    Done, Hello, KeyList, PartitionRun, Pull, Pulled, Push, PushPosition, Role, Tick, Welcome,
};
use rpc::metrics::{Number, Sample};
use rpc::serve::Lanes;
use rpc::{Address, ConnectionId, Effect, Error, Limits, Listener, Message, ServeConfig, Service, Stop};

/// Longest wait of a test for anything.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);
pub(crate) const TOKEN: &[u8] = b"secret";

/// Answers a pull with as many ones as keys, and everything else with `Done`.
#[derive(Default)]
pub(crate) struct Echo {
    /// Number of calls of `on_closed`.
    closed: u64,
    /// After this time without messages the last connection gets a `Done` of request 7.
    every: Option<Duration>,
    next: Option<Duration>,
    last: ConnectionId,
}

impl Echo {
    pub(crate) fn ticking(every: Duration) -> Self {
        Self { every: Some(every), ..Self::default() }
    }
}

impl Service for Echo {
    fn on_message(
        &mut self,
        now: Duration,
        connection: ConnectionId,
        message: Message,
        out: &mut Vec<Effect>,
    ) {
        self.last = connection;
        self.next = self.every.map(|every| now + every);
        let done =
            |request| Message::Done(Done { request, minimum: self.closed, applied: PushPosition::default() });
        let message = match message {
            Message::Hello(hello) => Message::Welcome(welcome(hello.request)),
            Message::Pull(pull) => Message::Pulled(Pulled {
                request: pull.request,
                minimum: 0,
                deferred_ns: 0,
                applied: PushPosition::default(),
                values: OwnedValues::F32(vec![1.0; pull.keys.len() as usize]).into(),
            }),
            Message::Push(push) if push.request != 0 => done(push.request),
            Message::Push(_) => return,
            Message::Tick(tick) => done(tick.request),
            Message::Leave(_) => return out.push(Effect::Close { connection }),
            other => panic!("not expected: {}", other.kind_name()),
        };
        out.push(Effect::Send { connection, message });
    }

    fn on_closed(&mut self, _now: Duration, _connection: ConnectionId, _out: &mut Vec<Effect>) {
        self.closed += 1;
    }

    fn on_time(&mut self, _now: Duration, out: &mut Vec<Effect>) {
        self.next = None;
        let message = Message::Done(Done { request: 7, minimum: 0, applied: PushPosition::default() });
        out.push(Effect::Send { connection: self.last, message });
    }

    fn next_time(&self) -> Option<Duration> {
        self.next
    }

    fn metrics(&self, out: &mut rpc::Metrics) {
        out.gauge("echo_is_well", "Whether it is", &[], 1_u64);
    }
}

pub(crate) fn welcome(request: u64) -> Welcome {
    let applied = PushPosition::default();
    Welcome { request, incarnation: 1, lanes: 1, window_bytes: 1 << 20, applied, clock: 0, minimum: 0 }
}

pub(crate) fn hello() -> Hello {
    Hello { request: 1, token: TOKEN.to_vec(), role: Role::Tool, lane: 0 }
}

pub(crate) fn pull_range(request: u64, count: u32) -> Message {
    Message::Pull(Pull {
        request,
        job: 1,
        task: 0,
        clock: 0,
        matrix: 0,
        table: 0,
        wait_ms: 0,
        runs: vec![PartitionRun { partition: 0, count }],
        keys: KeyList::Range { start: 0, end: u64::from(count) },
        wire: rpc::WireType::F32,
    })
}

pub(crate) fn push_range(request: u64, count: u32) -> Message {
    Message::Push(Push {
        request,
        job: 1,
        task: 0,
        clock: 0,
        index: 0,
        matrix: 0,
        table: 0,
        runs: vec![PartitionRun { partition: 0, count }],
        keys: KeyList::Range { start: 0, end: u64::from(count) },
        values: OwnedValues::F32(vec![1.0; count as usize]).into(),
    })
}

pub(crate) fn tick(request: u64) -> Message {
    Message::Tick(Tick { request, job: 1, task: 0, clock: 1 })
}

/// Services that run until this is dropped.
pub(crate) struct Served {
    pub(crate) address: Address,
    lanes: Lanes,
    stop: Stop,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl Served {
    pub(crate) fn new(address: &str, services: Vec<Box<dyn Service>>, limits: Limits) -> Self {
        let listener = Listener::bind(&address.parse().unwrap()).unwrap();
        let (address, stop) = (listener.address().clone(), Stop::new());
        let http = vec!["127.0.0.1:9".parse().unwrap()];
        let config = ServeConfig { token: TOKEN.to_vec(), limits, http };
        let (raised, (started, lanes)) = (stop.clone(), channel());
        let run = move || {
            rpc::serve(vec![listener], services, config, raised, |lanes| {
                started.send(lanes).unwrap();
                Ok(())
            })
        };
        let thread = Some(std::thread::spawn(run));
        Self { address, lanes: lanes.recv().unwrap(), stop, thread }
    }

    pub(crate) fn echo() -> Self {
        Self::new("127.0.0.1:0", vec![Box::new(Echo::default())], Limits::default())
    }

    /// Stops serving; returns the result of `serve`.
    pub(crate) fn end(mut self) -> Result<(), Error> {
        self.stop.raise();
        self.thread.take().unwrap().join().unwrap()
    }

    /// Waits for `serve` to end by itself; returns its result.
    pub(crate) fn ends_by_itself(mut self) -> Result<(), Error> {
        self.thread.take().unwrap().join().unwrap()
    }

    /// The value of a sample without labels, of the connections or of the lanes.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let metrics = runtime.block_on(self.lanes.metrics()).unwrap();
        let family = metrics.families().find(|(of, _)| *of == name).unwrap().1;
        match family.samples[0].1 {
            Sample::Counter(Number::Count(value)) | Sample::Gauge(Number::Count(value)) => value,
            ref other => panic!("{name} is no count: {other:?}"),
        }
    }

    pub(crate) fn port(&self) -> String {
        match &self.address {
            Address::Tcp(place) => place.clone(),
            Address::Unix(path) => panic!("no port: {}", path.display()),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
