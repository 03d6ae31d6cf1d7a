//! The faults of connections that are refused.

use crate::codec::put_frame;
use crate::error::Error;
use crate::limits::FrameLimits;
use crate::message::{Fault, FaultKind, Message};

pub(super) fn fault_bytes(fault: Fault) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A fault is short. If it could not be written, closing the connection would be enough.
    let _ = put_frame(&Message::Fault(fault), true, &FrameLimits::default(), &mut bytes);
    bytes
}

/// The fault for bytes that cannot be parsed.
pub(super) fn fault_of(request: u64, error: &Error) -> Fault {
    let kind = match error {
        Error::Version { .. } => FaultKind::BadVersion,
        Error::TooLong { .. } => FaultKind::TooLarge,
        _ => FaultKind::BadFrame,
    };
    Fault { request, kind, text: error.to_string(), retry_after_ms: 0 }
}
