//! Which relative paths a store takes.

use crate::error::Error;

/// Checks a relative path: parts divided by `/`, none of them empty or beginning with a point.
///
/// # Errors
/// [`Error::BadPath`].
pub(crate) fn check(path: &str) -> Result<(), Error> {
    let bad = |reason| Err(Error::BadPath { path: path.to_owned(), reason });
    for part in path.split('/') {
        if part.is_empty() {
            return bad("a part of it is empty");
        }
        if part.starts_with('.') {
            return bad("a part of it begins with a point");
        }
        if part.contains(['\\', '\0']) {
            return bad("it has a character that not every store takes");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_parts_that_every_store_takes() {
        for path in ["claim", "00000001/manifest", "a/b/c d"] {
            check(path).unwrap();
        }
        for path in ["", "/a", "a/", "a//b", "..", "a/../b", "./a", "a/.b", "a\\b", "a\0"] {
            assert!(check(path).is_err(), "{path:?}");
        }
    }
}
