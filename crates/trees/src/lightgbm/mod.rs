//! The text model of LightGBM, version 4 (`gbdt_model_text.cpp`, `tree.cpp`), written and read.
//!
//! | here | there |
//! |---|---|
//! | nodes in one list, both children beside each other | inner nodes in the order of their splits, leaves counted apart |
//! | thresholds of single precision | of double precision: the largest double that is rounded to ours or to less |
//! | the scores before the first tree | added to the leaves of the first trees |
//! | a value that is missing goes left or right | the same, missing values of the kind NaN |
//! | categories by their names | by codes, with their names in `pandas_categorical` |

mod constants;
mod imported;
mod objective;
mod parse;
mod read;
#[cfg(test)]
mod tests;
mod threshold;
mod write;

pub use imported::{ImportOptions, ImportedModel};
pub use read::read;
pub(super) use write::write;
