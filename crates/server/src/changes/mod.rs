//! The changes of a lane: the messages that have made it what it is, recorded as frames and repeated on another lane. The
//! write-ahead log and the replicas are made of them.

pub(crate) mod recorder;
pub(crate) mod replay;
