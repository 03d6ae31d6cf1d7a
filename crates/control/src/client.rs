//! The client of the control plane: blocking, with one connection a call. Every wait has a limit, which is sent as the
//! deadline of the call.

use std::error::Error as _;
use std::time::{Duration, Instant};

use rpc::Address;
use rpc::message::{FaultKind, JobId};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tonic::{Code, Request};

use crate::codes;
use crate::convert;
use crate::error::Error;
use crate::grpc_connection::{GrpcConnection, Other};
use crate::limits::{REQUEST_BYTES, RESPONSE_BYTES};
use crate::pb;
use crate::pb::health::health_check_response::ServingStatus;
use crate::pb::health::health_client::HealthClient;
use crate::pb::jobs_client::JobsClient;
use crate::request::{JobStatus, JobSubmission, Status, SubmissionId};

/// Longest wait for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(4);
/// A submission without an answer for this time is sent again on another connection.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(3);
/// Time between two attempts.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// When a watched job has no update for this time, the client checks the health of the master.
const HEALTH_INTERVAL: Duration = Duration::from_secs(5);

/// Calls a master.
#[derive(Clone, Debug)]
pub struct Client {
    address: Address,
    token: Vec<u8>,
}

impl Client {
    /// `token` is the shared secret; empty when there is none.
    pub fn new(address: Address, token: &[u8]) -> Self {
        Self { address, token: token.to_vec() }
    }

    /// Submits a job. Retries until it is answered or `limit` has passed; the master runs it once, because every
    /// attempt has the same id. If the first connection fails, the error is returned at once.
    pub fn submit(&self, id: SubmissionId, order: &JobSubmission, limit: Duration) -> Result<JobId, Error> {
        let request = convert::submit_request(id, order);
        let deadline = Instant::now() + limit;
        let runtime = runtime()?;
        let mut was_connected = false;
        loop {
            let rest = deadline.saturating_duration_since(Instant::now()).min(ATTEMPT_LIMIT);
            let attempt = self
                .call(rest, async |mut jobs, limit| jobs.submit(with_deadline(request.clone(), limit)).await);
            let error = match runtime.block_on(attempt) {
                Ok(reply) => return Ok(reply.job),
                Err(error) => error,
            };
            was_connected |= !matches!(error, Error::Connect { .. });
            let goes_on = was_connected && error.is_unanswered();
            if !goes_on || deadline.saturating_duration_since(Instant::now()) < RETRY_PAUSE {
                return Err(error);
            }
            tracing::debug!(%error, "a submission was not answered and is sent again");
            std::thread::sleep(RETRY_PAUSE);
        }
    }

    /// The members and the jobs.
    pub fn status(&self, limit: Duration) -> Result<Status, Error> {
        let call = self.call(limit, async |mut jobs, limit| {
            jobs.status(with_deadline(pb::StatusRequest {}, limit)).await
        });
        convert::status(runtime()?.block_on(call)?).map_err(|problem| Error::Response { problem })
    }

    /// Ends a job at its next step; returns whether it had not ended yet.
    pub fn cancel(&self, job: JobId, limit: Duration) -> Result<bool, Error> {
        let call = self.call(limit, async |mut jobs, limit| {
            jobs.cancel(with_deadline(pb::CancelRequest { job }, limit)).await
        });
        Ok(runtime()?.block_on(call)?.was_live)
    }

    /// Whether the process is healthy. It may be a master or a server.
    pub fn is_well(&self, limit: Duration) -> Result<bool, Error> {
        runtime()?.block_on(async {
            let line = self.open(limit).await?;
            is_well(&line, limit).await
        })
    }

    /// The present status of the job, with its report when the job has ended and the master still stores it.
    pub fn job(&self, job: JobId) -> Result<JobStatus, Error> {
        let mut seen = None;
        self.watch(job, |status| {
            seen = Some(status.clone());
            false
        })?;
        seen.ok_or_else(|| Error::Lost { problem: "the master sent no status of the job".into() })
    }

