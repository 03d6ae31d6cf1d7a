//! Parameters of algorithms. One table gives type, range, default, unit and meaning; the same table checks the values.

mod checked;
pub mod common;
mod macros;
pub mod remedies;
mod spec;
#[cfg(test)]
mod tests;
mod value;

pub use checked::CheckedParams;
pub use data::nearest;
pub use macros::joined;
use spec::readers;
pub use spec::{AUTO, Bounds, Choice, ParamKind, ParamSpec, Word, help_text, words};
pub use value::{ParamValue, ParamValues, Value};
