//! The paths of the HTTP port, and what holds for each request: its deadline, the token, and that its answer is read.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use subtle::ConstantTimeEq;
use tokio::time::timeout;
use tonic::Status;

use crate::answer::{self, Deadline};
use crate::codes;
use crate::counters::Counters;
use crate::health::HealthService;
use crate::http_config::{HttpConfig, MetricsSource};
use crate::http_connection::{AuthState, HttpConnection};
use crate::jobs::JobsService;
use crate::limits::{CALL_TIME, REQUEST_BYTES, RESPONSE_BYTES};
use crate::metrics_text::{METRICS_TYPE, metrics_text};
use crate::pb::health::health_server::{HealthServer, SERVICE_NAME as HEALTH};
use crate::pb::jobs_server::{JobsServer, SERVICE_NAME as JOBS};
use crate::reflection::{self, V1, V1ALPHA};

/// The routes of a process.
pub(crate) fn routes(config: HttpConfig, counters: Arc<Counters>) -> Router {
    let HttpConfig { token, limits, master, metrics } = config;
    let services: &'static [&'static str] = match master {
        Some(_) => &[JOBS, HEALTH, V1, V1ALPHA],
        None => &[HEALTH, V1, V1ALPHA],
    };
    let v1 = reflection::of_v1(services).max_decoding_message_size(REQUEST_BYTES);
    let v1alpha = reflection::of_v1alpha(services).max_decoding_message_size(REQUEST_BYTES);
    let mut with_token = Router::new().route_service(&path(V1), v1).route_service(&path(V1ALPHA), v1alpha);
    if let Some(master) = master {
        let jobs = JobsServer::new(JobsService::new(master))
            .max_decoding_message_size(REQUEST_BYTES)
            .max_encoding_message_size(RESPONSE_BYTES);
        with_token = with_token.route_service(&path(JOBS), jobs);
    }
    let health = HealthServer::new(HealthService { metrics: metrics.clone(), services })
        .max_decoding_message_size(REQUEST_BYTES);
    with_token
        .route_layer(middleware::from_fn_with_state(Arc::<[u8]>::from(token), check_token))
        .route_service(&path(HEALTH), health)
        .route("/metrics", get(answer_metrics))
        .route("/health", get(answer_health))
        .with_state((metrics, counters))
        .fallback(async move |request: Request| not_found(&request, services))
        .layer(middleware::from_fn_with_state(limits.outbound_stall, limit_call))
}

/// Refuses every request of a connection above the limit.
pub(crate) fn refusals(limit: usize) -> Router {
    Router::new().fallback(async move |connection: Extension<HttpConnection>, headers: HeaderMap| {
        connection.raise(AuthState::Anonymous);
        let text = format!("the limit of {limit} connections is reached: close some, or retry later");
        refuse(&headers, StatusCode::SERVICE_UNAVAILABLE, Status::unavailable(text))
    })
}

fn path(service: &str) -> String {
    format!("/{service}/{{*method}}")
}

type Source = State<(MetricsSource, Arc<Counters>)>;

async fn answer_metrics(State((source, counters)): Source) -> Response {
    match source().await {
        Ok(mut metrics) => {
            counters.metrics(&mut metrics);
            ([(CONTENT_TYPE, METRICS_TYPE)], metrics_text(metrics)).into_response()
        }
        Err(text) => (StatusCode::SERVICE_UNAVAILABLE, text + "\n").into_response(),
    }
}

async fn answer_health(State((source, _)): Source) -> Response {
    match source().await {
        Ok(_) => "ok\n".into_response(),
        Err(text) => (StatusCode::SERVICE_UNAVAILABLE, text + "\n").into_response(),
    }
}

fn not_found(request: &Request, services: &[&str]) -> Response {
    let service = request.uri().path().trim_start_matches('/').split('/').next().unwrap_or_default();
    let status = if service == JOBS {
        Status::unimplemented("this process is not a master: submit and watch jobs at the master")
    } else if is_grpc(request.headers()) {
        Status::unimplemented(format!("no service {service:?}: this process has {services:?}"))
    } else {
        Status::not_found("there are /metrics and /health")
    };
    refuse(request.headers(), StatusCode::NOT_FOUND, status)
}

fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// A refusal as gRPC status, or as the HTTP status `code` to clients that do not use gRPC.
fn refuse(headers: &HeaderMap, code: StatusCode, status: Status) -> Response {
    if is_grpc(headers) {
        status.into_http()
    } else {
        (code, format!("{}\n", status.message())).into_response()
    }
}

async fn check_token(
    State(token): State<Arc<[u8]>>,
    connection: Extension<HttpConnection>,
    request: Request,
    next: Next,
) -> Response {
    let shown = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
    let given = shown.map(|value| value.strip_prefix(b"Bearer ").unwrap_or_default()).unwrap_or_default();
    if given.ct_eq(&token).into() {
        connection.raise(AuthState::Authenticated);
        return next.run(request).await;
    }
    let text = match shown {
        None => {
            "a token is required: give --token-file FILE to a command, or the metadata authorization: Bearer TOKEN \
             to a gRPC call"
        }
        Some(_) => "the token is not the one of this cluster: use the file that the master was started with",
    };
    refuse(request.headers(), StatusCode::UNAUTHORIZED, Status::unauthenticated(text))
}

/// Ends a call at its deadline, and the connection when the answer is not read for `stall`.
async fn limit_call(
    State(stall): State<Duration>,
    Extension(connection): Extension<HttpConnection>,
    request: Request,
    next: Next,
) -> Response {
    connection.raise(AuthState::Anonymous);
    let asked = request.headers().get("grpc-timeout").and_then(|value| codes::timeout(value.as_bytes()));
    let deadline = asked.and_then(Deadline::after);
    let limit = asked.map_or(CALL_TIME, |asked| asked.min(CALL_TIME));
    let headers = request.headers().clone();
    match timeout(limit, next.run(request)).await {
        Ok(response) => answer::limited(response, deadline, stall, connection),
        Err(_) => refuse(&headers, StatusCode::GATEWAY_TIMEOUT, codes::deadline_exceeded(limit)),
    }
}
