//! Algorithms: one folder each, the same file names in each.
