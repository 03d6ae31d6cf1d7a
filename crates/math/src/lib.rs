//! Numeric helpers without files, sockets or threads. All other crates of Seraphim build on this one.
//!
//! | module | what it holds |
//! |---|---|
//! | [`hash`] | the 64-bit mix that decides placement and the hash that stands for strings |
//! | [`exact_sum`] | sums of doubles that do not depend on the order of the terms |
//! | [`random`] | seeded streams, and draws that have a name: of a record, a node, a token |
//! | [`elementary`] | exp, log, sigmoid and their relatives, the same bits on every machine |
//! | [`reduction`] | sums of integers in fixed point and of doubles in a fixed tree |
//! | [`selection`] | draws by weight, and the n largest scores |
//! | [`solve`] | Cholesky factors and conjugate gradients of small systems |
//! | [`sort`] | radix sorts of keys and scores |
//! | [`prefetch`] | a prefetch hint to the CPU cache |

pub mod elementary;
pub mod exact_sum;
pub mod hash;
pub mod prefetch;
pub mod random;
pub mod reduction;
pub mod selection;
pub mod solve;
pub mod sort;
