//! The state machine with its runners, as one service: orders become threads and events, words of runners come in between.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Queue, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use control::{Call, ClientId, ClientWord, Given, Reply};
use rpc::Metrics;
use rpc::message::{FaultKind, JobId, Message};
use rpc::service::{ConnectionId, Effect, Service};
use rpc::stop::Stop;

use crate::port::{Bell, Port, Word};
use crate::runner::{Event, JobLink, JobStart, Runner, RunnerOrder, RunnerWord};
use crate::state::MasterState;

/// Most events that wait for one runner; above that the job has failed.
const EVENT_LIMIT: usize = 1 << 16;

/// The service of a master process.
pub(crate) struct Desk {
    state: MasterState,
    runner: Arc<dyn Runner>,
    port: Port,
    words: Queue<Word>,
    bell: Arc<Bell>,
    /// Of each runner: its events, and whether a member of its job is gone.
    events: BTreeMap<JobId, (SyncSender<Event>, Stop)>,
    /// Clients that wait for an answer, or for news.
    clients: BTreeMap<ClientId, Reply>,
    ending: Ending,
}

/// How a master ends: no job lives any more, then the sockets are closed.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    /// The process is to end: jobs are cancelled.
    pub(crate) is_wanted: Arc<AtomicBool>,
    /// Raised when the last job has ended after that.
    pub(crate) sockets: Stop,
}

impl Desk {
    pub(crate) fn new(
        state: MasterState,
        runner: Arc<dyn Runner>,
        (port, words): (Port, Queue<Word>),
        bell: Arc<Bell>,
        ending: Ending,
    ) -> Self {
        let (events, clients) = (BTreeMap::new(), BTreeMap::new());
        Self { state, runner, port, words, bell, events, clients, ending }
    }

    /// Carries out orders and takes words until there are none.
    fn settle(&mut self, out: &mut Vec<Effect>) {
        self.bell.heard();
        if self.ending.is_wanted.load(Ordering::SeqCst) {
            self.state.cancel_all();
        }
        loop {
            for order in self.state.take_orders() {
                match order {
                    RunnerOrder::StartJob(start) => self.start(start, out),
                    RunnerOrder::ToRunner { job, event } => self.tell(job, event, out),
                }
            }
            for (client, given) in self.state.take_answers() {
                self.answer(client, given);
            }
            match self.words.try_recv() {
                Ok(Word::Client(call)) => self.hear(call),
                Ok(Word::Runner(job, word)) => {
                    if let RunnerWord::Ended(result) = &word {
                        tracing::info!(job, error = result.as_ref().err(), "job ended");
                        self.events.remove(&job);
                    }
                    self.state.on_runner(job, word, out);
                }
                Err(_) => break,
            }
        }
        if self.ending.is_wanted.load(Ordering::SeqCst) && self.state.running_count() == 0 {
            self.ending.sockets.raise();
        }
    }

    fn hear(&mut self, call: Call) {
        let Call { client, word, reply } = call;
        match reply {
            Reply::Nobody => drop(self.clients.remove(&client)),
            Reply::Once(_) | Reply::Latest(_) => drop(self.clients.insert(client, reply)),
        }
        if let ClientWord::Submit { order, .. } = &word
            && let Err(text) = self.runner.check(order)
        {
            return self.state.refuse_client(client, FaultKind::Invalid, text);
        }
        self.state.on_client(client, word);
    }

    fn answer(&mut self, client: ClientId, given: Given) {
        let Some(reply) = self.clients.remove(&client) else { return };
        let is_watcher = matches!(reply, Reply::Latest(_));
        match reply.give(given) {
            Some(reply) => drop(self.clients.insert(client, reply)),
            None if is_watcher => self.state.on_client(client, ClientWord::Left),
            None => {}
        }
    }

    fn start(&mut self, start: JobStart, out: &mut Vec<Effect>) {
        let JobStart { job, title, spec, servers, mut workers, is_session } = start;
        // Which worker computes which tasks does not depend on the order in which they joined.
        workers.sort_by(|a, b| a.name.cmp(&b.name));
        tracing::info!(job, title, server_count = servers.len(), worker_count = workers.len(), "job starts");
        let (events, heard) = sync_channel(EVENT_LIMIT);
        let port = self.port.clone();
        let member_is_gone = Stop::new();
        let to_runner = (events, member_is_gone.clone());
        let link =
            JobLink { job, title, spec, servers, workers, member_is_gone, is_session, events: heard, port };
        let (runner, port) = (Arc::clone(&self.runner), self.port.clone());
        let thread = std::thread::Builder::new().name(format!("job-{job}")).spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| {
                if link.is_session { runner.serve_session(link) } else { runner.run(link) }
            }));
            let result = result.unwrap_or_else(|panic| Err(panic_text(panic.as_ref())));
            port.say(job, RunnerWord::Ended(result));
        });
        match thread {
            Ok(_) => drop(self.events.insert(job, to_runner)),
            Err(error) => {
                let text = format!("no thread can be started for the job: {error}");
                self.state.on_runner(job, RunnerWord::Ended(Err(text)), out);
            }
        }
    }

    fn tell(&mut self, job: JobId, event: Event, out: &mut Vec<Effect>) {
        let Some((events, member_is_gone)) = self.events.get(&job) else { return };
        let is_gone = matches!(event, Event::Gone { .. });
        let sent = events.try_send(event);
        if is_gone {
            member_is_gone.raise();
        }
        match sent {
            // Disconnected: the runner has ended, and its last word is on the way.
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(_)) => {
                self.events.remove(&job);
                let text =
                    format!("the runner of the job does not listen: {EVENT_LIMIT} messages wait for it");
                self.state.on_runner(job, RunnerWord::Ended(Err(text)), out);
            }
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the runner of the job panicked: {}", text.unwrap_or("it does not say why"))
}

