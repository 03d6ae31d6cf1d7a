//! Names of hashed keys, so that people can read a model.

use std::collections::HashSet;

use crate::key_names::{KeyNames, NAMES_LIMIT_BYTES, NameCollector, name_bytes, notice_of_limit};

/// The value of a missing number in the name of its feature, `COLUMN=missing`.
pub(crate) const MISSING: &[u8] = b"missing";

/// Limit of the names of a task. The tests of this crate have a smaller one, which they can reach.
pub(crate) const LIMIT_BYTES: usize = if cfg!(test) { 1 << 20 } else { NAMES_LIMIT_BYTES };

/// Collects each name once, up to [`NAMES_LIMIT_BYTES`].
#[derive(Debug)]
pub struct Dictionary {
    seen_keys: HashSet<u64>,
    new_names: NameCollector,
    /// Size of the names of all seen keys.
    size_bytes: usize,
    limit_bytes: usize,
    is_full: bool,
}

impl Default for Dictionary {
    fn default() -> Self {
        Self::with_limit(LIMIT_BYTES)
    }
}

impl Dictionary {
    /// Creates a dictionary of names that together take at most `limit_bytes`.
    fn with_limit(limit_bytes: usize) -> Self {
        Self {
            seen_keys: HashSet::new(),
            new_names: NameCollector::default(),
            size_bytes: 0,
            limit_bytes,
            is_full: false,
        }
    }

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
        self.insert(key, &String::from_utf8_lossy(&text));
    }

    fn insert(&mut self, key: u64, name: &str) {
        let bytes = name_bytes(name.len());
        if self.is_full || self.size_bytes + bytes > self.limit_bytes {
            self.is_full = true;
            return;
        }
        self.size_bytes += bytes;
        self.seen_keys.insert(key);
        self.new_names.add(key, name);
    }

    /// Adds the name of a key; `name` is called when the key is new. None: there is no memory for what the name is made
    /// of.
    #[inline]
    pub fn add_named(&mut self, key: u64, name: impl FnOnce() -> Option<String>) {
        if !self.is_full && !self.seen_keys.contains(&key) {
            match name() {
                Some(name) => self.insert(key, &name),
                None => self.is_full = true,
            }
        }
    }

    /// Takes the names that are new since the last call.
    pub fn take(&mut self) -> KeyNames {
        std::mem::take(&mut self.new_names).finish().0
    }

    /// Notices about names that were not stored.
    pub fn notices(&self) -> Vec<String> {
        self.is_full
            .then(|| notice_of_limit("the names of the features of a task", self.limit_bytes))
            .into_iter()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::read_whole;
    use crate::{FormatTable, Input, Source, SourceConfig};

    #[test]
    fn each_name_is_given_out_once() {
        let mut dictionary = Dictionary::default();
        dictionary.add(1, b"city", b'=', b"Rome");
        dictionary.add(1, b"city", b'=', b"Rome");
        assert_eq!(dictionary.take(), [(1, "city=Rome")].into_iter().collect());
        dictionary.add(1, b"city", b'=', b"Rome");
        assert!(dictionary.take().is_empty());
        assert!(dictionary.notices().is_empty());
    }

    #[test]
    fn the_first_names_that_fit_stay_and_a_notice_tells_the_limit() {
        let mut dictionary = Dictionary::with_limit(3 * name_bytes("n=0".len()));
        for key in (0..10).rev() {
            dictionary.add(key, b"n", b'=', key.to_string().as_bytes());
        }
        let names = dictionary.take();
        assert_eq!(names, [(7, "n=7"), (8, "n=8"), (9, "n=9")].into_iter().collect());
        dictionary.add(3, b"n", b'=', b"3");
        assert!(dictionary.take().is_empty(), "a full dictionary stays full");
        let notices = dictionary.notices();
        assert!(
            notices.len() == 1 && notices[0].contains("MiB") && notices[0].contains("not saved"),
            "{notices:?}"
        );
    }

    #[test]
    fn a_product_whose_factors_have_no_names_is_said_to_have_none() {
        let mut dictionary = Dictionary::default();
        dictionary.add_named(1, || None);
        assert!(dictionary.take().is_empty());
        assert_eq!(dictionary.notices().len(), 1);
    }

    #[test]
    fn every_format_tells_when_names_are_left_out() {
        let lines = |head: &str, line: fn(usize) -> String, count: usize| {
            (0..count).fold(head.to_owned(), |text, number| text + &line(number))
        };
        let table = FormatTable::builtin();
        for (format, head, line) in [
            ("csv", "city,label\n", (|n| format!("Rome{n},{}\n", n % 2)) as fn(usize) -> String),
            ("vw", "", |n| format!("1 |f Rome{n}\n")),
            ("libffm", "", |n| format!("1 3:{n}:1 5:{n}:1\n")),
            ("text", "", |n| format!("Rome{n}\n")),
            ("edges", "", |n| format!("Rome{n} Ostia{n}\n")),
            ("adjacency", "", |n| format!("Rome{n} Ostia{n}\n")),
        ] {
            for (count, is_told) in [(100, false), (40_000, true)] {
                let mut config = SourceConfig { format: Some(format.to_owned()), ..SourceConfig::default() };
                config.options.has_label = !["text", "edges", "adjacency"].contains(&format);
                if format == "libffm" {
                    // Only their products have names.
                    config.options.interactions = vec![vec!["3".to_owned(), "5".to_owned()]];
                }
                let input = Input::memory("names".to_owned(), lines(head, line, count).into_bytes()).unwrap();
                let source = Source::from_inputs(vec![input], &config, None, &table).unwrap();
                let mut reader = read_whole(&source);
                let notices = reader.summary().notices.join("; ");
                assert_eq!(notices.contains("not saved"), is_told, "{format}, {count}: {notices}");
                let names = reader.take_dictionary();
                let least = if is_told { 10_000 } else { 100 };
                assert!((least..30_000).contains(&names.len()), "{format}, {count}: {} names", names.len());
            }
        }
    }
}
