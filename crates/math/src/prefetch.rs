//! A hint to the CPU cache that a line will be needed soon. It changes no result and the CPU may ignore it.

/// Prefetches the cache line that holds `slice[index]`. An index out of range is not an error: nothing is read.
#[inline]
#[allow(unsafe_code)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if index < slice.len() {
        // SAFETY: the address lies inside the slice, prefetching reads nothing into the program, and SSE, which has the
        // instruction, is part of every x86-64.
        unsafe {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().add(index).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}
