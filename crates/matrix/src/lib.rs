//! Parameters: what a matrix is, where its rows lie, how pushes merge, when reads are allowed.

pub mod agent;
pub mod clock;
pub mod element;
pub mod error;
pub mod rule;
pub mod schedule;
pub mod spec;

pub use agent::{Agent, Keys, MatrixId, Part};
pub use clock::{Clock, Consistency};
pub use element::{ElementType, Values, ValuesMut};
pub use error::Error;
pub use rule::PushRule;
pub use schedule::Schedule;
pub use spec::{Axis, Initializer, MatrixSpec, Partitioner, Storage};