impl Service for Desk {
    fn on_message(
        &mut self,
        now: Duration,
        connection: ConnectionId,
        message: Message,
        out: &mut Vec<Effect>,
    ) {
        self.state.on_message(now, connection, message, out);
        self.settle(out);
    }

    fn on_closed(&mut self, now: Duration, connection: ConnectionId, out: &mut Vec<Effect>) {
        self.state.on_closed(now, connection, out);
        self.settle(out);
    }

    fn on_time(&mut self, now: Duration, out: &mut Vec<Effect>) {
        if self.state.next_time().is_some_and(|due| due <= now) {
            self.state.on_time(now, out);
        }
        self.settle(out);
    }

    fn next_time(&self) -> Option<Duration> {
        self.state.next_time()
    }

    fn metrics(&self, out: &mut Metrics) {
        self.state.metrics(out);
    }
}

#[cfg(test)]
mod tests {
    use control::{Answer, Clerk, Order, SubmissionId};
    use rpc::message::control::{Member, MemberKind};
    use serde_json::{Value, json};
    use tokio::sync::{oneshot, watch};

    use super::*;
    use crate::Settings;
    use crate::runner::Finished;

    /// Runs nothing.
    struct Nobody;

    impl Runner for Nobody {
        fn run(&self, _link: JobLink) -> Result<Finished, String> {
            Err("nobody runs jobs here".into())
        }
    }

    fn desk_with(settings: Settings) -> Desk {
        desk_of(settings, Arc::new(Nobody))
    }

    fn desk_of(settings: Settings, runner: Arc<dyn Runner>) -> Desk {
        let bell = Arc::new(Bell::default());
        let said = Port::new(Arc::clone(&bell));
        let ending = Ending { is_wanted: Arc::new(AtomicBool::new(false)), sockets: Stop::new() };
        Desk::new(MasterState::new(settings, 77), runner, said, bell, ending)
    }

    fn call(desk: &mut Desk, client: ClientId, word: ClientWord, reply: Reply) {
        desk.port.hear(Call { client, word, reply }).unwrap();
        desk.on_time(Duration::ZERO, &mut Vec::new());
    }

    /// The one answer to a call.
    fn ask(desk: &mut Desk, client: ClientId, word: ClientWord) -> Given {
        let (reply, mut answered) = oneshot::channel();
        call(desk, client, word, Reply::Once(reply));
        answered.try_recv().unwrap()
    }

    #[test]
    fn a_watcher_that_does_not_listen_any_more_gives_its_place_to_another_at_the_next_news() {
        let mut desk = desk_with(Settings { watcher_limit: 1, ..Settings::default() });
        let order = Order { title: "a".into(), spec: Value::Null, servers: 0, workers: 1 };
        let submitted = ask(&mut desk, 1, ClientWord::Submit { id: SubmissionId([1; 16]), order });
        let Ok(Answer::Submitted { job }) = submitted else { panic!("{submitted:?}") };
        let (reply, latest) = watch::channel(None);
        call(&mut desk, 2, ClientWord::Watch { job }, Reply::Latest(reply));
        assert!(matches!(&*latest.borrow(), Some(Ok(Answer::News(_)))));
        let refused = ask(&mut desk, 3, ClientWord::Watch { job }).unwrap_err();
        assert_eq!(refused.kind, FaultKind::Busy);
        // Its last word is lost when too many wait.
        drop(latest);
        desk.state.set_progress(job, json!("something new"));
        desk.on_time(Duration::ZERO, &mut Vec::new());
        let heard = ask(&mut desk, 3, ClientWord::Watch { job });
        assert!(matches!(heard, Ok(Answer::News(_))), "{heard:?}");
    }

    /// Tells the names of the workers that it gets.
    struct Names(SyncSender<Vec<String>>);

    impl Runner for Names {
        fn run(&self, link: JobLink) -> Result<Finished, String> {
            self.0.send(link.workers.into_iter().map(|worker| worker.name).collect()).unwrap();
            Err("only names are wanted".into())
        }
    }

    #[test]
    fn a_job_gets_its_workers_by_name_whoever_joined_first() {
        let (names, told) = sync_channel(1);
        let mut desk = desk_of(Settings::default(), Arc::new(Names(names)));
        let worker = |id, name: &str| {
            let (name, host) = (name.into(), "here".into());
            Member { id, name, incarnation: 1, kind: MemberKind::Worker { slots: 1 }, host }
        };
        let workers = vec![worker(1, "worker-1"), worker(2, "worker-2"), worker(3, "worker-0")];
        let (title, spec, servers) = ("a".into(), Value::Null, Vec::new());
        let start = JobStart { job: 1, title, spec, servers, workers, is_session: false };
        desk.start(start, &mut Vec::new());
        assert_eq!(told.recv().unwrap(), ["worker-0", "worker-1", "worker-2"]);
    }
}
