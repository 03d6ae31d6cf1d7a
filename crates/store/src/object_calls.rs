//! Calls of object stores. They run on one thread with a runtime, and each has a limit.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::fault::{explain, is_missing_file};

/// Maximum time of one call, with all its attempts; tests do not wait that long. A call sends or receives at most one part.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(if cfg!(test) { 4 } else { 60 });
/// The runtime of all calls.
pub(crate) fn runtime() -> &'static Handle {
    static RUNTIME: OnceLock<Handle> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime needs only memory and a few handles");
        let handle = runtime.handle().clone();
        let drive = move || runtime.block_on(std::future::pending::<()>());
        std::thread::Builder::new()
            .name("object-store".into())
            .spawn(drive)
            .expect("a thread can be started");
        handle
    })
}

/// An error of a call.
#[derive(Debug)]
pub(crate) enum CallError {
    Store(object_store::Error),
    TimedOut,
}

impl CallError {
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Self::Store(error) if is_missing_file(&error) => io::ErrorKind::NotFound.into(),
            Self::Store(error) => io::Error::other(explain(&error)),
            Self::TimedOut => io::Error::new(
                io::ErrorKind::TimedOut,
                format!(
                    "the store has not answered for {} s; see whether it runs, and check the network",
                    CALL_LIMIT.as_secs()
                ),
            ),
        }
    }

    pub(crate) fn is_missing_file(&self) -> bool {
        matches!(self, Self::Store(error) if is_missing_file(error))
    }
}

/// Begins a call.
pub(crate) fn begin<T: Send + 'static>(
    call: impl Future<Output = object_store::Result<T>> + Send + 'static,
) -> Receiver<Result<T, CallError>> {
    let (sender, receiver) = channel();
    runtime().spawn(async move {
        let ended = tokio::time::timeout(CALL_LIMIT, call).await;
        // The caller may have given up.
        let _ = sender.send(match ended {
            Ok(result) => result.map_err(CallError::Store),
            Err(_) => Err(CallError::TimedOut),
        });
    });
    receiver
}

pub(crate) fn end<T>(call: &Receiver<Result<T, CallError>>) -> Result<T, CallError> {
    // The runtime has the same limit; this one holds if its thread is stuck.
    match call.recv_timeout(CALL_LIMIT * 2) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(CallError::TimedOut),
    }
}

pub(crate) fn call<T: Send + 'static>(
    future: impl Future<Output = object_store::Result<T>> + Send + 'static,
) -> Result<T, CallError> {
    end(&begin(future))
}
