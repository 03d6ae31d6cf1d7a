//! Keeps membership, placement and jobs: a pure state machine, and the process around it.
