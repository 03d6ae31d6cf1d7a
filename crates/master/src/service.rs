//! The service of the master: the state machine with its runners. Commands become threads and events; reports of
//! runners are inputs of the state machine.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Queue, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use control::{CallResult, ClientCall, ClientId, ClientRequest, ResponseSender};
use rpc::Metrics;
use rpc::message::{FaultKind, JobId, Message};
use rpc::service::{ConnectionId, Effect, Service};
use rpc::stop::Stop;

use crate::input::{InputSender, MasterInput, Waker};
use crate::job_link::{JobLink, Losses, Runner, sorted_by_name};
use crate::record::RecordChange;
use crate::runner::{JobEvent, JobStart, RunnerCommand, RunnerReport};
use crate::state::MasterState;
use crate::state_folder::StateFolder;

/// Most events that wait for one runner; with more, the job fails.
const EVENT_LIMIT: usize = 1 << 16;

/// The service of a master process.
pub(crate) struct MasterService {
    state: MasterState,
    runner: Arc<dyn Runner>,
    input_sender: InputSender,
    inputs: Queue<MasterInput>,
    waker: Arc<Waker>,
    /// By job: the events of its runner, and the flag that a member of the job is lost.
    events: BTreeMap<JobId, (SyncSender<JobEvent>, Arc<Mutex<Losses>>)>,
    /// Clients that wait for an answer or for updates.
    clients: BTreeMap<ClientId, ResponseSender>,
    shutdown: Shutdown,
    /// Where the jobs are recorded; none: they end with this process.
    folder: Option<StateFolder>,
}

/// How a master ends: when no job runs any more, the sockets are closed.
#[derive(Clone, Debug)]
pub(crate) struct Shutdown {
    /// The process is to end: jobs are cancelled.
    pub(crate) is_requested: Arc<AtomicBool>,
    /// Raised after that, when the last job has ended.
    pub(crate) close_sockets: Stop,
}

impl MasterService {
    pub(crate) fn new(
        state: MasterState,
        runner: Arc<dyn Runner>,
        (input_sender, inputs): (InputSender, Queue<MasterInput>),
        waker: Arc<Waker>,
        shutdown: Shutdown,
        folder: Option<StateFolder>,
    ) -> Self {
        let (events, clients) = (BTreeMap::new(), BTreeMap::new());
        Self { state, runner, input_sender, inputs, waker, events, clients, shutdown, folder }
    }

    /// Executes commands and handles inputs until there are none.
    fn process_inputs(&mut self, out: &mut Vec<Effect>) {
        self.waker.clear();
        let is_shutdown_requested = self.shutdown.is_requested.load(Ordering::SeqCst);
        if is_shutdown_requested && self.folder.is_none() {
            self.state.cancel_all();
        }
        loop {
            self.record_changes();
            for command in self.state.take_commands() {
                match command {
                    RunnerCommand::StartJob(start) if !self.state.is_running(start.job) => {}
                    RunnerCommand::StartJob(start) => self.start(start, out),
                    RunnerCommand::ToRunner { job, event } => self.send_event(job, event, out),
                }
            }
            for (client, given) in self.state.take_responses() {
                self.respond(client, given);
            }
            match self.inputs.try_recv() {
                Ok(MasterInput::Client(call)) => self.on_call(call),
                Ok(MasterInput::Runner(job, report)) => {
                    if let RunnerReport::Ended(result) = &report {
                        tracing::info!(job, error = result.as_ref().err(), "job ended");
                        self.events.remove(&job);
                    }
                    self.state.on_runner(job, report, out);
                }
                Err(_) => break,
            }
        }
        // Recorded jobs go on with the next master.
        if is_shutdown_requested && (self.folder.is_some() || self.state.running_count() == 0) {
            self.shutdown.close_sockets.raise();
        }
    }

    /// Records what has changed, before anybody learns of it. A submission that cannot be recorded fails.
    fn record_changes(&mut self) {
        for change in self.state.take_changes() {
            let Some(folder) = &self.folder else { continue };
            let Err(error) = folder.write(&change) else { continue };
            tracing::error!(%error, "a change of a job is not recorded");
            if let RecordChange::Submitted(job) = &change {
                self.state.fail_unrecorded(job.job, &error.to_string());
            }
        }
    }

