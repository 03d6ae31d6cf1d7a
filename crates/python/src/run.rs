//! Work beside the interpreter: the interpreter is free meanwhile, and looks for Ctrl-C.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use engine::interrupt::Interrupt;
use pyo3::prelude::*;

/// How often signals are looked for.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs `work` on a thread of its own. Returns its result, and the exception that a signal has raised meanwhile: then
/// `interrupt` was raised too.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    interrupt: &Interrupt,
    work: impl FnOnce() -> T + Send,
) -> (T, Option<PyErr>) {
    py.detach(|| {
        let (sender, done) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // The receiver waits below.
                let _ = sender.send(work());
            });
            let mut exception = None;
            loop {
                match done.recv_timeout(SIGNAL_INTERVAL) {
                    Ok(result) => return (result, exception),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => panic!("the thread of the run has panicked"),
                }
                #[expect(
                    clippy::redundant_closure_for_method_calls,
                    reason = "the method has one lifetime only"
                )]
                if let Err(error) = Python::attach(|py| py.check_signals()) {
                    interrupt.raise();
                    exception.get_or_insert(error);
                }
            }
        })
    })
}
