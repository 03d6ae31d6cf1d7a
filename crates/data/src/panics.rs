//! Catches the panics of libraries that decode bytes of a file: the bytes are wrong, not this program.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether this thread is in [`catch`], where a panic becomes an error and must not be printed.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`; `None` if it panics. The caller must not use what `work` changes after that.
pub(crate) fn catch<R>(work: impl FnOnce() -> R) -> Option<R> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                usual(panic);
            }
        }));
    });
    GUARDED.set(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(false);
    result.ok()
}
