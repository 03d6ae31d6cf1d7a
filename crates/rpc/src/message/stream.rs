//! Several streams over one connection. Each **stream** has a number that all its frames carry, in both directions; a
//! connection with several is a **multiplexed connection**. A stream begins with a `Hello` of its own, as a connection
//! does. It ends with [`EndBranch`], which either side sends and which means the same as closing a connection. Only the
//! code that carries frames knows streams: to a [`crate::Service`] each is a connection.

use super::RequestId;

/// The sender sends no more frames of this stream and reads no more. No answer. When the last stream of a connection
/// ends, the connection is closed instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndBranch {
    /// Always 0: there is no answer.
    pub request: RequestId,
}
