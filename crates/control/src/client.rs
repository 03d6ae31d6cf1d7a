//! The client of the control plane: blocking, with one connection a call. Every wait has a limit, which is sent as the
//! deadline of the call.

use std::error::Error as _;
use std::time::{Duration, Instant};

use rpc::Address;
use rpc::message::JobId;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status as CallStatus, TimeoutExpired};

use crate::convert;
use crate::error::Error;
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

/// Calls a process at its HTTP address.
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
    pub fn submit(
        &self,
        id: SubmissionId,
        submission: &JobSubmission,
        limit: Duration,
    ) -> Result<JobId, Error> {
        let request = convert::submit_request(id, submission);
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
            let goes_on = was_connected && error.may_pass();
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

    /// Asks a running job to write a checkpoint soon.
    pub fn checkpoint(&self, job: JobId, limit: Duration) -> Result<(), Error> {
        let call = self.call(limit, async |mut jobs, limit| {
            jobs.checkpoint(with_deadline(pb::CheckpointRequest { job }, limit)).await
        });
        runtime()?.block_on(call).map(drop)
    }

    /// Whether the process is healthy. It may be a master or a server.
    pub fn is_well(&self, limit: Duration) -> Result<bool, Error> {
        runtime()?.block_on(async { is_well(&self.open(limit).await?, limit).await })
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
            let channel = self.open(CONNECT_LIMIT).await?;
            let mut jobs = self.jobs(&channel)?;
            let asked = jobs.watch(pb::WatchRequest { job });
            let mut news = within(HEALTH_INTERVAL, asked).await?.into_inner();
            loop {
                let Ok(next) = timeout(HEALTH_INTERVAL, news.message()).await else {
                    is_well(&channel, HEALTH_INTERVAL).await?;
                    continue;
                };
                let Some(status) = next.map_err(|status| error_of(&status))? else {
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
        call: impl AsyncFnOnce(Jobs, Duration) -> Result<tonic::Response<T>, CallStatus>,
    ) -> Result<T, Error> {
        let deadline = Instant::now() + limit;
        let channel = self.open(limit).await?;
        let rest = deadline.saturating_duration_since(Instant::now());
        Ok(within(rest, call(self.jobs(&channel)?, rest)).await?.into_inner())
    }

    async fn open(&self, limit: Duration) -> Result<Channel, Error> {
        let limit = limit.min(CONNECT_LIMIT);
        let failed = |error: tonic::transport::Error| Error::Connect { problem: deepest(&error).to_string() };
        let target = match &self.address {
            Address::Tcp(place) => format!("http://{place}"),
            Address::Unix(_) => self.address.to_string(),
        };
        let endpoint = Endpoint::from_shared(target).map_err(failed)?;
        match timeout(limit, endpoint.connect()).await {
            Ok(opened) => opened.map_err(failed),
            Err(_) => Err(Error::TimedOut { during: "while connecting", limit }),
        }
    }

    fn jobs(&self, channel: &Channel) -> Result<Jobs, Error> {
        let token = match self.token.as_slice() {
            [] => None,
            token => {
                let value = MetadataValue::try_from([b"Bearer ", token].concat());
                let mut value = value.map_err(|_| Error::Token)?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let jobs = JobsClient::with_interceptor(channel.clone(), WithToken(token));
        Ok(jobs.max_encoding_message_size(REQUEST_BYTES).max_decoding_message_size(RESPONSE_BYTES))
    }
}

type Jobs = JobsClient<InterceptedService<Channel, WithToken>>;

/// Adds the token to every call.
#[derive(Clone)]
struct WithToken(Option<MetadataValue<Ascii>>);

impl Interceptor for WithToken {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, CallStatus> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

fn runtime() -> Result<Runtime, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|source| Error::System { what: "cannot start a runtime", source })
}

async fn is_well(channel: &Channel, limit: Duration) -> Result<bool, Error> {
    let mut health = HealthClient::new(channel.clone());
    let asked = health.check(with_deadline(pb::health::HealthCheckRequest::default(), limit));
    Ok(within(limit, asked).await?.into_inner().status() == ServingStatus::Serving)
}

fn with_deadline<T>(message: T, limit: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(limit);
    request
}

async fn within<T>(limit: Duration, call: impl Future<Output = Result<T, CallStatus>>) -> Result<T, Error> {
    let late = Err(Error::TimedOut { during: "for the call", limit });
    match timeout(limit, call).await {
        Ok(Ok(answered)) => Ok(answered),
        // The channel counts the deadline of the call too.
        Ok(Err(status)) if status.source().is_some_and(|cause| deepest(cause).is::<TimeoutExpired>()) => late,
        Ok(Err(status)) => Err(error_of(&status)),
        Err(_) => late,
    }
}

/// Converts a status to an error. A status without a cause was sent by the other end.
fn error_of(status: &CallStatus) -> Error {
    let Some(cause) = status.source() else {
        return Error::Refused { code: status.code(), text: status.message().to_owned() };
    };
    let cause = deepest(cause);
    // Other protocols begin with bytes that are too long a frame of HTTP/2.
    let reason = cause.downcast_ref::<h2::Error>().and_then(h2::Error::reason);
    if reason == Some(h2::Reason::FRAME_SIZE_ERROR) {
        return Error::NotGrpc;
    }
    Error::Lost { problem: cause.to_string() }
}

/// The error that caused all others.
fn deepest<'a>(error: &'a (dyn std::error::Error + 'static)) -> &'a (dyn std::error::Error + 'static) {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest
}
