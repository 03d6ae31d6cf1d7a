//! Numeric helpers without files, sockets or threads. All other crates of Seraphim build on this one.
//!
//! | module | what it holds |
//! |---|---|
//! | [`hash`] | the 64-bit mix that decides placement and the hash that stands for strings |
//! | [`exact_sum`] | sums of doubles that do not depend on the order of the terms |
//! | [`random`] | seeded streams: `stream(seed, purpose, task, epoch)` |
//! | [`special`] | logistic function and its relatives in stable forms |
//! | [`sort`] | radix sorts of keys and scores |
//! | [`prefetch`] | a prefetch hint to the CPU cache |

pub mod exact_sum;
pub mod hash;
pub mod prefetch;
pub mod random;
pub mod sort;
pub mod special;
