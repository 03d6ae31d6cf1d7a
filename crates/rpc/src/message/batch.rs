//! Several small requests in one frame. They are done in their order, and what they are answered comes back in one frame,
//! in that order. Only of sessions, where nothing waits. It may be repeated if all that is in it may be.

use super::{Message, RequestId};

/// Requests, answered by a batch of answers; or those answers. A request in it that wants no answer has none.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Of this request.
    pub request: RequestId,
    /// None of them a batch.
    pub messages: Vec<Message>,
}
