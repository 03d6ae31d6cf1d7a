//! Owns partitions: a pure state machine for each thread, and the process around it.
