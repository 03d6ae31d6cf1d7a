//! Constants of the format that both directions have.

/// Versions of the format that are read.
pub(super) const VERSIONS: [&str; 2] = ["v3", "v4"];

/// The bits of `decision_type`.
pub(super) const CATEGORICAL: u8 = 1;
pub(super) const DEFAULT_LEFT: u8 = 2;
/// How values are missing: bits 2 and 3.
pub(super) const MISSING_SHIFT: u32 = 2;
pub(super) const MISSING_NONE: u8 = 0;
pub(super) const MISSING_NAN: u8 = 2;
