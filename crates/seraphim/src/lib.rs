//! The command line: the commands, what they print, and generated data. What the commands run is the crate [`engine`], which
//! programs use too.
//!
//! | module | contents |
//! |---|---|
//! | [`cli`] | the commands, one file each |
//! | [`progress`] | what a run prints for people while it runs |
//! | [`generate`] | synthetic data with a known best model |

#![allow(clippy::format_push_string, reason = "texts for people are short; format! reads best")]

pub mod cli;
pub mod generate;
pub mod progress;
mod terminal_bar;
