//! stub
use super::{FormatContext, Plan};
use crate::Error;
pub(super) fn recognize(_: &[u8]) -> bool {
    false
}
pub(super) fn open(_: &FormatContext<'_>) -> Result<Plan, Error> {
    Err(Error::BadOption { option: "format", reason: "not yet".into() })
}
