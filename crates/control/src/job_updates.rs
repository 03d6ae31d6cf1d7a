//! The stream of updates to a client that watches a job. It returns the latest update that the client has not read,
//! until the job is over or the master has ended.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::watch;
use tokio_stream::Stream;
use tokio_stream::wrappers::WatchStream;
use tonic::Status;

use crate::codes;
use crate::convert;
use crate::master_handle::{CallResult, ClientCall, ClientId, MasterHandle, ResponseSender};
use crate::pb;
use crate::request::{ClientRequest, ClientResponse};

/// Sends `Unwatch` when it is dropped, because the client has left.
#[derive(Debug)]
pub(crate) struct UnwatchOnDrop {
    pub(crate) master: Arc<dyn MasterHandle>,
    pub(crate) client: ClientId,
}

impl Drop for UnwatchOnDrop {
    fn drop(&mut self) {
        let call = ClientCall {
            client: self.client,
            request: ClientRequest::Unwatch,
            reply: ResponseSender::Discard,
        };
        // When the queue is full, the master notices at the next update that the client has left.
        let _ = self.master.send(call);
    }
}

/// The stream of updates.
pub(crate) struct JobUpdates {
    latest: WatchStream<Option<CallResult>>,
    is_over: bool,
    _unwatch: UnwatchOnDrop,
}

impl JobUpdates {
    pub(crate) fn new(latest: watch::Receiver<Option<CallResult>>, leaving: UnwatchOnDrop) -> Self {
        Self { latest: WatchStream::new(latest), is_over: false, _unwatch: leaving }
    }

    fn item(&mut self, given: Option<CallResult>) -> Result<pb::JobStatus, Status> {
        let item = match given {
            Some(Ok(ClientResponse::Job(status))) => {
                self.is_over = status.state.is_over();
                return Ok(convert::from_job(status));
            }
            Some(Ok(other)) => Status::internal(format!("the master sent an unexpected update: {other:?}")),
            Some(Err(fault)) => codes::status(fault),
            None => codes::ended(),
        };
        self.is_over = true;
        Err(item)
    }
}

impl Stream for JobUpdates {
    type Item = Result<pb::JobStatus, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let given = ready!(Pin::new(&mut self.latest).poll_next(context)).flatten();
        Poll::Ready(Some(self.item(given)))
    }
}
