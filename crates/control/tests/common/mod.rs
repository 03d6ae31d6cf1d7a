//! An HTTP port with a master handle of the test, and raw HTTP calls.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use control::http_config::MetricsSource;
use control::{
    Client, ClientCall, ClientResponse, HttpConfig, HttpThread, MasterHandle, ResponseSender, serve_http,
};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rpc::message::Fault;
use rpc::{Address, Limits, Listener, Metrics, Stop};

/// Longest wait for anything that must arrive.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);
pub(crate) const TOKEN: &[u8] = b"secret";

/// What the test master does with a call.
pub(crate) enum TestAction {
    Respond(ClientResponse),
    Refuse(Fault),
    /// Keeps the response channel.
    Defer,
}

type Answer = Box<dyn Fn(&ClientCall) -> TestAction + Send + Sync>;

/// Handles each call with a function of the test.
pub(crate) struct TestMaster {
    answer: Answer,
    pub(crate) deferred: Mutex<Vec<ResponseSender>>,
}

impl std::fmt::Debug for TestMaster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TestMaster")
    }
}

impl MasterHandle for TestMaster {
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
    thread: Option<HttpThread>,
}

/// Limits that close a connection without a call after a short time.
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
        Self::start(limits, Some(Box::new(answer)), 0)
    }

    pub(crate) fn member() -> Self {
        Self::start(Limits::default(), None, 0)
    }

    /// `series`: number of time series at `/metrics`.
    pub(crate) fn start(limits: Limits, answer: Option<Answer>, series: u64) -> Self {
        let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let (address, stop) = (listener.address().clone(), Stop::new());
        let is_master = answer.is_some();
        let answer = answer.unwrap_or_else(|| Box::new(|_| TestAction::Defer));
        let master = Arc::new(TestMaster { answer, deferred: Mutex::default() });
        let metrics: MetricsSource = Arc::new(move || {
            let mut metrics = Metrics::default();
            for number in 0..series {
                metrics.gauge("test_series", "A series", &[("number", &number.to_string())], number);
            }
            Box::pin(std::future::ready(Ok(metrics)))
        });
        let handle = is_master.then(|| Arc::clone(&master) as Arc<dyn MasterHandle>);
        let config = HttpConfig { token: TOKEN.to_vec(), limits, master: handle, metrics };
        let thread = serve_http(vec![listener], config, stop.clone()).unwrap();
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

    /// Makes a request of HTTP/1; returns the whole answer.
    pub(crate) fn get(&self, path: &str) -> String {
        let (text, _) =
            self.say(format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes());
        String::from_utf8(text).unwrap()
    }

    /// The value of a counter of connections.
    pub(crate) fn count(&self, name: &str) -> u64 {
        let text = self.get("/metrics");
        let name = format!("seraphim_http_{name} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&name));
        value.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    pub(crate) fn end(&mut self) {
        self.stop.raise();
        self.thread = None;
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
