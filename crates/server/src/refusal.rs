//! The reason for a refusal, before its request is known.

use std::time::Duration;

use matrix::clock::ClockFault;
use rpc::message::{Fault, FaultKind, RequestId};

/// A refusal without its request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) kind: FaultKind,
    pub(crate) text: String,
    pub(crate) retry_after_ms: u32,
}

impl Refusal {
    pub(crate) fn new(kind: FaultKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), retry_after_ms: 0 }
    }

    pub(crate) fn retry_after(self, after: Duration) -> Self {
        Self { retry_after_ms: after.as_millis().min(u128::from(u32::MAX)) as u32, ..self }
    }

    /// Prefixes the text with the request that is refused.
    pub(crate) fn with_context(mut self, what: impl std::fmt::Display) -> Self {
        self.text = format!("{what}: {}", self.text);
        self
    }

    pub(crate) fn from_clock_fault(task: u32, call: &str, fault: ClockFault) -> Self {
        let kind = match fault {
            ClockFault::Left => FaultKind::TaskLeft,
            ClockFault::AtBarrier => FaultKind::Invalid,
            ClockFault::Unknown => FaultKind::NotFound,
        };
        Self::new(kind, format!("task {task} sent a {call}, but {fault}"))
    }

    pub(crate) fn into_fault(self, request: RequestId) -> Fault {
        let Self { kind, text, retry_after_ms } = self;
        Fault { request, kind, text, retry_after_ms }
    }
}

impl From<matrix::Error> for Refusal {
    fn from(error: matrix::Error) -> Self {
        use matrix::Error;
        let kind = match &error {
            Error::NoSuchMatrix { .. } | Error::NoSuchRow { .. } | Error::NoSuchPartition { .. } => {
                FaultKind::NotFound
            }
            Error::NonFinite { .. } | Error::Overflow { .. } => FaultKind::NonFinite,
            Error::WaitTimeout { .. } => FaultKind::WaitedTooLong,
            Error::Stopped { .. } => FaultKind::Stopped,
            Error::Panicked { .. } | Error::Server { .. } => FaultKind::Internal,
            Error::Spec { .. }
            | Error::DuplicateName { .. }
            | Error::WrongAxis { .. }
            | Error::ValueCount { .. }
            | Error::KeyOutOfRange { .. }
            | Error::KeyOutOfPartition { .. }
            | Error::KeysNotAscending { .. }
            | Error::ElementType { .. }
            | Error::Import { .. }
            | Error::Task { .. }
            | Error::ReduceLength { .. } => FaultKind::Invalid,
            Error::Function { .. } | Error::FunctionAtServer { .. } | Error::Lists { .. } => {
                FaultKind::Function
            }
        };
        Self::new(kind, error.to_string())
    }
}