    fn on_call(&mut self, call: ClientCall) {
        let ClientCall { client, request, reply } = call;
        match reply {
            ResponseSender::Discard => drop(self.clients.remove(&client)),
            ResponseSender::Once(_) | ResponseSender::Latest(_) => drop(self.clients.insert(client, reply)),
        }
        let mut request = request;
        if let ClientRequest::Submit { submission, .. } = &mut request {
            match self.runner.check(submission) {
                Ok(spec) => submission.spec = spec,
                Err(text) => return self.state.refuse_client(client, FaultKind::Invalid, text),
            }
        }
        self.state.on_client(client, request);
    }

    fn respond(&mut self, client: ClientId, given: CallResult) {
        let Some(reply) = self.clients.remove(&client) else { return };
        let is_watcher = matches!(reply, ResponseSender::Latest(_));
        match reply.send(given) {
            Some(reply) => drop(self.clients.insert(client, reply)),
            None if is_watcher => self.state.on_client(client, ClientRequest::Unwatch),
            None => {}
        }
    }

    fn start(&mut self, start: JobStart, out: &mut Vec<Effect>) {
        let JobStart { job, run, title, spec, servers, workers, recorded, is_session } = start;
        let workers = sorted_by_name(workers);
        tracing::info!(job, title, server_count = servers.len(), worker_count = workers.len(), "job starts");
        let (events, received) = sync_channel(EVENT_LIMIT);
        let port = self.input_sender.clone();
        let losses = Arc::<Mutex<Losses>>::default();
        let to_runner = (events, Arc::clone(&losses));
        let link = JobLink {
            job,
            run,
            title,
            spec,
            recorded,
            servers,
            workers,
            losses,
            is_session,
            events: received,
            input_sender: port,
        };
        let (runner, port) = (Arc::clone(&self.runner), self.input_sender.clone());
        let thread = std::thread::Builder::new().name(format!("job-{job}")).spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| {
                if link.is_session { runner.serve_session(link) } else { runner.run(link) }
            }));
            let result = result.unwrap_or_else(|panic| Err(panic_text(panic.as_ref())));
            port.report(job, RunnerReport::Ended(result));
        });
        match thread {
            Ok(_) => drop(self.events.insert(job, to_runner)),
            Err(error) => {
                let text = format!("cannot start a thread for the job: {error}");
                self.state.on_runner(job, RunnerReport::Ended(Err(text)), out);
            }
        }
    }

    fn send_event(&mut self, job: JobId, event: JobEvent, out: &mut Vec<Effect>) {
        let Some((events, losses)) = self.events.get(&job) else { return };
        let mut losses = losses.lock().unwrap_or_else(PoisonError::into_inner);
        let event = match event {
            JobEvent::MemberLost { member, reason } => match losses.survive(&member) {
                Some(by) => JobEvent::ServerTakesOver { lost: member, reason, by },
                None => JobEvent::MemberLost { member, reason },
            },
            event => event,
        };
        if matches!(event, JobEvent::Members { .. }) {
            *losses = Losses::default();
        }
        let is_lost = matches!(event, JobEvent::MemberLost { .. });
        let sent = events.try_send(event);
        if is_lost {
            losses.ends_run.raise();
        }
        drop(losses);
        match sent {
            // Disconnected: the runner has ended, and its last report is on the way.
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(_)) => {
                self.events.remove(&job);
                let text =
                    format!("the event queue of the runner of the job is full: it has {EVENT_LIMIT} events");
                self.state.on_runner(job, RunnerReport::Ended(Err(text)), out);
            }
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the runner of the job panicked: {}", text.unwrap_or("the panic has no message"))
}

impl Service for MasterService {
    fn on_message(
        &mut self,
        now: Duration,
        connection: ConnectionId,
        message: Message,
        out: &mut Vec<Effect>,
    ) {
        self.state.on_message(now, connection, message, out);
        self.process_inputs(out);
    }

    fn on_closed(&mut self, now: Duration, connection: ConnectionId, out: &mut Vec<Effect>) {
        self.state.on_closed(now, connection, out);
        self.process_inputs(out);
    }

