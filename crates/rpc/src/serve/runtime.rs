//! The runtime of a thread, and the first of two futures.

use crate::error::Error;

/// A runtime for the calling thread.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Io { what: "start a runtime".to_owned(), source })
}

/// The result of whichever future ends first; that of `one` when both are ready.
pub async fn first_of<T>(one: impl Future<Output = T>, other: impl Future<Output = T>) -> T {
    let (mut one, mut other) = (std::pin::pin!(one), std::pin::pin!(other));
    std::future::poll_fn(|context| {
        let polled = one.as_mut().poll(context);
        if polled.is_ready() { polled } else { other.as_mut().poll(context) }
    })
    .await
}
