//! The service `seraphim.v1.Jobs`: each call becomes one request to the master handle.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{oneshot, watch};
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

use crate::codes;
use crate::convert;
use crate::job_updates::{JobUpdates, UnwatchOnDrop};
use crate::master_handle::{CallResult, ClientCall, ClientId, MasterHandle, ResponseSender};
use crate::pb;
use crate::request::{ClientRequest, ClientResponse};

/// Serves the calls of all clients.
#[derive(Debug)]
pub(crate) struct JobsService {
    master: Arc<dyn MasterHandle>,
    last_client: AtomicU64,
}

impl JobsService {
    pub(crate) fn new(master: Arc<dyn MasterHandle>) -> Self {
        Self { master, last_client: AtomicU64::new(0) }
    }

    /// Passes a call to the master; returns its number.
    fn send(&self, word: ClientRequest, reply: ResponseSender) -> Result<ClientId, Status> {
        let client = self.last_client.fetch_add(1, Ordering::Relaxed) + 1;
        let call = ClientCall { client, request: word, reply };
        self.master.send(call).map_err(codes::status)?;
        Ok(client)
    }

    async fn call(&self, word: ClientRequest) -> Result<ClientResponse, Status> {
        let (reply, answered) = oneshot::channel();
        self.send(word, ResponseSender::Once(reply))?;
        let given: CallResult = answered.await.map_err(|_| codes::ended())?;
        given.map_err(codes::status)
    }
}

fn unexpected_response(answer: &ClientResponse) -> Status {
    Status::internal(format!("the master sent an unexpected answer: {answer:?}"))
}

#[tonic::async_trait]
impl pb::jobs_server::Jobs for JobsService {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<pb::JobStatus, Status>> + Send>>;

    async fn submit(&self, request: Request<pb::SubmitRequest>) -> Result<Response<pb::SubmitReply>, Status> {
        let (id, submission) = convert::submission(request.into_inner())?;
        match self.call(ClientRequest::Submit { id, submission }).await? {
            ClientResponse::Submitted { job } => Ok(Response::new(pb::SubmitReply { job })),
            other => Err(unexpected_response(&other)),
        }
    }

    async fn status(
        &self,
        _request: Request<pb::StatusRequest>,
    ) -> Result<Response<pb::StatusReply>, Status> {
        match self.call(ClientRequest::Status).await? {
            ClientResponse::Status(status) => Ok(Response::new(convert::status_reply(status))),
            other => Err(unexpected_response(&other)),
        }
    }

    async fn cancel(&self, request: Request<pb::CancelRequest>) -> Result<Response<pb::CancelReply>, Status> {
        match self.call(ClientRequest::Cancel { job: request.into_inner().job }).await? {
            ClientResponse::Cancelled { was_live } => Ok(Response::new(pb::CancelReply { was_live })),
            other => Err(unexpected_response(&other)),
        }
    }

    async fn checkpoint(
        &self,
        request: Request<pb::CheckpointRequest>,
    ) -> Result<Response<pb::CheckpointReply>, Status> {
        match self.call(ClientRequest::Checkpoint { job: request.into_inner().job }).await? {
            ClientResponse::CheckpointRequested => Ok(Response::new(pb::CheckpointReply {})),
            other => Err(unexpected_response(&other)),
        }
    }

    async fn watch(&self, request: Request<pb::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let (reply, mut latest) = watch::channel(None);
        let watch = ClientRequest::Watch { job: request.into_inner().job };
        let client = self.send(watch, ResponseSender::Latest(reply))?;
        let leaving = UnwatchOnDrop { master: Arc::clone(&self.master), client };
        // A refusal is the answer to the call, not an update.
        latest.changed().await.map_err(|_| codes::ended())?;
        if let Some(Err(fault)) = &*latest.borrow() {
            return Err(codes::status(fault.clone()));
        }
        Ok(Response::new(Box::pin(JobUpdates::new(latest, leaving))))
    }
}
