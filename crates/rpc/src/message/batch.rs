//! Several small requests in one frame. The lane handles them in their order and returns all answers in one frame, in
//! the same order. Batches are for sessions only, where no request waits. A batch may be repeated if each request in it
//! may be repeated.

use super::{Message, RequestId};

/// Requests, or the answers to them. A request that wants no answer has none in the batch of answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub request: RequestId,
    /// None of them is a batch.
    pub messages: Vec<Message>,
}
