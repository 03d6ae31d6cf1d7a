//! The scan reads all data before the first epoch if something must be known of all of them.

use std::panic::AssertUnwindSafe;

use data::TaskData;
use driver::Error;

use crate::failures::{Failures, ReadTracker};
use crate::interrupt::Interrupt;
use crate::worker::semaphore::{Semaphore, with_permit};

/// Reads all data now, in one thread per task. The first failure or Ctrl-C ends all threads. `first` is the number of
/// the first of these tasks in the job. `on_bytes` is called with the number of bytes read since its last call.
pub(super) fn scan(
    shares: &mut [TaskData],
    first: u32,
    permits: Option<&Semaphore>,
    failures: &Failures,
    interrupt: &Interrupt,
    on_bytes: &(dyn Fn(u64) + Sync),
) -> Result<(), Error> {
    std::thread::scope(|scope| {
        for (task, share) in (first..).zip(shares) {
            let reading = ReadTracker::new(failures, task);
            scope.spawn(move || {
                let scan = || with_permit(permits, || scan_one(share, &reading, interrupt, on_bytes));
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
    on_bytes: &(dyn Fn(u64) + Sync),
) -> Result<(), Error> {
    let mut reported = 0;
    while reading.may_read() {
        let more = share.scan_step();
        interrupt.check("while the data were scanned, before the first step; no model was written")?;
        let more = more?;
        let bytes = share.reader().summary().bytes_read;
        on_bytes(bytes - reported);
        reported = bytes;
        if !more {
            break;
        }
    }
    Ok(())
}
