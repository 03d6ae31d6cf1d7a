//! The server of the control plane: HTTP/2 connections, which the port recognizes by their first bytes, and the calls
//! on them. Each connection must show the token, or call the health service, within the time in which a frame
//! connection must send `Hello`.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rpc::serve::{HandlerConnection, HandlerFuture, Lanes, ProtocolHandler, ServerContext};
use tokio::time::{Instant, sleep};
use tonic::body::Body;
use tower_service::Service as _;

use crate::codes;
use crate::deadline::Deadline;
use crate::health::HealthService;
use crate::jobs::JobsService;
use crate::limits::{
    CALL_TIME, HEADER_BYTES, KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT, REQUEST_BYTES, RESPONSE_BYTES,
    STREAM_LIMIT, UNAUTHENTICATED_TIME,
};
use crate::master_handle::{ClientId, MasterHandle};
use crate::pb::health::health_server::{HealthServer, SERVICE_NAME as HEALTH};
use crate::pb::jobs_server::{JobsServer, SERVICE_NAME as JOBS};
use crate::reflection::{self, V1, V1ALPHA};
use crate::unread::Unread;

/// The first bytes of an HTTP/2 connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

type Request = http::Request<Incoming>;
type Response = http::Response<Body>;

/// Serves calls at the port of a process: always health and reflection, and jobs if there is a master handle.
#[derive(Clone, Debug)]
pub struct GrpcServer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    master: Option<Arc<dyn MasterHandle>>,
    lanes: OnceLock<Lanes>,
    last_client: AtomicU64,
}

impl GrpcServer {
    /// The server of a process that is not a master: health and reflection only.
    pub fn of_member() -> Self {
        Self(Arc::new(Inner { master: None, lanes: OnceLock::new(), last_client: AtomicU64::new(0) }))
    }

    /// The server of a master.
    pub fn of_master(master: Arc<dyn MasterHandle>) -> Self {
        let master = Some(master);
        Self(Arc::new(Inner { master, lanes: OnceLock::new(), last_client: AtomicU64::new(0) }))
    }

    fn services(&self) -> &'static [&'static str] {
        match self.0.master {
            Some(_) => &[JOBS, HEALTH, V1, V1ALPHA],
            None => &[HEALTH, V1, V1ALPHA],
        }
    }

    fn next_client(&self) -> ClientId {
        self.0.last_client.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl ProtocolHandler for GrpcServer {
    fn preface(&self) -> &'static [u8] {
        PREFACE
    }

    fn start(&self, lanes: Lanes) {
        if let Some(master) = &self.0.master {
            master.start(lanes.clone());
        }
        // A server belongs to one process; a second call would pass the same lanes.
        let _ = self.0.lanes.set(lanes);
    }

    fn serve(&self, line: HandlerConnection, house: ServerContext) -> HandlerFuture {
        let (standing, unread) = (Arc::new(Standing::default()), Arc::new(Unread::default()));
        let caller = Caller { server: self.clone(), context: house.clone(), standing: Arc::clone(&standing) };
        let pieces = Arc::clone(&unread);
        let answer = move |request| {
            let (caller, pieces) = (caller.clone(), Arc::clone(&pieces));
            async move { Ok::<_, Infallible>(caller.answer(request).await.map(|body| pieces.pieces(body))) }
        };
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAM_LIMIT)
            .max_header_list_size(HEADER_BYTES)
            .keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT);
        let connection = builder.serve_connection(TokioIo::new(line), service_fn(answer));
        Box::pin(async move {
            let mut connection = pin!(connection);
            let mut stopped = pin!(house.stop().raised());
            let mut unwelcome = pin!(standing.unwelcome(house.limits().hello_time));
            let mut deaf = pin!(unread.too_long(house.limits().outbound_stall));
            let mut is_stopping = false;
            std::future::poll_fn(|context| {
                if !is_stopping && stopped.as_mut().poll(context).is_ready() {
                    is_stopping = true;
                    connection.as_mut().graceful_shutdown();
                }
                if connection.as_mut().poll(context).is_ready() {
                    return Poll::Ready(());
                }
                if unwelcome.as_mut().poll(context).is_ready() {
                    house.count_refused();
                    return Poll::Ready(());
                }
                if deaf.as_mut().poll(context).is_ready() {
                    house.count_unread();
                    return Poll::Ready(());
                }
                Poll::Pending
            })
            .await;
        })
    }
}

