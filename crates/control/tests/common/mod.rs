//! A process with one lane that answers frames, a master handle of the test, and raw HTTP/2 calls.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use control::{Client, ClientCall, ClientResponse, GrpcServer, MasterHandle, ResponseSender};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rpc::message::{Done, Fault, PushPosition, Welcome};
use rpc::serve::Lanes;
use rpc::{
    Address, ConnectionId, Effect, Limits, Listener, Message, ServeConfig, Service, Stop, serve_with_handler,
};

/// Longest wait for anything that must arrive.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);
pub(crate) const TOKEN: &[u8] = b"secret";

/// Sends `Welcome` to every connection and answers every tick.
struct Echo;

impl Service for Echo {
    fn on_message(
        &mut self,
        _now: Duration,
        connection: ConnectionId,
        message: Message,
        out: &mut Vec<Effect>,
    ) {
        let applied = PushPosition::default();
        let message = match message {
            Message::Hello(hello) => Message::Welcome(Welcome {
                request: hello.request,
                incarnation: 1,
                lanes: 1,
                window_bytes: 1 << 20,
                applied,
                clock: 0,
                minimum: 0,
            }),
            Message::Tick(tick) => Message::Done(Done { request: tick.request, minimum: 0, applied }),
            other => panic!("not expected: {}", other.kind_name()),
        };
        out.push(Effect::Send { connection, message });
    }

    fn on_closed(&mut self, _now: Duration, _connection: ConnectionId, _out: &mut Vec<Effect>) {}

    fn on_time(&mut self, _now: Duration, _out: &mut Vec<Effect>) {}

    fn next_time(&self) -> Option<Duration> {
        None
    }

    fn metrics(&self, _out: &mut rpc::Metrics) {}
}

/// What the test master does with a call.
pub(crate) enum TestAction {
    Respond(ClientResponse),
    Refuse(Fault),
    /// Keeps the response channel.
    Defer,
}

/// Handles each call with a function of the test.
pub(crate) struct TestMaster {
    answer: Box<dyn Fn(&ClientCall) -> TestAction + Send + Sync>,
    pub(crate) deferred: Mutex<Vec<ResponseSender>>,
}

impl std::fmt::Debug for TestMaster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TestMaster")
    }
}

impl MasterHandle for TestMaster {
    fn start(&self, _lanes: Lanes) {}

    fn send(&self, call: ClientCall) -> Result<(), Fault> {
        let reply = match (self.answer)(&call) {
            TestAction::Respond(answer) => call.reply.send(Ok(answer)),
            TestAction::Refuse(fault) => return Err(fault),
            TestAction::Defer => Some(call.reply),
        };
        self.deferred.lock().unwrap().extend(reply);
        Ok(())
    }
}

/// A process that serves until it is dropped.
pub(crate) struct Served {
    pub(crate) address: Address,
    pub(crate) master: Arc<TestMaster>,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

/// Limits that close a frame connection without `Hello`, and a connection without a token, after a short time.
pub(crate) fn impatient() -> Limits {
    Limits { hello_time: Duration::from_millis(300), ..Limits::default() }
}

/// Limits that close a connection that does not read its answers after a short time.
pub(crate) fn hasty() -> Limits {
    Limits { outbound_stall: Duration::from_millis(300), ..Limits::default() }
}

impl Served {
    pub(crate) fn master(
        limits: Limits,
        answer: impl Fn(&ClientCall) -> TestAction + Send + Sync + 'static,
    ) -> Self {
        let master = Arc::new(TestMaster { answer: Box::new(answer), deferred: Mutex::default() });
        Self::start(limits, GrpcServer::of_master(Arc::clone(&master) as Arc<dyn MasterHandle>), master)
    }

    pub(crate) fn member() -> Self {
        let master =
            Arc::new(TestMaster { answer: Box::new(|_| TestAction::Defer), deferred: Mutex::default() });
        Self::start(Limits::default(), GrpcServer::of_member(), master)
    }

    fn start(limits: Limits, door: GrpcServer, master: Arc<TestMaster>) -> Self {
        let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let (address, stop) = (listener.address().clone(), Stop::new());
        let config = ServeConfig { token: TOKEN.to_vec(), limits };
        let raised = stop.clone();
        let thread = std::thread::spawn(move || {
            serve_with_handler(vec![listener], vec![Box::new(Echo)], config, Arc::new(door), raised).unwrap();
        });
        Self { address, master, stop, thread: Some(thread) }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address.clone(), TOKEN)
    }

    pub(crate) fn place(&self) -> String {
        let Address::Tcp(place) = &self.address else { panic!("{}", self.address) };
        place.clone()
    }

    /// Sends bytes and waits for the close. Returns the received bytes and the duration.
    pub(crate) fn say(&self, bytes: &[u8]) -> (Vec<u8>, Duration) {
        let start = Instant::now();
        let mut stream = TcpStream::connect(self.place()).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        (answer, start.elapsed())
    }

    /// The value of a counter of connections.
    pub(crate) fn count(&self, name: &str) -> u64 {
        let (text, _) = self.say(b"GET /metrics HTTP/1.1\r\n\r\n");
        let text = String::from_utf8(text).unwrap();
        let name = format!("seraphim_rpc_{name} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&name));
        value.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    pub(crate) fn end(&mut self) {
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// Makes a raw call; returns the code and text of its status.
    pub(crate) fn call(&self, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> (u32, String) {
        let (code, text, _) = self.answer(path, headers, body);
        (code, text)
    }

    /// Makes a raw call; returns also the bytes of the answer.
    pub(crate) fn answer(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> (u32, String, Vec<u8>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut sender, connection) = self.hand(WINDOW).await;
            tokio::spawn(connection);
            let response = sender.send_request(request(path, headers, body)).await.unwrap();
            let (head, body) = response.into_parts();
            let body = body.collect().await.unwrap();
            let trailers = body.trailers().cloned().unwrap_or_default();
            let find = |name| head.headers.get(name).or_else(|| trailers.get(name)).cloned();
            let code = find("grpc-status").unwrap().to_str().unwrap().parse().unwrap();
            let text = find("grpc-message").map(|text| text.to_str().unwrap().to_owned());
            (code, text.unwrap_or_default().replace("%20", " "), body.to_bytes().to_vec())
        })
    }

    /// A connection for raw calls. It accepts `window` bytes of an answer before it reads them.
    pub(crate) async fn hand(&self, window: u32) -> (http2::SendRequest<Sent>, Connection) {
        let stream = tokio::net::TcpStream::connect(self.place()).await.unwrap();
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(window);
        builder.handshake(TokioIo::new(stream)).await.unwrap()
    }
}

/// The body of a raw call.
pub(crate) type Sent = Full<bytes::Bytes>;
/// The driver of a connection for raw calls.
pub(crate) type Connection = http2::Connection<TokioIo<tokio::net::TcpStream>, Sent, TokioExecutor>;

/// The window for an answer that is read.
const WINDOW: u32 = 1 << 20;

/// The request of a raw call.
pub(crate) fn request(path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> http::Request<Sent> {
    let mut request = http::Request::post(format!("http://test{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(bytes::Bytes::from(body))).unwrap()
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}
