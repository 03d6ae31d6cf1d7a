//! Tests of each rule of the control messages on the pure state machine: no socket, no thread, time as a number.

mod injected_faults;
mod jobs;
mod members;
mod records;
mod sessions;
mod test_master;
