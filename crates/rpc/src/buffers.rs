//! How the allocator treats the buffers of large frames.

use std::hint::black_box;
use std::sync::Once;

/// The largest block from which glibc learns (its `DEFAULT_MMAP_THRESHOLD_MAX`), and a little less.
const PRIMING_BYTES: usize = (32 << 20) - (64 << 10);

/// Lets the allocator keep the memory of large buffers instead of giving each back to the system: a frame of a megabyte
/// otherwise costs as much for page faults as for all else. glibc adapts to the largest block of its own that was
/// freed, so one is asked for, not touched, and freed. With other allocators this does nothing. Processes that send or
/// take many frames call it once.
pub fn retain_large() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| drop(black_box(Vec::<u8>::with_capacity(black_box(PRIMING_BYTES)))));
}
