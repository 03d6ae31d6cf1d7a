//! Which paths are addresses of stores.

use std::path::Path;

/// The path as an address of a store, such as `s3://BUCKET/PATH`; none if it is one of the file system.
pub fn address(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| text.contains("://") && !path.exists())
}
