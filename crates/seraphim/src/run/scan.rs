//! The scan reads all data before the first epoch if something must be known of all of them.

use std::panic::AssertUnwindSafe;

use data::TaskData;

use super::failure::{Failures, ReadTracker};
use super::semaphore::{Semaphore, with_permit};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// Reads all data now, in one thread per task. The first failure or Ctrl-C ends all threads. `first` is the number of
/// the first of these tasks in the job.
pub(super) fn scan(
    shares: &mut [TaskData],
    first: u32,
    permits: Option<&Semaphore>,
    failures: &Failures,
    interrupt: &Interrupt,
    progress: &Progress,
) -> Result<(), Error> {
    std::thread::scope(|scope| {
        for (task, share) in (first..).zip(shares) {
            let reading = ReadTracker::new(failures, task);
            scope.spawn(move || {
                let scan = || with_permit(permits, || scan_one(share, &reading, interrupt, progress));
                failures.record(&reading, std::panic::catch_unwind(AssertUnwindSafe(scan)));
            });
        }
    });
    failures.take()
}

fn scan_one(
    share: &mut TaskData,
    reading: &ReadTracker<'_>,
    interrupt: &Interrupt,
    progress: &Progress,
) -> Result<(), Error> {
    let mut told = 0;
    while reading.may_read() {
        let more = share.scan_step();
        interrupt.check("while the data were scanned, before the first step; no model was written")?;
        let more = more?;
        let bytes = share.reader().summary().bytes_read;
        progress.add_scanned_bytes(bytes - told);
        told = bytes;
        if !more {
            break;
        }
    }
    Ok(())
}