/// The authentication of a connection.
#[derive(Debug, Default)]
struct Standing {
    /// Whether a call has shown the token.
    is_known: AtomicBool,
    /// Whether the connection has made a call that needs no token.
    has_called: AtomicBool,
}

impl Standing {
    /// Ends when the connection has existed longer than its authentication allows.
    async fn unwelcome(&self, first: Duration) {
        sleep(first).await;
        if self.has_called.load(Ordering::Relaxed) && !self.is_known.load(Ordering::Relaxed) {
            sleep(UNAUTHENTICATED_TIME.saturating_sub(first)).await;
        }
        if self.is_known.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }
}

/// Serves the calls of one connection.
#[derive(Clone, Debug)]
struct Caller {
    server: GrpcServer,
    context: ServerContext,
    standing: Arc<Standing>,
}

impl Caller {
    async fn answer(&self, mut request: Request) -> Response {
        let asked = request.headers().get("grpc-timeout").and_then(|value| codes::timeout(value.as_bytes()));
        if let Some(limit) = asked
            // A deadline that overflows the clock is treated as none.
            && let Some(at) = Instant::now().checked_add(limit)
        {
            request.extensions_mut().insert(Deadline { at, limit });
        }
        let limit = asked.map_or(CALL_TIME, |asked| asked.min(CALL_TIME));
        match tokio::time::timeout(limit, self.call(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(status)) => status.into_http(),
            Err(_) => Deadline { at: Instant::now(), limit }.exceeded().into_http(),
        }
    }

    async fn call(&self, request: Request) -> Result<Response, tonic::Status> {
        let service = request.uri().path().trim_start_matches('/').split('/').next().unwrap_or_default();
        let answered = if service == HEALTH {
            self.standing.has_called.store(true, Ordering::Relaxed);
            let pulse =
                HealthService { lanes: self.server.0.lanes.get().cloned(), services: self.server.services() };
            let mut health = HealthServer::new(pulse).max_decoding_message_size(REQUEST_BYTES);
            health.call(request).await
        } else if service == JOBS {
            self.check_token(&request)?;
            let Some(master) = self.server.0.master.clone() else {
                let text = "this process is not a master: submit and watch jobs at the master";
                return Err(tonic::Status::unimplemented(text));
            };
            let mut jobs = JobsServer::new(JobsService { master, client: self.server.next_client() })
                .max_decoding_message_size(REQUEST_BYTES)
                .max_encoding_message_size(RESPONSE_BYTES);
            jobs.call(request).await
        } else if service == V1 {
            self.check_token(&request)?;
            let described = reflection::of_v1(self.server.services());
            described.max_decoding_message_size(REQUEST_BYTES).call(request).await
        } else if service == V1ALPHA {
            self.check_token(&request)?;
            let described = reflection::of_v1alpha(self.server.services());
            described.max_decoding_message_size(REQUEST_BYTES).call(request).await
        } else {
            let text = format!("no service {service:?}: this process has {:?}", self.server.services());
            return Err(tonic::Status::unimplemented(text));
        };
        answered.map_err(|never| match never {})
    }

    fn check_token(&self, request: &Request) -> Result<(), tonic::Status> {
        let shown = request.headers().get(http::header::AUTHORIZATION).map(http::HeaderValue::as_bytes);
        let token = shown.map(|value| value.strip_prefix(b"Bearer ").unwrap_or_default());
        if self.context.is_token(token.unwrap_or_default()) {
            self.standing.is_known.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let text = match shown {
            None => {
                "a token is required: give --token-file FILE to a command, or the metadata authorization: Bearer TOKEN \
                 to a gRPC call"
            }
            Some(_) => {
                "the token is not the one of this cluster: use the file that the master was started with"
            }
        };
        Err(tonic::Status::unauthenticated(text))
    }
}
