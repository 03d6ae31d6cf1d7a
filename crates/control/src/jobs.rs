//! The service `seraphim.v1.Jobs`: each call is one word to the clerk.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{oneshot, watch};
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

use crate::clerk::{Call, Clerk, ClientId, Given, Reply};
use crate::codes;
use crate::convert;
use crate::deadline::Deadline;
use crate::news::{Leaving, News};
use crate::pb;
use crate::words::{Answer, ClientWord};

/// One call of a client.
#[derive(Debug)]
pub(crate) struct Jobs {
    pub(crate) clerk: Arc<dyn Clerk>,
    /// Of this call.
    pub(crate) client: ClientId,
}

impl Jobs {
    fn hear(&self, word: ClientWord, reply: Reply) -> Result<(), Status> {
        let call = Call { client: self.client, word, reply };
        self.clerk.hear(call).map_err(codes::status)
    }

    async fn ask(&self, word: ClientWord) -> Result<Answer, Status> {
        let (reply, answered) = oneshot::channel();
        self.hear(word, Reply::Once(reply))?;
        let given: Given = answered.await.map_err(|_| codes::ended())?;
        given.map_err(codes::status)
    }
}

fn confused(answer: &Answer) -> Status {
    Status::internal(format!("the master gave an answer to another question: {answer:?}"))
}

#[tonic::async_trait]
impl pb::jobs_server::Jobs for Jobs {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<pb::JobStatus, Status>> + Send>>;

    async fn submit(&self, request: Request<pb::SubmitRequest>) -> Result<Response<pb::SubmitReply>, Status> {
        let (id, order) = convert::order(request.into_inner())?;
        match self.ask(ClientWord::Submit { id, order }).await? {
            Answer::Submitted { job } => Ok(Response::new(pb::SubmitReply { job })),
            other => Err(confused(&other)),
        }
    }

    async fn status(
        &self,
        _request: Request<pb::StatusRequest>,
    ) -> Result<Response<pb::StatusReply>, Status> {
        match self.ask(ClientWord::Status).await? {
            Answer::Status(status) => Ok(Response::new(convert::status_reply(status))),
            other => Err(confused(&other)),
        }
    }

    async fn cancel(&self, request: Request<pb::CancelRequest>) -> Result<Response<pb::CancelReply>, Status> {
        match self.ask(ClientWord::Cancel { job: request.into_inner().job }).await? {
            Answer::Cancelled { was_live } => Ok(Response::new(pb::CancelReply { was_live })),
            other => Err(confused(&other)),
        }
    }

    async fn watch(&self, request: Request<pb::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let deadline = request.extensions().get::<Deadline>().copied();
        let (reply, mut latest) = watch::channel(None);
        self.hear(ClientWord::Watch { job: request.into_inner().job }, Reply::Latest(reply))?;
        let leaving = Leaving { clerk: Arc::clone(&self.clerk), client: self.client };
        // A refusal is the answer to the call, not one of the news.
        latest.changed().await.map_err(|_| codes::ended())?;
        if let Some(Err(fault)) = &*latest.borrow() {
            return Err(codes::status(fault.clone()));
        }
        Ok(Response::new(Box::pin(News::new(latest, deadline, leaving))))
    }
}