    fn on_time(&mut self, now: Duration, out: &mut Vec<Effect>) {
        if self.state.next_time().is_some_and(|due| due <= now) {
            self.state.on_time(now, out);
        }
        self.process_inputs(out);
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
    use control::{ClientResponse, JobSubmission, MasterHandle, SubmissionId};
    use rpc::message::control::{Member, MemberKind};
    use serde_json::{Value, json};
    use tokio::sync::{oneshot, watch};

    use super::*;
    use crate::Settings;
    use crate::runner::JobResult;

    /// A runner for tests that expect no job.
    struct Nobody;

    impl Runner for Nobody {
        fn run(&self, _link: JobLink) -> Result<JobResult, String> {
            Err("nobody runs jobs here".into())
        }
    }

    fn service_with(settings: Settings) -> MasterService {
        service_of(settings, Arc::new(Nobody))
    }

    fn service_of(settings: Settings, runner: Arc<dyn Runner>) -> MasterService {
        let waker = Arc::new(Waker::default());
        let inputs = InputSender::new(Arc::clone(&waker));
        let shutdown =
            Shutdown { is_requested: Arc::new(AtomicBool::new(false)), close_sockets: Stop::new() };
        MasterService::new(MasterState::new(settings, 77), runner, inputs, waker, shutdown, None)
    }

    fn call(service: &mut MasterService, client: ClientId, request: ClientRequest, reply: ResponseSender) {
        service.input_sender.send(ClientCall { client, request, reply }).unwrap();
        service.on_time(Duration::ZERO, &mut Vec::new());
    }

    /// Sends a request and returns its only answer.
    fn answer_of(service: &mut MasterService, client: ClientId, request: ClientRequest) -> CallResult {
        let (reply, mut answered) = oneshot::channel();
        call(service, client, request, ResponseSender::Once(reply));
        answered.try_recv().unwrap()
    }

    #[test]
    fn a_watcher_that_does_not_listen_any_more_gives_its_place_to_another_at_the_next_news() {
        let mut service = service_with(Settings { watcher_limit: 1, ..Settings::default() });
        let submission = JobSubmission {
            title: "a".into(),
            spec: Value::Null,
            servers: 0,
            workers: 1,
            worker_group: String::new(),
        };
        let submitted =
            answer_of(&mut service, 1, ClientRequest::Submit { id: SubmissionId([1; 16]), submission });
        let Ok(ClientResponse::Submitted { job }) = submitted else { panic!("{submitted:?}") };
        let (reply, latest) = watch::channel(None);
        call(&mut service, 2, ClientRequest::Watch { job }, ResponseSender::Latest(reply));
        assert!(matches!(&*latest.borrow(), Some(Ok(ClientResponse::Job(_)))));
        let refused = answer_of(&mut service, 3, ClientRequest::Watch { job }).unwrap_err();
        assert_eq!(refused.kind, FaultKind::Busy);
        // When the queue is full, the `Unwatch` of the dropped call is lost.
        drop(latest);
        service.state.set_progress(job, json!("something new"));
        service.on_time(Duration::ZERO, &mut Vec::new());
        let again = answer_of(&mut service, 3, ClientRequest::Watch { job });
        assert!(matches!(again, Ok(ClientResponse::Job(_))), "{again:?}");
    }

    /// Reports the names of the workers that it gets.
    struct Names(SyncSender<Vec<String>>);

    impl Runner for Names {
        fn run(&self, link: JobLink) -> Result<JobResult, String> {
            self.0.send(link.workers.into_iter().map(|worker| worker.name).collect()).unwrap();
            Err("only names are wanted".into())
        }
    }

    #[test]
    fn a_job_gets_its_workers_by_name_whoever_joined_first() {
        let (names, reported) = sync_channel(1);
        let mut service = service_of(Settings::default(), Arc::new(Names(names)));
        let worker = |id, name: &str| {
            let (name, host) = (name.into(), "here".into());
            Member {
                id,
                name,
                incarnation: 1,
                kind: MemberKind::Worker { slots: 1, group: String::new() },
                host,
            }
        };
        let workers = vec![worker(1, "worker-1"), worker(2, "worker-2"), worker(3, "worker-0")];
        let (title, spec, servers) = ("a".into(), Value::Null, Vec::new());
        let start = JobStart {
            job: 1,
            run: 1,
            title,
            spec,
            servers,
            workers,
            recorded: Value::Null,
            is_session: false,
        };
        service.start(start, &mut Vec::new());
        assert_eq!(reported.recv().unwrap(), ["worker-0", "worker-1", "worker-2"]);
    }
}
