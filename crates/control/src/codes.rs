//! Fault kinds as gRPC codes, and the format of deadlines.

use std::time::Duration;

use rpc::message::{Fault, FaultKind};
use tonic::{Code, Status};

pub(crate) fn code(kind: FaultKind) -> Code {
    match kind {
        FaultKind::BadToken => Code::Unauthenticated,
        FaultKind::BadVersion | FaultKind::TaskLeft | FaultKind::TokenClosed => Code::FailedPrecondition,
        FaultKind::BadFrame | FaultKind::NonFinite | FaultKind::Invalid | FaultKind::Function => {
            Code::InvalidArgument
        }
        FaultKind::TooLarge => Code::ResourceExhausted,
        FaultKind::Busy => Code::Unavailable,
        FaultKind::NoSuchJob | FaultKind::NotFound => Code::NotFound,
        FaultKind::WaitedTooLong => Code::DeadlineExceeded,
        FaultKind::UnknownKeys | FaultKind::Stopped => Code::Aborted,
        FaultKind::Internal => Code::Internal,
    }
}

pub(crate) fn status(fault: Fault) -> Status {
    Status::new(code(fault.kind), fault.text)
}

/// The status for a call whose [`crate::master_handle::ResponseSender`] was dropped.
pub(crate) fn ended() -> Status {
    Status::unavailable("the master has ended")
}

/// The status after the deadline of a call, which was `limit` after its beginning.
pub(crate) fn deadline_exceeded(limit: Duration) -> Status {
    Status::deadline_exceeded(format!("the deadline of the call, {} ms, has passed", limit.as_millis()))
}

/// Parses a `grpc-timeout`: at most 8 digits and a unit. `None` for anything else, which the caller treats as no
/// deadline; the gRPC specification leaves this case open.
pub(crate) fn timeout(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let count = digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    Some(match unit {
        b'H' => Duration::from_secs(count * 3600),
        b'M' => Duration::from_secs(count * 60),
        b'S' => Duration::from_secs(count),
        b'm' => Duration::from_millis(count),
        b'u' => Duration::from_micros(count),
        b'n' => Duration::from_nanos(count),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_at_most_eight_digits_and_a_unit() {
        for (text, limit) in [
            ("99999999H", Duration::from_hours(99_999_999)),
            ("2M", Duration::from_mins(2)),
            ("3S", Duration::from_secs(3)),
            ("100m", Duration::from_millis(100)),
            ("7u", Duration::from_micros(7)),
            ("0n", Duration::ZERO),
        ] {
            assert_eq!(timeout(text.as_bytes()), Some(limit), "{text}");
        }
        for text in ["", "S", "123456789S", "-1S", "1.5S", "1s", "1", "ÿS"] {
            assert_eq!(timeout(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn what_may_be_granted_later_is_unavailable_and_nothing_else_is_but_keys_that_only_frames_have() {
        for kind in [
            FaultKind::BadToken,
            FaultKind::BadVersion,
            FaultKind::BadFrame,
            FaultKind::TooLarge,
            FaultKind::Busy,
            FaultKind::NoSuchJob,
            FaultKind::NotFound,
            FaultKind::TaskLeft,
            FaultKind::WaitedTooLong,
            FaultKind::NonFinite,
            FaultKind::Invalid,
            FaultKind::Stopped,
            FaultKind::Internal,
        ] {
            assert_eq!(code(kind) == Code::Unavailable, kind.retry_may_help(), "{kind:?}");
        }
    }
}
