//! Each sentence of the control conversation as a test of the pure state machine: no socket, no thread, time as a number.

mod jobs;
mod members;
mod sessions;
mod world;
