//! Each test is a sentence about lanes.

mod any_order;
mod barriers;
mod connections;
mod functions;
mod injected_faults;
mod job_rows;
mod limits;
mod pushes;
mod replicas;
mod rounded;
mod session_functions;
mod sessions;
mod staged;
mod tries;
mod waits;
mod world;
mod write_ahead;
