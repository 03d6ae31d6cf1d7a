//! Names of hashed keys, so that people can read a model.

use std::collections::{BTreeMap, HashSet};

/// Number of names that one parser stores; each takes about 100 bytes.
pub const NAME_LIMIT: usize = 4 << 20;

/// The value of a missing number in the name of its feature, `COLUMN=missing`.
pub(crate) const MISSING: &[u8] = b"missing";

/// Collects each name once, up to [`NAME_LIMIT`].
#[derive(Debug, Default)]
pub struct Dictionary {
    seen_keys: HashSet<u64>,
    new_names: BTreeMap<u64, String>,
    is_full: bool,
}

impl Dictionary {
    /// Adds the name of `key`: `space`, the separator and `name`.
    #[inline]
    pub fn add(&mut self, key: u64, space: &[u8], separator: u8, name: &[u8]) {
        if !self.seen_keys.contains(&key) {
            self.add_new(key, space, separator, name);
        }
    }

    #[cold]
    fn add_new(&mut self, key: u64, space: &[u8], separator: u8, name: &[u8]) {
        let text = [space, &[separator], name].concat();
        self.insert(key, String::from_utf8_lossy(&text).into_owned());
    }

    fn insert(&mut self, key: u64, name: String) {
        if self.seen_keys.len() >= NAME_LIMIT {
            self.is_full = true;
            return;
        }
        self.seen_keys.insert(key);
        self.new_names.insert(key, name);
    }

    /// Adds the name of a key; `name` is called when the key is new.
    #[inline]
    pub fn add_named(&mut self, key: u64, name: impl FnOnce() -> String) {
        if !self.seen_keys.contains(&key) {
            self.insert(key, name());
        }
    }

    /// Takes the names that are new since the last call.
    pub fn take(&mut self) -> BTreeMap<u64, String> {
        std::mem::take(&mut self.new_names)
    }

    /// Notices about names that were not stored.
    pub fn notices(&self) -> Vec<String> {
        if self.is_full {
            vec![format!("more than {NAME_LIMIT} names: the model works, but the other names are not saved")]
        } else {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_given_out_once() {
        let mut dictionary = Dictionary::default();
        dictionary.add(1, b"city", b'=', b"Rome");
        dictionary.add(1, b"city", b'=', b"Rome");
        assert_eq!(dictionary.take(), BTreeMap::from([(1, "city=Rome".to_owned())]));
        dictionary.add(1, b"city", b'=', b"Rome");
        assert!(dictionary.take().is_empty());
    }
}
