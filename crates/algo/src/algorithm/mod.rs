//! An algorithm on one page: the interface that authors write against. From one impl of [`Algorithm`] follow the row of the
//! family, the job, the model, the scorer and the learner.
//!
//! | module | what it holds |
//! |---|---|
//! | `interface` | what authors write, and the types of the job and the model |
//! | `settings` | typed settings, from one table in [`crate::settings!`] |
//! | `table` | the tables of an algorithm, and their rows at the records of a batch |
//! | `steps` | [`Steps`]: an algorithm that learns batch by batch |
//! | `rounds` | [`Rounds`]: an algorithm that passes over its own form of the data, such as a graph |
//! | `functions` | functions that run at the servers, over the rows of a table |
//! | `row` | what the job, the model and the scorer do |

mod functions;
mod interface;
mod rounds;
mod row;
mod settings;
mod steps;
mod table;
#[cfg(test)]
mod tests;

pub use functions::RowFunctions;
pub use interface::{Algorithm, AlgorithmJob, AlgorithmModel, Loop};
/// What a push does to a row, for the tables of an algorithm.
pub use matrix::PushRule;
pub use rounds::{ByRounds, Edge, KeyRows, Round, Rounds, Task};
pub use settings::Settings;
#[doc(hidden)]
pub use settings::{SettingType, real};
pub use steps::{BySteps, Changes, Steps};
pub use table::{Record, Table, adagrad};
