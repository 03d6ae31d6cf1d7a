//! Histograms of the leaves of growing trees: for each bin the sums of gradients and hessians of the records of a leaf, and their count. Gradients are
//! integers, so that the sums are the same in any order.

pub(super) mod add_histogram;
pub(super) mod best_splits;
mod layout;
pub(super) mod partitions;
pub(super) mod quantization;
pub(super) mod store;
pub(super) mod sums;

pub(super) use layout::NewHistogram;
pub(super) use sums::{BinSums, Histogram, LARGEST_GRADIENT, Sums, packed_chunks, total};
