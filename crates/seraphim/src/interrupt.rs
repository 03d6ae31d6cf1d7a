//! Ctrl-C: the first one asks for a stop at the next step, the second one ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::Exit;

/// A flag that Ctrl-C (or a termination signal) raises.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// A flag that nobody raises by itself: for tests and embedding.
    pub fn new() -> Self {
        Self::default()
    }

    /// A flag raised by the signals of this process. When the process has a handler already, the flag stays down.
    pub fn install() -> Self {
        let interrupt = Self::new();
        let raised = interrupt.clone();
        let handler = move || {
            if raised.0.swap(true, Ordering::SeqCst) {
                end_now();
            }
        };
        // The only failure is a second handler in one process; then the first one is the one that counts.
        let _ = ctrlc::set_handler(handler);
        interrupt
    }

    /// Raises the flag.
    pub fn raise(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether somebody asked to stop.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The second Ctrl-C means now: nothing half-written survives, since files are written aside and renamed.
#[expect(clippy::exit, reason = "the user asked twice")]
fn end_now() {
    std::process::exit(Exit::Interrupted as i32);
}