    /// Calls `see` with the status of the job now and after each change, until the job has ended or `see` returns
    /// `false`. When no update arrives for a while, it checks the health of the master.
    pub fn watch(&self, job: JobId, mut see: impl FnMut(&JobStatus) -> bool) -> Result<(), Error> {
        runtime()?.block_on(async {
            let line = self.open(CONNECT_LIMIT).await?;
            let mut jobs = jobs(&line);
            let asked = jobs.watch(pb::WatchRequest { job });
            let mut news = within(HEALTH_INTERVAL, &line, asked).await?.into_inner();
            loop {
                let Ok(next) = timeout(HEALTH_INTERVAL, news.message()).await else {
                    is_well(&line, HEALTH_INTERVAL).await?;
                    continue;
                };
                let Some(status) = next.map_err(|status| error_of(&line, &status))? else {
                    return Err(Error::Lost {
                        problem: "the master sent no further status of the job, which has not ended".into(),
                    });
                };
                let status = convert::job(status).map_err(|problem| Error::Response { problem })?;
                let goes_on = see(&status);
                if status.state.is_over() || !goes_on {
                    return Ok(());
                }
            }
        })
    }

    /// Connects and calls, both within the limit.
    async fn call<T>(
        &self,
        limit: Duration,
        call: impl AsyncFnOnce(JobsClient<GrpcConnection>, Duration) -> Result<tonic::Response<T>, tonic::Status>,
    ) -> Result<T, Error> {
        let deadline = Instant::now() + limit;
        let line = self.open(limit).await?;
        let rest = deadline.saturating_duration_since(Instant::now());
        Ok(within(rest, &line, call(jobs(&line), rest)).await?.into_inner())
    }

    async fn open(&self, limit: Duration) -> Result<GrpcConnection, Error> {
        let limit = limit.min(CONNECT_LIMIT);
        match timeout(limit, GrpcConnection::open(&self.address, &self.token)).await {
            Ok(opened) => opened,
            Err(_) => Err(Error::TimedOut { during: "while connecting", limit }),
        }
    }
}

fn runtime() -> Result<Runtime, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|source| Error::System { what: "cannot start a runtime", source })
}

/// The origin of requests. The host name is not used, because the connection exists already.
fn origin() -> http::Uri {
    http::Uri::from_static("http://seraphim")
}

fn jobs(line: &GrpcConnection) -> JobsClient<GrpcConnection> {
    JobsClient::with_origin(line.clone(), origin())
        .max_encoding_message_size(REQUEST_BYTES)
        .max_decoding_message_size(RESPONSE_BYTES)
}

async fn is_well(line: &GrpcConnection, limit: Duration) -> Result<bool, Error> {
    let mut health = HealthClient::with_origin(line.clone(), origin());
    let asked = health.check(with_deadline(pb::health::HealthCheckRequest::default(), limit));
    let reply = within(limit, line, asked).await?.into_inner();
    Ok(reply.status() == ServingStatus::Serving)
}

fn with_deadline<T>(message: T, limit: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(limit);
    request
}

async fn within<T>(
    limit: Duration,
    line: &GrpcConnection,
    call: impl Future<Output = Result<T, tonic::Status>>,
) -> Result<T, Error> {
    match timeout(limit, call).await {
        Ok(answered) => answered.map_err(|status| error_of(line, &status)),
        Err(_) => Err(Error::TimedOut { during: "for the call", limit }),
    }
}

/// Converts a status to an error. A status without a cause was sent by the other end.
fn error_of(line: &GrpcConnection, status: &tonic::Status) -> Error {
    match line.other() {
        // The other end accepts frames only.
        Some(Other::Fault(fault)) if fault.kind == FaultKind::BadFrame => return Error::NotGrpc,
        Some(Other::Fault(fault)) => {
            return Error::Refused { code: codes::code(fault.kind), text: fault.text.clone() };
        }
        Some(Other::Unknown) => return Error::NotGrpc,
        None => {}
    }
    let mut cause = status.source();
    if cause.is_none() && status.code() != Code::Unknown {
        return Error::Refused { code: status.code(), text: status.message().to_owned() };
    }
    let mut problem = status.message().to_owned();
    while let Some(error) = cause {
        problem = error.to_string();
        cause = error.source();
    }
    Error::Lost { problem }
}
