//! Several requests of a session in one frame.

use std::time::Duration;

use rpc::codec::parts_bytes;
use rpc::message::{Batch, FaultKind, Message, RequestId};
use rpc::service::{ConnectionId, Effect};

use crate::refusal::Refusal;
use crate::state::LaneState;

/// Most bytes of values in the answers of a batch.
const ANSWER_LIMIT_BYTES: u64 = rpc::CHUNK_BYTES as u64;

/// The requests that a batch may have: their answers are small, or count against the limit.
const SMALL: &str = "pulls, pushes, staged pushes, commits, closings of tokens and functions";

fn is_small(message: &Message) -> bool {
    matches!(
        message,
        Message::Pull(_)
            | Message::Push(_)
            | Message::PushStaged(_)
            | Message::Commit(_)
            | Message::CloseToken(_)
            | Message::PullFunction(_)
            | Message::PushFunction(_)
            | Message::TryFunction(_)
            | Message::CommitFunction(_)
    )
}

impl LaneState {
    /// Handles the requests in order. Requests of a session never wait, so every answer is there at once.
    pub(crate) fn batch(
        &mut self,
        now: Duration,
        at: ConnectionId,
        arrival: u64,
        batch: Batch,
        out: &mut Vec<Effect>,
    ) {
        let request = batch.request;
        if !self.is_of_session(at) {
            let text = "only a session may send batches: requests of tasks may have to wait for one another";
            return self.refuse(at, request, Refusal::new(FaultKind::Invalid, text), out);
        }
        let (mut answers, mut others, mut bytes) = (Vec::new(), Vec::new(), 0);
        for message in batch.messages {
            self.stats.count_request(&message);
            let mut done = Vec::new();
            if is_small(&message) {
                self.handle(now, at, arrival, message, &mut done);
            } else {
                let text = format!("{} in a batch, which may have only {SMALL}", message.kind_name());
                self.refuse(at, 0, Refusal::new(FaultKind::BadFrame, text), &mut done);
                self.close(now, at, &mut done);
            }
            for effect in done {
                match effect {
                    Effect::Send { connection, message } if connection == at => {
                        answers.push(self.within_limit(message, &mut bytes));
                    }
                    other => others.push(other),
                }
            }
            // The request was refused and its connection is closed: the requests behind it are ignored.
            if !self.connections.contains_key(&at) {
                break;
            }
        }
        let message = Message::Batch(Batch { request, messages: answers });
        out.push(Effect::Send { connection: at, message });
        out.extend(others);
    }

    /// Returns the answer, or a refusal in its place when its values exceed the limit.
    fn within_limit(&mut self, answer: Message, bytes: &mut u64) -> Message {
        let Some((request, size)) = value_bytes(&answer) else { return answer };
        if *bytes + size <= ANSWER_LIMIT_BYTES {
            *bytes += size;
            return answer;
        }
        let text = format!(
            "{size} bytes of values after {bytes} in one batch, the limit is {ANSWER_LIMIT_BYTES}: pull in \
             another batch"
        );
        self.stats.count_refusal(FaultKind::TooLarge);
        Message::Fault(Refusal::new(FaultKind::TooLarge, text).into_fault(request))
    }
}

/// The request that an answer belongs to and the bytes of its values, if it has any.
fn value_bytes(answer: &Message) -> Option<(RequestId, u64)> {
    match answer {
        Message::Pulled(pulled) => Some((pulled.request, pulled.values.byte_count() as u64)),
        Message::PulledFunction(pulled) => Some((pulled.request, parts_bytes(&pulled.parts) as u64)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use matrix::OwnedValues;
    use matrix::PartialAnswer;
    use rpc::message::{Done, Pulled, PulledFunction, PushPosition};

    use super::*;

    #[test]
    fn values_and_parts_of_functions_count_against_the_limit() {
        let (minimum, deferred_ns, applied) = (0, 0, PushPosition::default());
        let values = OwnedValues::F32(vec![0.0; 100]).into();
        let pulled = Pulled { request: 3, minimum, deferred_ns, applied, values };
        assert_eq!(value_bytes(&Message::Pulled(pulled)), Some((3, 400)));
        let parts = vec![PartialAnswer { partition: 0, bytes: vec![0; 100] }; 2];
        let pulled = PulledFunction { request: 4, minimum, deferred_ns, applied, parts };
        assert_eq!(value_bytes(&Message::PulledFunction(pulled)), Some((4, 2 * (16 + 100))));
        assert_eq!(value_bytes(&Message::Done(Done { request: 5, minimum, applied })), None);
    }
}
