//! The HTTP port of a process: gRPC, `/metrics` and `/health`, on a thread of its own.
//!
//! Routes are those of axum, services those of tonic, connections those of hyper-util with its limits. Three limits have no stock part: the time until a
//! connection shows the token (`http_connection`); the time for which an answer stays unread while its reader answers pings (`answer`), because a
//! limit of the age of a connection would end the watch of a long job; and the refusal of a connection above the limit, which says so.
//! What members say to the master is not here: it is numbered, and kept until it is known to have arrived, through resets
//! ([`rpc::reliable_queue`]).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rpc::serve::{AsyncListener, Socket};
use rpc::{Limits, Listener, Stop};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::counters::{Counters, count};
use crate::http_config::HttpConfig;
use crate::http_connection::HttpConnection;
use crate::limits::{HEADER_BYTES, KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT, REFUSAL_LIMIT, STREAM_LIMIT};
use crate::routes;

/// Pause after the system has refused to accept, as it does when no file descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The thread that serves. Dropping this value waits for its end, so the stop must be raised first.
#[derive(Debug)]
pub struct HttpThread(Option<JoinHandle<()>>);

impl Drop for HttpThread {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // A panic was reported by the thread.
            let _ = thread.join();
        }
    }
}

/// Serves at the listeners until `stop` is raised; then calls have [`Limits::close_time`] to end.
pub fn serve_http(
    listeners: Vec<Listener>,
    config: HttpConfig,
    stop: Stop,
) -> Result<HttpThread, rpc::Error> {
    let failed = |source| rpc::Error::Io { what: "start the HTTP server".into(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let accepting = {
        let _entered = runtime.enter();
        listeners.iter().map(Listener::to_async).collect::<Result<Vec<_>, _>>().map_err(failed)?
    };
    let limits = config.limits;
    let server = Arc::new(HttpServer::new(config, stop.clone()));
    let serve = move || {
        runtime.block_on(async {
            let accept = |listener| tokio::spawn(Arc::clone(&server).accept(listener));
            let accepting: Vec<_> = accepting.into_iter().map(accept).collect();
            stop.raised().await;
            // Nobody connects any more to a process that ends: it would have no place.
            accepting.iter().for_each(tokio::task::JoinHandle::abort);
            drop(listeners);
            // All places are free when all connections have ended.
            let _ = timeout(limits.close_time, server.places.acquire_many(server.place_count)).await;
        });
        // The end of the runtime ends the tasks that are left.
    };
    let thread = std::thread::Builder::new().name("http".into()).spawn(serve).map_err(failed)?;
    Ok(HttpThread(Some(thread)))
}

/// What all connections share.
#[derive(Debug)]
struct HttpServer {
    protocol: Builder<TokioExecutor>,
    routes: Router,
    /// Answers every request of a connection above the limit with a refusal.
    refusals: Router,
    limits: Limits,
    stop: Stop,
    counters: Arc<Counters>,
    place_count: u32,
    places: Arc<Semaphore>,
    refusal_places: Arc<Semaphore>,
}

impl HttpServer {
    fn new(config: HttpConfig, stop: Stop) -> Self {
        let limits = config.limits;
        let counters = Arc::new(Counters::default());
        let mut protocol = Builder::new(TokioExecutor::new());
        protocol
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.hello_time)
            .max_buf_size(HEADER_BYTES as usize);
        protocol
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAM_LIMIT)
            .max_header_list_size(HEADER_BYTES)
            .keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT);
        Self {
            protocol,
            routes: routes::routes(config, Arc::clone(&counters)),
            refusals: routes::refusals(limits.connections),
            limits,
            stop,
            counters,
            place_count: limits.connections as u32,
            places: Arc::new(Semaphore::new(limits.connections)),
            refusal_places: Arc::new(Semaphore::new(REFUSAL_LIMIT)),
        }
    }

    async fn accept(self: Arc<Self>, listener: AsyncListener) {
        loop {
            match listener.accept().await {
                Ok(socket) => self.start(socket),
                Err(error) => {
                    count(&self.counters.accept_errors);
                    tracing::warn!(%error, "cannot accept an HTTP connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Starts a connection. One above the limit gets a refusal; when many do so, it is closed.
    fn start(self: &Arc<Self>, socket: Socket) {
        count(&self.counters.accepted);
        let (place, routes) = if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            (place, &self.routes)
        } else {
            count(&self.counters.refused_full);
            let Ok(place) = Arc::clone(&self.refusal_places).try_acquire_owned() else { return };
            (place, &self.refusals)
        };
        let (connection, routes, server) = (HttpConnection::default(), routes.clone(), Arc::clone(self));
        tokio::spawn(async move {
            let HttpServer { protocol, limits, stop, counters, .. } = &*server;
            counters.open.fetch_add(1, Ordering::Relaxed);
            connection.serve(protocol, routes, socket, limits, stop, counters).await;
            counters.open.fetch_sub(1, Ordering::Relaxed);
            drop(place);
        });
    }
}
