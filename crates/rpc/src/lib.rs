//! Messages between processes, their bytes, and the transports that carry them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`message`] | what is said, one conversation a file |

pub mod kept;
pub mod message;

pub use message::Message;
