//! The scan: all data are read before the first epoch, because something must be known of all of them.

use std::panic::AssertUnwindSafe;

use data::TaskData;

use super::failure::Failure;
use super::permits::{Permits, with_permit};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// Reads everything now, a thread a task. The first failure, and Ctrl-C, end all of them at their next batch.
pub(super) fn scan(
    shares: &mut [TaskData],
    permits: Option<&Permits>,
    interrupt: &Interrupt,
    progress: &Progress,
) -> Result<(), Error> {
    let failure = Failure::default();
    std::thread::scope(|scope| {
        for (task, share) in (0u32..).zip(shares) {
            let failure = &failure;
            scope.spawn(move || {
                let scan = || with_permit(permits, || scan_one(share, failure, interrupt, progress));
                failure.note(task, std::panic::catch_unwind(AssertUnwindSafe(scan)));
            });
        }
    });
    failure.into_result()
}

fn scan_one(
    share: &mut TaskData,
    failure: &Failure,
    interrupt: &Interrupt,
    progress: &Progress,
) -> Result<(), Error> {
    let mut told = 0;
    while !failure.is_there() {
        if interrupt.is_raised() {
            let what = "while the data were scanned, before the first step; no model was written".into();
            return Err(Error::Interrupted { what });
        }
        let more = share.scan_step()?;
        let bytes = share.reader().summary().bytes_read;
        progress.scanned(bytes - told);
        told = bytes;
        if !more {
            break;
        }
    }
    Ok(())
}
