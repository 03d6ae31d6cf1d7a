//! Several conversations over one connection. Each is a **branch**, with a number that stands in all its frames, both ways; a
//! connection with several is a **trunk**. A branch begins with a Hello of its own, as a connection does, and ends with
//! [`EndBranch`], by which either side says what closing says of a connection. Branches are known to those who carry frames
//! only: a [`crate::ParameterServiceConfig`] takes each for a connection.

use super::RequestId;

/// Nothing more of this branch comes from whoever says it, and nothing is taken. No answer. A connection whose last branch
/// has ended is closed instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndBranch {
    /// 0: nothing is answered.
    pub request: RequestId,
}
